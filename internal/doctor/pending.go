package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Waiter is a pod that waits for a node, and that Karpenter has said last that it launches none for.
type Waiter struct {
	// Pod is its namespace and name.
	Pod   string
	Since time.Time
	// Reason is what Karpenter says, and Limit means that it is the limit of a pool.
	Reason string
	Limit  bool
}

// mostReasons is how many of Karpenter's reasons a finding has.
const mostReasons = 3

// pendingPods reports all pods in one finding, by Karpenter's reason, those that wait longest first. That no pool fits a pod is the pod's
// own fault as often as the rack's; a pool's limit keeps every pod from its node.
func pendingPods(o *Observed, found *findings) {
	if len(o.Waiting) == 0 {
		return
	}
	waiting := slices.SortedFunc(slices.Values(o.Waiting), func(a, b Waiter) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Pod, b.Pod))
	})
	pods, reasons := map[string][]string{}, []string{}
	for _, w := range waiting {
		if pods[w.Reason] == nil {
			reasons = append(reasons, w.Reason)
		}
		pods[w.Reason] = append(pods[w.Reason], w.Pod)
	}
	var because []string
	left := len(waiting)
	for _, reason := range reasons[:min(len(reasons), mostReasons)] {
		because = append(because, fmt.Sprintf("%d (%s): %s", len(pods[reason]), some(pods[reason]), reason))
		left -= len(pods[reason])
	}
	if left > 0 {
		because = append(because, fmt.Sprintf("%d for other reasons", left))
	}
	namespace, name, _ := strings.Cut(waiting[0].Pod, "/")
	found.add(failsIf(slices.ContainsFunc(waiting, func(w Waiter) bool { return w.Limit })),
		fmt.Sprintf("Karpenter launches no node for %d pods that are Pending, the first since %s: %s", len(waiting),
			waiting[0].Since.UTC().Format(time.RFC3339), strings.Join(because, "; ")),
		"Karpenter says pool by pool what does not fit. Change what the pod asks for, or add a pool that has it; where a pool's limit is "+
			"reached, raise it.",
		fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name))
}
