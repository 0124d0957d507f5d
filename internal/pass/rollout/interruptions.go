package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

// interruptions are the reasons of Karpenter's events about a NodeClaim whose instance EC2 takes or advises to leave, in all versions
// of the catalogue (pkg/controllers/interruption/events).
var interruptions = map[string]bool{
	"SpotInterrupted": true, "SpotRebalanceRecommendation": true, "CapacityReservationInstanceInterrupted": true,
	"InstanceStopping": true, "InstanceTerminating": true, "InstanceUnhealthy": true,
}

// slot is the time whose interruptions a tick counts: that from when the tick before was due until it was due itself, so that each is
// counted once, however late a tick comes. It is empty for a call that is no tick.
type slot struct{ begin, end time.Time }

func (e Event) slot() slot {
	due, err := time.Parse(time.RFC3339, e.Time)
	if err != nil {
		return slot{}
	}
	return slot{due.Add(-time.Duration(e.Minutes) * time.Minute), due}
}

// interrupts counts an event of Karpenter's about an interruption, by its kind. Karpenter sends one about the node too.
func (v *view) interrupts(e *corev1.Event) {
	at := k8s.LastSeen(e)
	if interruptions[e.Reason] && e.InvolvedObject.Kind == k8s.NodeClaim.Name && !at.Before(v.slot.begin) && at.Before(v.slot.end) {
		v.interrupted[e.Reason]++
	}
}

// counts reports whether there may be interruptions to count: there are nodes, or there were some at the last look, and EC2 has taken
// all of them.
func (v *view) counts() bool {
	for _, p := range v.pools {
		if p.Nodes > 0 || v.before[p.Pool.Pool].Nodes > 0 {
			return !v.slot.end.IsZero()
		}
	}
	return false
}
