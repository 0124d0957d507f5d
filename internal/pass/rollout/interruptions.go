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

// interruption is what Karpenter has said of one NodeClaim.
type interruption struct {
	// kinds are the interruptions in the slot. foreseen means that one, at whatever time, told of the instance's end, and stopped that it
	// was stopped.
	kinds             []string
	foreseen, stopped bool
	// ends means that Karpenter has ended the node because of an interruption.
	ends bool
}

// interrupts notes an event of Karpenter's about an interruption. Karpenter sends one about the node too.
func (v *view) interrupts(e *corev1.Event) {
	if e.InvolvedObject.Kind != k8s.NodeClaim.Name || !interruptions[e.Reason] && e.Reason != "TerminatingOnInterruption" {
		return
	}
	of := v.taken[e.InvolvedObject.Name]
	if of == nil {
		of = &interruption{}
		v.taken[e.InvolvedObject.Name] = of
	}
	if e.Reason == "TerminatingOnInterruption" {
		of.ends = true
		return
	}
	switch e.Reason {
	case "SpotRebalanceRecommendation", "InstanceTerminating": // Karpenter ends no node for a recommendation
	case "InstanceStopping":
		of.stopped = true
	default:
		of.foreseen = true
	}
	if at := k8s.LastSeen(e); !at.Before(v.slot.begin) && at.Before(v.slot.end) {
		of.kinds = append(of.kinds, e.Reason)
	}
}

// counts reports whether an interruption of a kind is to be counted. Karpenter says that an instance is stopping or terminating of those
// too that it ends itself: that counts only if it ended the node for it, and if nothing has told of it before.
func (i *interruption) counts(kind string) bool {
	switch kind {
	case "InstanceStopping":
		return i.ends && !i.foreseen
	case "InstanceTerminating":
		return i.ends && !i.foreseen && !i.stopped
	}
	return true
}

// interrupted counts the interruptions by kind.
func (v *view) interrupted() map[string]int {
	counts := map[string]int{}
	for _, of := range v.taken {
		for _, kind := range of.kinds {
			if of.counts(kind) {
				counts[kind]++
			}
		}
	}
	return counts
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
