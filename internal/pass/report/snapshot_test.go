package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const folder = "/sawhorse/racks/demo/params/"

// iteration saves the settings and the record of an iteration, as validate does.
func (s scene) iteration(generation int64, params map[string]string, run store.Run, changes ...store.WrittenBy) Event {
	s.Helper()
	settings := store.Settings{Rack: "demo", Values: store.Values{Params: params}, Changes: changes}
	s.must(s.store.SaveSettings(s.Context(), settings))
	run.Rack, run.Generation, run.Execution, run.Outcome, run.Values = "demo", generation, "me", "Planned", settings.Digest()
	s.must(s.store.SaveRun(s.Context(), run))
	e := event("Planned")
	e.Generation = generation
	return e
}

func (s scene) history() []store.Summary {
	s.Helper()
	all, err := store.History(s.Context(), s.store, "demo", true)
	s.must(err)
	return all
}

// A snapshot has what changed, who wrote that, and what it did to the pools. What a change wrote was written by whoever wrote the
// change, and what somebody wrote after it by that one.
func TestSnapshots(t *testing.T) {
	s := begin(t, store.Run{})
	s.must(s.store.SaveRecords(t.Context(), "demo", plan.Records{WasOn: true, Karpenter: plan.KarpenterRecord{Version: "1.12.1"}}))
	s.run(s.iteration(8, map[string]string{"node_disk": "20", "tags": "a=b"}, store.Run{}))
	if got := s.history(); len(got) != 1 || got[0].Number != 1 || len(got[0].Changed) != 0 || got[0].Karpenter != "1.12.1" {
		t.Fatalf("%+v", got)
	}
	s.cloud.SSM.User = "arn:aws:iam::1:user/a"
	s.cloud.SSM.Write("/sawhorse/racks/demo/change", "{}")
	s.cloud.SSM.User = "arn:aws:iam::1:role/change"
	for _, name := range []string{"node_disk", "karpenter_arch"} {
		s.cloud.SSM.Write(folder+name, "x")
	}
	s.cloud.SSM.User = "arn:aws:iam::1:user/b"
	s.cloud.SSM.Write(folder+"karpenter_arch", "y")
	effects := []plan.Effect{{Pool: "workload", Change: events.PoolChanged, Replaces: true, Nodes: new(3)}}
	e := s.iteration(9, map[string]string{"node_disk": "x", "karpenter_arch": "y"},
		store.Run{Effects: effects, Versions: map[string]int64{"node_disk": 1, "karpenter_arch": 2}},
		store.WrittenBy{Version: 1, Note: "more", Names: map[string]int64{"node_disk": 1, "karpenter_arch": 1}},
		store.WrittenBy{Version: 9, Note: "of another", Names: map[string]int64{"node_type": 1}})
	s.run(e)
	want := []store.Changed{
		{Parameter: "karpenter_arch", By: "arn:aws:iam::1:user/b"}, {Parameter: "node_disk", By: "arn:aws:iam::1:user/a"}, {Parameter: "tags"},
	}
	got := s.history()
	if len(got) != 2 || got[0].Number != 2 || got[0].Generation != 9 || got[0].Note != "more" || len(got[0].Pools) != 1 || got[0].Nodes != 3 ||
		len(got[0].Changed) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, changed := range got[0].Changed {
		if changed != want[i] {
			t.Errorf("%+v, want %+v", changed, want[i])
		}
	}
	if ref := s.status().Snapshot; ref == nil || *ref != (store.SnapshotRef{Number: 2, Table: "sawhorse"}) {
		t.Errorf("the status has %+v", ref)
	}
	t.Log("the same values again, and those of a pass that failed, are no snapshot")
	s.run(e)
	failed := s.iteration(10, map[string]string{"node_disk": "30"}, store.Run{})
	failed.Outcome, failed.Error = "Failed", "StepFailed"
	s.run(failed)
	if got := s.history(); len(got) != 2 || s.status().Snapshot.Number != 2 {
		t.Errorf("%+v, the status %+v", got, s.status().Snapshot)
	}
}

// A report that is stopped at any of its calls and repeated makes one snapshot.
func TestASnapshotOfAReportThatWasStopped(t *testing.T) {
	for stop := 0; ; stop++ {
		s := begin(t, store.Run{})
		s.run(s.iteration(8, map[string]string{"node_disk": "20"}, store.Run{}))
		e := s.iteration(9, map[string]string{"node_disk": "30"}, store.Run{})
		left := stop
		s.cloud.Before = func(string) error {
			if left--; left < 0 {
				return awsfake.Throttling
			}
			return nil
		}
		_, err := s.report.Run(t.Context(), e)
		s.cloud.Before = nil
		s.run(e)
		if got := s.history(); len(got) != 2 || got[0].Number != 2 || got[0].Generation != 9 {
			t.Errorf("stopped at call %d: %+v", stop, got)
		}
		if err == nil {
			break
		}
	}
}

// Values that are too large for an item are told once.
func TestValuesWithoutASnapshot(t *testing.T) {
	s := begin(t, store.Run{})
	random, text := rand.New(rand.NewPCG(1, 2)), strings.Builder{}
	for range 600_000 {
		text.WriteByte(byte(' ' + random.IntN(95)))
	}
	e := s.iteration(8, map[string]string{"karpenter_config": text.String()}, store.Run{})
	s.run(e)
	status := s.status()
	if len(s.history()) > 0 || status.Snapshot != nil || len(status.Warnings) != 1 ||
		!strings.Contains(status.Warnings[0].Message, "are kept as no snapshot") {
		t.Errorf("%+v", status)
	}
	s.run(s.iteration(9, map[string]string{"karpenter_config": "{}"}, store.Run{}))
	if len(s.history()) != 1 || s.status().Snapshot.Number != 1 || len(s.status().Warnings) > 0 {
		t.Errorf("%+v", s.status())
	}
}

func TestReplacedNodes(t *testing.T) {
	for _, c := range []struct {
		effects []plan.Effect
		nodes   int
		more    bool
	}{
		{[]plan.Effect{{Replaces: true, Nodes: new(5), Replaced: new(3)}, {Replaces: true, Nodes: new(2)}, {Nodes: new(7)}}, 5, false},
		{[]plan.Effect{{Replaces: true}}, 0, true},
		{[]plan.Effect{{Replaces: true, Nodes: new(2)}, {MayReplace: true, Nodes: new(7)}}, 2, true},
	} {
		if nodes, more := replaced(c.effects); nodes != c.nodes || more != c.more {
			t.Errorf("%+v: %d, %v", c.effects, nodes, more)
		}
	}
}

// Settings of another iteration are not taken for those in force.
func TestSettingsOfAnotherIteration(t *testing.T) {
	s := begin(t, store.Run{})
	e := s.iteration(8, map[string]string{"node_disk": "20"}, store.Run{})
	s.must(s.store.SaveSettings(t.Context(), store.Settings{Rack: "demo", Values: store.Values{Params: map[string]string{"node_disk": "30"}}}))
	s.run(e)
	if got := s.history(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// The snapshots of a rack that is forgotten go with its records.
func TestSnapshotsOfAForgottenRack(t *testing.T) {
	s := begin(t, store.Run{})
	s.run(s.iteration(8, map[string]string{"node_disk": "20"}, store.Run{}))
	s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: "me"}
	s.run(event("Forgotten"))
	for place := range s.cloud.Table.Items {
		if strings.HasPrefix(place, "snapshot#") || strings.HasSuffix(place, " settings") {
			t.Errorf("left: %s", place)
		}
	}
}
