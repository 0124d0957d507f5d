package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// keeps adds the rack's next snapshot, with some values set, or unset where they are empty, and writes them to Parameter Store.
func (s *stage) keeps(summary store.Summary, objects map[string]string, set ...string) {
	s.Helper()
	for _, one := range set {
		name, value, _ := strings.Cut(one, "=")
		if s.cloud.SSM.Values[folder+name] = value; value == "" {
			s.cloud.SSM.Values[folder+name] = params.Unset
		}
	}
	values := map[string]string{}
	for name, value := range s.cloud.SSM.Values {
		if name, is := strings.CutPrefix(name, folder); is {
			values[name] = value
		}
	}
	summary.Number = 1
	if s.status.Snapshot != nil {
		summary.Number = s.status.Snapshot.Number + 1
	}
	kept := store.Snapshot{Summary: summary, Values: store.Values{Params: effective("prod", values, store.Snapshot{}), Objects: objects}}
	records := &store.Store{DB: s.cloud.Table, Name: "records"}
	if err := records.AddSnapshot(s.Context(), "prod", kept); err != nil {
		s.Fatal(err)
	}
	s.status.Snapshot = &store.SnapshotRef{Number: summary.Number, Table: "records"}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	all := []store.Summary{
		{Number: 3, Time: at.Add(time.Hour), Karpenter: "1.12.1", Note: "more", Changed: []store.Changed{
			{Parameter: "a", By: "arn:aws:iam::1:user/x"}, {Parameter: "b", By: "arn:aws:iam::1:user/x"}, {Parameter: "c"}, {Parameter: "d"}},
			Nodes: 3, More: true},
		{Number: 2, Time: at, Karpenter: "1.10.0", More: true, Changed: []store.Changed{
			{Parameter: "node_disk", By: "arn:aws:sts::1:assumed-role/ops/jo"}}},
		{Number: 1, Time: at},
	}
	var out bytes.Buffer
	if err := listSnapshots(&out, all); err != nil {
		t.Fatal(err)
	}
	want := `SNAPSHOT  TIME                  KARPENTER  CHANGED          NODES      BY                   NOTE
3         2026-11-21T09:00:00Z  1.12.1     a, b and 2 more  3 or more  user/x               more
2         2026-11-21T08:00:00Z  1.10.0     node_disk        some       assumed-role/ops/jo  -
1         2026-11-21T08:00:00Z  off        -                0          -                    -
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	s := turnedOn(t)
	if err := s.watcher().history(t.Context(), "text"); exitCode(err) != 1 || !strings.Contains(err.Error(), "has no snapshot") {
		t.Errorf("%v", err)
	}
}

func TestDiffOfSnapshots(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	s.keeps(store.Summary{}, map[string]string{"s3://b/c.json": "{}"}, "karpenter_config=s3://b/c.json", "karpenter_cpu_limit=100")
	s.keeps(store.Summary{}, map[string]string{"s3://b/c.json": "[]"}, "karpenter_cpu_limit=200", "node_type=")
	s.cloud.SSM.Values[folder+"karpenter_cpu_limit"] = "300"
	for _, c := range []struct {
		numbers []int64
		want    []altered
	}{
		{[]int64{1, 2}, []altered{{"karpenter_config", "s3://b/c.json", "s3://b/c.json", true}, {"karpenter_cpu_limit", "100", "200", false},
			{"node_type", "m5.large", "unset", false}}},
		{[]int64{2}, []altered{{"karpenter_cpu_limit", "200", "300", false}}},
		{[]int64{2, 2}, []altered{}},
	} {
		got, err := s.watcher().comparison(t.Context(), c.numbers)
		if err != nil || !slices.Equal(got.Differs, c.want) {
			t.Errorf("%v: %+v, %v", c.numbers, got, err)
		}
		var out bytes.Buffer
		row := "karpenter_config     s3://b/c.json  another text\n"
		if err := got.show(&out); err != nil || len(c.want) == 3 && !strings.Contains(out.String(), row) {
			t.Errorf("%s, %v", out.String(), err)
		}
	}
	if _, err := s.watcher().comparison(t.Context(), []int64{7}); exitCode(err) != 1 {
		t.Errorf("%v", err)
	}
	for args, good := range map[string]bool{
		"prod@1": true, "prod@1 prod@2": true, "prod file": true, "prod": false, "prod@": false, "prod@0": false, "prod@x": false,
		"prod@1 file": false, "prod@1 other@2": false, "prod@1 prod@2 prod@3": false, "Prod@1": false,
	} {
		if err := toCompare(nil, strings.Fields(args)); (err == nil) != good {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Going back sets what the snapshot had, unsets what it had not, and says of nodes and of what is left out what that means.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	s.keeps(store.Summary{}, nil, "karpenter_version=1.10.0")
	s.keeps(store.Summary{}, nil, "karpenter_node_labels=a=c", "karpenter_node_disk=50", "karpenter_version=1.12.1", "node_type=")
	p, objects, err := s.watcher().back(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []difference{{"karpenter_node_disk", "50", "unset"}, {"karpenter_node_labels", "a=c", "a=b"}, {"node_type", "unset", "m5.large"}}
	if !slices.Equal(p.Differs, want) || len(objects) > 0 || s.watcher().expected(p) != 2 || !p.Accepted {
		t.Errorf("%+v, %v", p, objects)
	}
	var out bytes.Buffer
	if err := p.show(&out, "text"); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"kept     karpenter_version: it stays 1.12.1, and snapshot 1 has 1.10.0; --include karpenter_version goes back with it\n",
		"pool workload is changed: Karpenter replaces its 12 nodes",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("lacks %q:\n%s", part, out.String())
		}
	}
	if p, _, err = s.watcher().back(t.Context(), 1, []string{"karpenter_version"}); err != nil || len(p.Kept) > 0 ||
		!slices.Contains(p.Differs, difference{"karpenter_version", "1.12.1", "1.10.0"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, _, err := s.watcher().back(t.Context(), 2, nil); err != nil || len(p.Differs)+len(p.Kept) > 0 {
		t.Errorf("to the last one: %+v, %v", p, err)
	}
	t.Log("what was written since the last snapshot cannot be expected")
	s.cloud.SSM.Values[folder+"karpenter_cpu_limit"] = "300"
	if p, _, err := s.watcher().back(t.Context(), 1, nil); err != nil || s.watcher().expected(p) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A text that was in S3 goes back under its hash, unless it is still where it was.
func TestRollbackOfATextInS3(t *testing.T) {
	t.Parallel()
	const uri, weight = "s3://config/racks/prod/pool.json", `{"nodePool":{"weight":7}}`
	s := turnedOn(t)
	s.keeps(store.Summary{}, map[string]string{uri: weight}, "karpenter_config="+uri)
	s.keeps(store.Summary{}, map[string]string{uri: weight}, "karpenter_cpu_limit=200")
	s.keeps(store.Summary{}, map[string]string{uri: `{}`})
	s.keeps(store.Summary{}, nil, "karpenter_config=")
	place := ""
	p, objects, err := s.watcher().back(t.Context(), 1, nil)
	if err != nil || len(p.Differs) != 2 || len(objects) != 1 {
		t.Fatalf("%+v, %v, %v", p, objects, err)
	}
	for at, text := range objects {
		if place = at; !strings.HasPrefix(at, "s3://config/racks/prod/") || len(at) != len("s3://config/racks/prod/.json")+64 || text != weight {
			t.Errorf("%s is put to %s", text, at)
		}
	}
	s.keeps(store.Summary{}, maps.Clone(objects), "karpenter_config="+place)
	if p, objects, err := s.watcher().back(t.Context(), 2, nil); err != nil || len(p.Differs) > 0 || len(objects) > 0 {
		t.Errorf("there again: %+v, %v, %v", p, objects, err)
	}
}

// A text in S3 may have changed in place since the last snapshot, if a pass has refused it or failed: nothing counts as what it was.
func TestATextInS3OfARejectedRack(t *testing.T) {
	t.Parallel()
	const uri, weight = "s3://config/racks/prod/pool.json", `{"nodePool":{"weight":7}}`
	for _, state := range []outcome.State{outcome.StateReconciled, outcome.StateRejected, outcome.StateFailed} {
		settled := state == outcome.StateReconciled
		s := turnedOn(t)
		s.keeps(store.Summary{}, map[string]string{uri: weight}, "karpenter_config="+uri)
		s.status.State = state
		p, objects, err := s.watcher().back(t.Context(), 1, nil)
		if err != nil || (len(p.Differs) == 0) != settled || (len(objects) == 0) != settled {
			t.Errorf("%s: back to it: %+v, %v, %v", state, p.Differs, objects, err)
		}
		s.acts = []func(){func() { s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeRefused} }}
		if change, _ := s.applied("karpenter_freeze=true", application{yes: true}); strings.Contains(change, "expect") != settled {
			t.Errorf("%s: wrote %s", state, change)
		}
	}
}

// A value that is not taken any more is told before anything is written, and so is a name that is gone.
func TestRollbackThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"karpenter_cpu_limit": "many", "karpenter_of_before": "1"} {
		s := turnedOn(t)
		s.keeps(store.Summary{}, nil)
		was, err := (&store.Store{DB: s.cloud.Table}).Snapshot(t.Context(), "prod", 1)
		if err != nil {
			t.Fatal(err)
		}
		was.Number, was.Params[name] = 2, value
		if err := (&store.Store{DB: s.cloud.Table}).AddSnapshot(t.Context(), "prod", *was); err != nil {
			t.Fatal(err)
		}
		p, objects, err := s.watcher().back(t.Context(), 2, nil)
		if err != nil || p.Accepted || len(p.Problems) != 1 || p.Problems[0].Parameter != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		s.cloud.Forget()
		if err := s.watcher().carry(t.Context(), p, application{yes: true}, objects); exitCode(err) != 1 || len(s.cloud.Writes()) > 0 {
			t.Errorf("%s: %v, wrote %v", name, err, s.cloud.Writes())
		}
	}
}

// apply says from which snapshot the operator has seen the rack.
func TestApplyExpectsTheSnapshotThatItHasRead(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"":    `{"expect":1,"set":{"karpenter_cpu_limit":"200"}}`,
		"300": `{"set":{"karpenter_cpu_limit":"200"}}`, // it is not in force yet
	} {
		s := turnedOn(t)
		s.keeps(store.Summary{}, nil)
		if written != "" {
			s.cloud.SSM.Values[folder+"karpenter_cpu_limit"] = written
		}
		s.acts = []func(){func() { s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeRefused} }}
		if change, _ := s.applied("karpenter_cpu_limit=200", application{yes: true}); change != want {
			t.Errorf("wrote %s, want %s", change, want)
		}
	}
}
