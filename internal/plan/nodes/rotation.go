package nodes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// round is how long Karpenter is assumed to need for as many nodes as a budget allows at once: to launch others, and to drain.
const round = 15 * time.Minute

// Rotates returns the age at which a plan replaces nodes that the one in force keeps; 0 if there is none.
func Rotates(before, after plan.Plan) time.Duration {
	was, err := time.ParseDuration(before.NodePools.RotateAfter)
	rotated := err == nil && !before.NodePools.Frozen
	age, err := time.ParseDuration(after.NodePools.RotateAfter)
	if err != nil || after.NodePools.Frozen || rotated && was <= age {
		return 0
	}
	return age
}

// Rotation returns a warning for each pool whose nodes may expire, which knows no budget, before karpenter_rotate_after and the budgets
// have replaced them. running has what the pools run now, if it is known.
func (c Compiled) Rotation(running map[string]plan.PoolFacts) (found findings) {
	age, err := time.ParseDuration(c.config.RotateAfter)
	if err != nil {
		return nil
	}
	for _, d := range c.drafts {
		text, _ := inner(d.spec(), "template", "spec")["expireAfter"].(string)
		expiry, err := time.ParseDuration(text)
		if d.kind != "NodePool" || d.idle || err != nil { // Never
			continue
		}
		if need := d.turn(running[d.name].Nodes) + c.longestBlock(); expiry <= age+need {
			found.warn(origin{parameter: params.ParamRotateAfter}, "nodes of %s expire after %s, which is not longer than the %s of %s and the %s "+
				"that budgets and windows may need; expiry replaces nodes without either; write an expiry of more than %s, or Never", d.name, text,
				c.config.RotateAfter, params.ParamRotateAfter, hours(need), hours(age+need))
		}
	}
	return found
}

// turn estimates how long a pool's budgets need to replace so many nodes, 0 if that is not known.
func (d *draft) turn(nodes int) (longest time.Duration) {
	budgets, given := inner(d.spec(), "disruption")["budgets"]
	if !given {
		budgets = []any{map[string]any{"nodes": "10%"}}
	}
	for _, budget := range objects(budgets) {
		reasons, _ := budget["reasons"].([]any)
		if budget["schedule"] != nil || len(reasons) > 0 && !slices.Contains(reasons, any("Drifted")) {
			continue
		}
		text, _ := budget["nodes"].(string)
		digits, percent := strings.CutSuffix(text, "%")
		at, _ := strconv.Atoi(digits)
		all := 100
		if !percent {
			all = max(nodes, 1)
		}
		if at > 0 {
			longest = max(longest, time.Duration((all+at-1)/at)*round)
		}
	}
	return longest
}

// longestBlock returns the length of the longest time in which no node is replaced.
func (c Compiled) longestBlock() (longest time.Duration) {
	blocks, _ := c.config.Blocks()
	for _, b := range blocks {
		length, _ := time.ParseDuration(b.Duration)
		longest = max(longest, length)
	}
	return longest
}

// hours formats a duration as a number of hours, rounded up.
func hours(d time.Duration) string { return strconv.Itoa(int((d+time.Hour-1)/time.Hour)) + "h" }
