package rollout

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// What keeps the oldest outdated node is said in Karpenter's words, whether they are about the node, its NodeClaim, the pool, or the
// NodeClaim that is to replace it.
func TestWhatHoldsANode(t *testing.T) {
	const claimed = "workload-abcde"
	for what, c := range map[string]struct{ kind, of, reason, message, want string }{
		"a PodDisruptionBudget": {"NodeClaim", claimed, "DisruptionBlocked",
			"Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"},
		"a pod that must not be disrupted": {"Node", "node-a", "DisruptionBlocked",
			`Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web)`, `Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web)`},
		"a budget, a window or the freeze": {"NodePool", "workload", "DisruptionBlocked",
			"No allowed disruptions for disruption reason Drifted due to blocking budget",
			"No allowed disruptions for disruption reason Drifted due to blocking budget"},
		"pods that do not end": {"Node", "node-a", "FailedDraining", "Failed to drain node, 2 pods are waiting to be evicted",
			"Failed to drain node, 2 pods are waiting to be evicted"},
		"no capacity": {"NodeClaim", "workload-fghij", "InsufficientCapacityError",
			"NodeClaim workload-fghij event: creating instance, insufficient capacity, InsufficientInstanceCapacity: none",
			"launches of the pool fail: karpenter: InsufficientCapacityError: creating instance, insufficient capacity, " +
				"InsufficientInstanceCapacity: none"},
		"nothing that Karpenter says": {"NodeClaim", claimed, "Launched", "launched", ""},
	} {
		s := begin(t, "workload")
		outdated := claim(claimed, "workload", "0", "1")
		s.Create(outdated)
		s.Status(outdated, object{"nodeName": "node-a", "conditions": []any{
			condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}})
		s.Create(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "default"}, "reason": c.reason,
			"message": c.message, "lastTimestamp": stamp(4 * time.Minute), "involvedObject": object{"kind": c.kind, "name": c.of},
			"source": object{"component": "karpenter"}})
		status := s.after(5 * time.Minute)
		if p := s.pool(status, "workload"); p.Held != c.want || p.Outdated != 1 || status.State != outcome.StateReconciled {
			t.Errorf("%s: %s %+v, want %q", what, status.State, p, c.want)
		}
		s.Remove(outdated)
		s.Remove(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "default"}})
		s.Remove(nodePool("workload"))
		s.Remove(class("workload"))
	}
}
