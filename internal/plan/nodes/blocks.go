package nodes

import (
	"fmt"
	"slices"
	"time"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// block adds to the budgets of a NodePool those of the times in which Karpenter replaces no node. It reads the budgets that
// parameters and configs have set: they stay as they are.
func (d *draft) block(config params.Config) {
	blocks, parameter := config.Blocks()
	written, given := inner(d.spec(), "disruption")["budgets"]
	budgets, is := written.([]any)
	switch from := d.blame("disruption", "budgets"); {
	case len(blocks) == 0 || given && !is || len(budgets) > plan.MostBudgets: // which the CRD refuses
		return
	case !given: // Karpenter's default is for pools without any
		budgets = []any{map[string]any{"nodes": "10%"}}
	case len(budgets)+len(blocks) > plan.MostBudgets && len(budgets) > len(blocks):
		d.initial.refuse(from, "has %d budgets, and %s adds %d; a NodePool holds at most %d; take out %d", len(budgets), parameter,
			len(blocks), plan.MostBudgets, len(budgets)+len(blocks)-plan.MostBudgets)
		return
	}
	if len(budgets)+len(blocks) > plan.MostBudgets {
		d.initial.refuse(origin{parameter: parameter}, "makes %d disruption budgets, and a NodePool holds at most %d with its own; write fewer "+
			"times, or times that are the same on several days", len(blocks), plan.MostBudgets)
		return
	}
	disruption, last := d.parent([]string{"disruption", "budgets"})
	disruption[last] = slices.Clone(budgets) // the list may be the config's
	for _, b := range blocks {
		d.add(origin{parameter: parameter}, map[string]any{
			"nodes": "0", "reasons": []any{string(karpenter.DisruptionReasonDrifted), string(karpenter.DisruptionReasonUnderutilized)},
			"schedule": b.Schedule, "duration": b.Duration,
		}, "disruption", "budgets")
	}
}

// Blocked returns a warning if there are times in which Karpenter replaces no node of its own accord: nodes expire all the same.
// claims are the cluster's NodeClaims, or nil if they are not known.
func (c Compiled) Blocked(claims []plan.Object) []params.Problem {
	blocks, parameter := c.config.Blocks()
	var pools []string
	for _, d := range c.drafts {
		if d.kind == "NodePool" && !d.idle && inner(d.spec(), "template", "spec")["expireAfter"] != "Never" {
			pools = append(pools, d.name)
		}
	}
	if len(blocks) == 0 || len(pools) == 0 {
		return nil
	}
	nodes, inside := 0, []time.Time{}
	known := claimsByPool(claims)
	for _, pool := range pools {
		for _, claim := range known[pool] {
			nodes++
			if age := claim.Spec.ExpireAfter.Duration; age != nil {
				end := claim.CreationTimestamp.Add(*age).UTC()
				if slices.ContainsFunc(blocks, func(b params.Block) bool { return b.Covers(end) }) {
					inside = append(inside, end)
				}
			}
		}
	}
	count := ""
	switch {
	case len(inside) > 0:
		first, next := slices.MinFunc(inside, time.Time.Compare), time.Time{}
		for _, b := range blocks {
			if end := b.Ends(first); end.After(next) {
				next = end
			}
		}
		soon := len(slices.DeleteFunc(slices.Clone(inside), func(end time.Time) bool { return end.After(next) }))
		count = fmt.Sprintf(" (%d of the %d that there are now: %d in the next such time, the first at %s)", len(inside), nodes, soon,
			first.Format(time.RFC3339))
	case claims != nil:
		count = " (none of those that there are now)"
	}
	return []params.Problem{params.NewProblem(parameter, "", "Karpenter's expiry reads no budgets: nodes of %s expire in the blocked "+
		"times too%s; where that must not be, write a longer expiry, or Never", some(pools), count)}
}
