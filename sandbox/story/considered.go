package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A node that stays is told by no event. What tells that Karpenter has seen a reason to replace it, and has not taken it, is what
// Karpenter counts of its own work: a slow machine delays these counts, and the check that follows with them.

// spared waits until Karpenter has considered all nodes from beginning to end and has begun to disrupt none. It tries single-node
// consolidation last, and only if no other method has found anything. The first count may be of a round that began before.
func spared(s *Script) {
	rounds := func() int {
		return sumOf(s, "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count{", `consolidation_type="single"`)
	}
	began := rounds()
	s.Await("Karpenter has considered all nodes, and disrupts none", func() string {
		now := rounds()
		began = min(began, now) // another controller leads, and counts from zero
		return fmt.Sprint(now >= began+2)
	}, "true", 3*time.Minute)
}

// examined waits until Karpenter has examined each NodeClaim for drift, which it does after each write to one, and otherwise every
// five minutes.
func examined(s *Script) {
	const controller = `controller="nodeclaim.disruption"`
	looks := func() int { return sumOf(s, "controller_runtime_reconcile_total{", controller) }
	began, claims := looks(), len(nodeClaims(s).Items)
	s.Output(fmt.Sprintf("kubectl annotate nodeclaims --all --overwrite sandbox.sawhorse.dev/examined=%d", time.Now().UnixNano()))
	s.Await(fmt.Sprintf("Karpenter has examined %d NodeClaims", claims), func() string {
		busy := sumOf(s, "controller_runtime_active_workers{", controller) + sumOf(s, "workqueue_depth{", controller)
		return fmt.Sprint(looks() >= began+claims && busy == 0)
	}, "true", time.Minute)
}

// sumOf is the sum of Karpenter's series that begin so and have a label. The controller that does not lead adds nothing.
func sumOf(s *Script, name, label string) (sum int) {
	for line := range strings.Lines(s.Output(scraped)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(series, name) && strings.Contains(series, label) {
			sum += int(n)
		}
	}
	return sum
}
