package rollout

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Each interruption is counted by the tick that was due after it, with the kind that Karpenter says; a call that is no tick counts none.
func TestInterruptions(t *testing.T) {
	s := begin(t, "workload")
	s.runs(claim("a", "workload", "1", "1"))
	of := "a"
	says := func(name, kind, reason string, at time.Time) {
		event := object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": name, "namespace": "default"}, "reason": reason,
			"message": "it was triggered", "lastTimestamp": at.Format(time.RFC3339), "involvedObject": object{"kind": kind, "name": of},
			"source": object{"component": "karpenter"}}
		s.Create(event)
	}
	slot := start.Add(5 * time.Minute)
	due := func(minutes int) Event {
		return Event{Time: slot.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339), Minutes: 5}
	}
	says("1", "NodeClaim", "SpotInterrupted", slot)
	says("2", "Node", "SpotInterrupted", slot)
	says("3", "NodeClaim", "SpotInterrupted", slot.Add(299*time.Second))
	says("4", "NodeClaim", "InstanceUnhealthy", slot.Add(time.Minute))
	says("5", "NodeClaim", "SpotInterrupted", slot.Add(5*time.Minute)) // the next tick's
	says("6", "NodeClaim", "SpotInterrupted", slot.Add(-time.Second))
	says("7", "NodeClaim", "Launched", slot)
	of = "b" // Karpenter ends it itself
	says("8", "NodeClaim", "InstanceTerminating", slot)
	of = "c" // it is ended by hand
	says("9", "NodeClaim", "InstanceTerminating", slot)
	says("10", "NodeClaim", "TerminatingOnInterruption", slot)
	of = "d" // the end of a spot instance whose interruption was counted before
	says("11", "NodeClaim", "SpotInterrupted", slot.Add(-2*time.Second))
	says("12", "NodeClaim", "TerminatingOnInterruption", slot.Add(-2*time.Second))
	says("13", "NodeClaim", "InstanceTerminating", slot)
	of = "e" // stopped by hand: its end is no other one
	says("14", "NodeClaim", "InstanceStopping", slot)
	says("15", "NodeClaim", "TerminatingOnInterruption", slot)
	says("16", "NodeClaim", "InstanceTerminating", slot.Add(time.Minute))
	of = "f" // ended by hand after a recommendation, for which Karpenter does nothing
	says("17", "NodeClaim", "SpotRebalanceRecommendation", slot.Add(-time.Hour))
	says("18", "NodeClaim", "TerminatingOnInterruption", slot)
	says("19", "NodeClaim", "InstanceTerminating", slot)
	all := map[string]int{"SpotInterrupted": 2, "InstanceUnhealthy": 1, "InstanceTerminating": 2, "InstanceStopping": 1}
	for _, c := range []struct {
		event Event
		at    time.Duration
		want  map[string]int
	}{
		{due(5), 5 * time.Minute, all},
		{due(5), 9 * time.Minute, all}, // a late tick
		{due(10), 10 * time.Minute, map[string]int{"SpotInterrupted": 1}},
		{Event{}, 5 * time.Minute, nil},
	} {
		s.clock = slot.Add(c.at)
		s.measured.Reset()
		answer, err := s.rollout.Run(t.Context(), c.event)
		s.must(err)
		if !reflect.DeepEqual(answer.Interrupted, c.want) {
			t.Errorf("%+v after %s: %v, want %v", c.event, c.at, answer.Interrupted, c.want)
		}
		for kind := range c.want {
			if !strings.Contains(s.measured.String(), `"Kind":"`+kind+`"`) {
				t.Errorf("measured %s", s.measured)
			}
		}
	}
}

// EC2 may take the last node of a rack: the tick after that still counts it, and no later one does.
func TestTheLastNodeIsInterrupted(t *testing.T) {
	s := begin(t, "workload")
	last := claim("a", "workload", "1", "1")
	s.runs(last)
	slot := start.Add(5 * time.Minute)
	for i, want := range []int{0, 1, 0} {
		at := slot.Add(time.Duration(5*i) * time.Minute)
		s.clock = at
		answer, err := s.rollout.Run(t.Context(), Event{Time: at.Format(time.RFC3339), Minutes: 5})
		s.must(err)
		if answer.Interrupted["SpotInterrupted"] != want {
			t.Errorf("tick %d: %v, want %d", i, answer.Interrupted, want)
		}
		if i == 0 {
			s.Create(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "1", "namespace": "default"},
				"reason": "SpotInterrupted", "message": "it was triggered", "lastTimestamp": slot.Add(time.Minute).Format(time.RFC3339),
				"involvedObject": object{"kind": "NodeClaim", "name": "a"}, "source": object{"component": "karpenter"}})
			s.Remove(last)
		}
	}
}
