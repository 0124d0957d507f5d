// Package disruption says what of a NodePool keeps Karpenter from disrupting its nodes now: the freeze, a disruption window, or a
// budget.
package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// hashes are Karpenter's annotations with the hash of what a NodePool and an EC2NodeClass say about nodes, and with the version of its
// hash function.
var hashes = []struct{ hash, version string }{
	{ownership.NodePoolHash, ownership.NodePoolHashVersion},
	{"karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"},
}

// Outdated reports whether a NodeClaim carries another hash than its NodePool or its EC2NodeClass, by their annotations. Hashes of
// different versions cannot be compared; Karpenter writes them anew after its own upgrade.
func Outdated(claim, pool, class map[string]string) bool {
	for i, wants := range []map[string]string{pool, class} {
		of := hashes[i]
		if wants[of.version] != "" && wants[of.version] == claim[of.version] && wants[of.hash] != claim[of.hash] {
			return true
		}
	}
	return false
}

// Budget is a disruption budget of a NodePool. Reasons that are left out are all; an empty list is none (Karpenter's
// GetAllowedDisruptionsByReason in pkg/apis/v1/nodepool.go).
type Budget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

func (b Budget) String() string {
	text := "nodes: " + b.Nodes
	if b.Schedule != "" {
		text += fmt.Sprintf(", from %s (UTC) for %s", b.Schedule, b.Duration)
	}
	if b.Reasons != nil {
		text += ", for " + cmp.Or(strings.Join(b.Reasons, " and "), "no reason")
	}
	return text
}

func (b Budget) block() params.Block { return params.Block{Schedule: b.Schedule, Duration: b.Duration} }

// Active reports whether the budget is in force.
func (b Budget) Active(now time.Time) bool { return b.Schedule == "" || b.block().Covers(now) }

// covers reports whether the budget is for a reason.
func (b Budget) covers(reason string) bool {
	return b.Reasons == nil || slices.Contains(b.Reasons, reason)
}

// allows returns how many of a pool's nodes may go at once. A percentage is rounded up, as Karpenter does.
func (b Budget) allows(nodes int) int {
	value := intstr.Parse(b.Nodes)
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, nodes, true)
	if err != nil {
		return 0
	}
	return n
}

// Frozen reports whether the freeze lies over the NodePools of a rack, whose budgets these are: of each pool it is one of no nodes after
// others (plan.FrozenBudgets).
func Frozen(pools ...[]Budget) bool {
	for _, budgets := range pools {
		last := len(budgets) - 1
		if last < 1 || budgets[last].Nodes != "0" || budgets[last].Schedule != "" || budgets[last].Reasons != nil {
			return false
		}
	}
	return len(pools) > 0
}

// Pool is a NodePool.
type Pool struct {
	Budgets []Budget
	// Frozen means that the last of the Budgets is the freeze.
	Frozen                 bool
	nodes, going, notReady int
}

// Count adds a NodeClaim of the pool, and reports whether its node is going already, so that no brake holds it, or stays and is one
// of those of which the budgets are shares. ending means that it is being deleted, and has reports whether a condition of it is true.
// Karpenter counts the nodes that are initialized, until their instance ends.
func (p *Pool) Count(ending bool, has func(condition string) bool) (going, stays bool) {
	going = ending || has("DisruptionReason")
	if !has("Initialized") || has("InstanceTerminating") {
		return going, false
	}
	if p.nodes++; going {
		p.going++
	}
	return going, !going
}

// NotReady notes that the node of a NodeClaim that stays is not Ready: Karpenter subtracts it from the budgets like one that goes.
func (p *Pool) NotReady() { p.notReady++ }

// Keeps returns what lets no node of the pool go now for a reason, such as Drifted: the freeze first, then windows and budgets.
func (p *Pool) Keeps(reason string, now time.Time) (keeps []string) {
	budgets := p.Budgets
	if p.Frozen {
		keeps = append(keeps, "the freeze ("+params.ParamFreeze+") lets no node go")
		budgets = budgets[:len(budgets)-1]
	}
	for _, b := range budgets {
		if !b.Active(now) || !b.covers(reason) {
			continue
		}
		switch none := b.allows(max(p.nodes, 1)) == 0; {
		case none && b.Schedule != "":
			keeps = append(keeps, fmt.Sprintf("the disruption window is closed until %s (budget %s)", b.block().Ends(now).Format(time.RFC3339), b))
		case none:
			keeps = append(keeps, fmt.Sprintf("budget %s lets no node go", b))
		case p.going+p.notReady > 0 && b.allows(p.nodes) <= p.going+p.notReady:
			keeps = append(keeps, fmt.Sprintf("budget %s is used up: of %d nodes %s", b, p.nodes, p.spent()))
		}
	}
	return keeps
}

// spent says which nodes use up a budget.
func (p *Pool) spent() string {
	var parts []string
	if p.going > 0 {
		parts = append(parts, fmt.Sprintf("%d are going already", p.going))
	}
	if p.notReady > 0 {
		parts = append(parts, fmt.Sprintf("%d are not Ready", p.notReady))
	}
	return strings.Join(parts, " and ")
}
