package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func TestRollouts(t *testing.T) {
	s, cloud := store()
	if none, err := s.Rollout(t.Context(), "demo"); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	want := Rollout{
		Rack: "demo", Cluster: plan.Cluster{Name: "east"}, Names: []string{"workload"}, Generation: 7, Execution: "x", Started: clock,
		Applied: clock.Add(time.Minute), Pools: Pools{{Pool: "workload", Nodes: 3, Ready: true}},
	}
	must(t, s.SaveRollout(t.Context(), want))
	for _, rack := range []string{"c", "a"} {
		must(t, s.SaveRollout(t.Context(), Rollout{Rack: rack}))
	}
	all, err := s.Rollouts(t.Context())
	must(t, err)
	var racks []string
	for _, one := range all {
		racks = append(racks, one.Rack)
	}
	if want.revision = 1; strings.Join(racks, " ") != "a c demo" || !reflect.DeepEqual(all[2], want) {
		t.Errorf("%v, %+v", racks, all[2])
	}
	must(t, s.EndRollout(t.Context(), "demo"))
	if all, err := s.Rollouts(t.Context()); len(all) != 2 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	cloud.FailAt(1, awsfake.Throttling)
	_, err = s.Rollouts(t.Context())
	keepsCause(t, err, "rollouts: ")

	cloud.FailAt(0, nil)
	cloud.Table.Items[ownership.PartitionRollouts+" a"]["rollout"] = text("no record")
	all, err = s.Rollouts(t.Context())
	if len(all) != 1 || all[0].Rack != "c" || err == nil || !strings.Contains(err.Error(), "rack a: decode rollout") {
		t.Errorf("a record that cannot be decoded: %+v, %v", all, err)
	}
}

// Of two writers of a rollout, the second has to read again. A rollout that was deleted does not come back.
func TestTheSecondWriterOfARollout(t *testing.T) {
	s, _ := store()
	must(t, s.SaveRollout(t.Context(), Rollout{Rack: "demo"}))
	if err := s.SaveRollout(t.Context(), Rollout{Rack: "demo"}); !errors.Is(err, ErrRolloutChanged) {
		t.Errorf("a second first one: %v", err)
	}
	one, err := s.Rollout(t.Context(), "demo")
	must(t, err)
	other := *one
	if !one.Same(other) {
		t.Error("not the same")
	}
	must(t, s.SaveRollout(t.Context(), *one))
	if err := s.SaveRollout(t.Context(), other); !errors.Is(err, ErrRolloutChanged) {
		t.Errorf("the second writer: %v", err)
	}
	again, err := s.Rollout(t.Context(), "demo")
	must(t, err)
	if again.Same(other) {
		t.Error("the same after a write")
	}
	must(t, s.EndRollout(t.Context(), "demo"))
	if err := s.SaveRollout(t.Context(), *again); !errors.Is(err, ErrRolloutChanged) {
		t.Errorf("after its end: %v", err)
	}
}

func TestRewrites(t *testing.T) {
	s, _ := store()
	status := Status{Rack: "demo"}
	must(t, s.SaveStatus(t.Context(), status, "", Reported{}.Wrote(status, "first")))
	reported, err := s.Reported(t.Context(), "demo")
	must(t, err)
	if done, err := s.Rewrites(t.Context(), "demo", reported, "second"); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if done, err := s.Rewrites(t.Context(), "demo", reported, "third"); done || err != nil { // the text is not "first" any more
		t.Errorf("%v, %v", done, err)
	}
	after, err := s.Reported(t.Context(), "demo")
	must(t, err)
	if !after.Published("second") || !after.Same(status) {
		t.Errorf("%+v", after)
	}
}

// The pass's own record has neither pools nor rollout, so that what the nodes do makes no pass report.
func TestWithIsForTheParameterOnly(t *testing.T) {
	status := Status{Rack: "demo", State: outcome.StateReconciled}
	rollout := &Rollout{Generation: 7, Started: clock, Pools: Pools{{Pool: "b", Ready: true}, {Pool: "a", Reason: "r"}}}
	with := status.With(rollout)
	if with.State != outcome.StateDegraded || with.Pools[0].Pool != "a" ||
		*with.Rollout != (Progress{Generation: 7, Started: "2026-01-02T03:04:05Z"}) {
		t.Errorf("%+v", with)
	}
	if status.State != outcome.StateReconciled || status.Pools != nil || status.Rollout != nil || rollout.Pools[0].Pool != "b" {
		t.Errorf("it changed what it was given: %+v, %+v", status, rollout)
	}
	if same := status.With(nil); !reflect.DeepEqual(same, status) {
		t.Errorf("%+v", same)
	}
	rollout.Ended, rollout.Pools = clock.Add(time.Hour), Pools{{Pool: "a", Ready: true}}
	if with := status.With(rollout); with.State != outcome.StateReconciled || with.Rollout.Ended != "2026-01-02T04:04:05Z" {
		t.Errorf("%+v", with)
	}
}

// A hundred pools do not fit. Those with something to tell stay longer than warnings, and the others go first.
func TestStatusOfManyPools(t *testing.T) {
	status := Status{Rack: "demo", State: outcome.StateReconciled,
		Warnings: []params.Problem{{Parameter: "p", Message: strings.Repeat("w", 1000)}}}
	rollout := &Rollout{}
	for i := range 100 {
		pool := Pool{Pool: fmt.Sprintf("pool-%03d-%s", i, strings.Repeat("x", 50)), Nodes: 1000, Ready: true}
		if i%10 == 0 {
			pool.Outdated, pool.Since = 1000, "2026-01-02T03:04:05Z"
		}
		rollout.Pools = append(rollout.Pools, pool)
	}
	rollout.Pools[99].Ready, rollout.Pools[99].Reason = false, strings.Repeat("r", 300)
	decoded := func() (got Status) {
		text, err := status.With(rollout).Text()
		must(t, err)
		if len(text) > MaxStatus {
			t.Errorf("%d bytes", len(text))
		}
		must(t, json.Unmarshal([]byte(text), &got))
		return got
	}
	got := decoded()
	if got.State != outcome.StateDegraded || len(got.Warnings) != 1 || len(got.Pools) < 11 || got.Omitted != 100-len(got.Pools) ||
		got.Pools[0].Reason == "" || got.Pools[10].Outdated == 0 {
		t.Errorf("%d warnings, %d pools, %d left out", len(got.Warnings), len(got.Pools), got.Omitted)
	}
	for i := range rollout.Pools {
		rollout.Pools[i].Outdated, rollout.Pools[i].Since = 1000, "2026-01-02T03:04:05Z"
	}
	if got := decoded(); len(got.Warnings) != 0 || len(got.Pools) < 20 || got.Omitted != 101-len(got.Pools) {
		t.Errorf("%d warnings, %d pools, %d left out", len(got.Warnings), len(got.Pools), got.Omitted)
	}
	for i := range rollout.Pools {
		rollout.Pools[i].Reason = strings.Repeat("<", 300)
	}
	status.Problems = []params.Problem{{Parameter: "p", Message: strings.Repeat("<", 5000)}}
	if got := decoded(); len(got.Problems) != 1 || got.Omitted != 101 {
		t.Errorf("%d problems, %d left out", len(got.Problems), got.Omitted)
	}
}
