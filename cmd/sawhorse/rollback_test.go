package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	configURI   = "s3://config/racks/prod/pool.json"
	versionName = "karpenter_version"
	poolsName   = "additional_karpenter_nodepools_config"
)

// past returns a rack with six snapshots: as turnedOn has it; other labels; a config in S3; an upgrade of Karpenter; the pool late
// retired; another text in the same object.
func past(t *testing.T) *stage {
	s := turnedOn(t)
	write := func(uri, text string) { s.cloud.S3.Objects[strings.TrimPrefix(uri, "s3://")] = text }
	s.keeps(store.Summary{Karpenter: "1.10.0"}, nil)
	s.keeps(store.Summary{Karpenter: "1.10.0"}, nil, "karpenter_node_labels=a=c")
	write(configURI, `{"nodePool":{"weight":7}}`)
	s.keeps(store.Summary{Karpenter: "1.10.0"}, s.texts(configURI), "karpenter_config="+configURI)
	s.keeps(store.Summary{Karpenter: "1.12.1"}, s.texts(configURI), versionName+"=1.12.1")
	s.keeps(store.Summary{Karpenter: "1.12.1"}, s.texts(configURI), poolsName+"=")
	write(configURI, `{"nodePool":{"weight":9}}`)
	s.keeps(store.Summary{Karpenter: "1.12.1"}, s.texts(configURI))
	s.cloud.SSM.Versions[folder+versionName] = 1 // as a pass has seen it
	return s
}

// texts returns what is in S3 behind URIs.
func (s *stage) texts(uris ...string) map[string]string {
	all := map[string]string{}
	for _, uri := range uris {
		all[uri] = s.cloud.S3.Objects[strings.TrimPrefix(uri, "s3://")]
	}
	return all
}

// serves is a pass that writes the change, puts it into force and makes a snapshot of it.
func (s *stage) serves() {
	var change struct {
		Set   map[string]string `json:"set"`
		Unset []string          `json:"unset"`
		Note  string            `json:"note"`
	}
	place := "/sawhorse/racks/prod/change"
	if err := json.Unmarshal([]byte(s.cloud.SSM.Values[place]), &change); err != nil {
		s.Fatal(err)
	}
	for name, value := range change.Set {
		s.parameter(name, s.cloud.SSM.Versions[folder+name]+1)
		s.cloud.SSM.Values[folder+name] = value
	}
	for _, name := range change.Unset {
		s.parameter(name, s.cloud.SSM.Versions[folder+name]+1)
		s.cloud.SSM.Values[folder+name] = params.Unset
	}
	snapshot, nodes := s.status.Snapshot, s.status.Pools
	e := s.begins(fmt.Sprint("pass-", len(s.cloud.States.Executions))).reads("Planned", true, "nodepools").takes("nodepools", "done", "")
	s.reports(e, outcome.StateReconciled)
	s.status.Snapshot, s.status.Pools = snapshot, nodes
	s.status.Change = &store.ChangeStatus{Version: s.cloud.SSM.Versions[place], Outcome: store.ChangeWritten}
	e.ends()
	var uris []string
	for name, value := range s.cloud.SSM.Values {
		if strings.HasPrefix(name, folder) && strings.HasPrefix(value, "s3://") {
			uris = append(uris, value)
		}
	}
	s.keeps(store.Summary{Note: change.Note}, s.texts(uris...))
}

// goesBack goes back to a snapshot and returns what rollback has proposed and printed.
func (s *stage) goesBack(n int64, include ...string) (proposal, string) {
	s.Helper()
	p, objects, err := s.watcher().back(s.Context(), n, include)
	if err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	s.acts = []func(){s.serves}
	err = s.watcher().write(s.Context(), &carried{proposal: p}, application{yes: true}, objects, &out)
	if err != nil || len(s.acts) > 0 {
		s.Fatalf("back to %d: %v\n%s", n, err, out.String())
	}
	return p, out.String()
}

// inForce returns the values of a snapshot with the texts behind them; those of names are left out.
func (s *stage) inForce(n int64, without ...string) string {
	s.Helper()
	found, err := (&store.Store{DB: s.cloud.Table}).Snapshot(s.Context(), "prod", n)
	if err != nil || found == nil {
		s.Fatal(n, err)
	}
	all := map[string]string{}
	for name := range found.Params {
		if !slices.Contains(without, name) {
			all[name] = found.Text(name)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// Going back to each of the last five, and to the newest again, restores every value, over an upgrade of Karpenter, a pool that was
// retired, and a text in S3 that was overwritten. What it does to nodes is told beforehand; Karpenter's version stays unless it is named.
func TestRollbackToEachOfTheLastFiveAndBack(t *testing.T) {
	t.Parallel()
	for n, told := range map[int64]struct{ back, forward []string }{
		1: {[]string{"pool late is created", "pool workload is changed: Karpenter replaces its 12 nodes (NodePoolDrifted)"},
			[]string{"pool late is retired: ", "pool workload is changed: Karpenter replaces its 12 nodes (NodePoolDrifted)"}},
		2: {[]string{"pool late is created", "pool workload is changed: its 12 nodes stay"}, []string{"pool late is retired: "}},
		3: {[]string{"pool late is created", "pool workload is changed: its 12 nodes stay"}, []string{"pool late is retired: "}},
		4: {[]string{"pool late is created", "pool workload is changed: its 12 nodes stay"}, []string{"pool late is retired: "}},
		5: {[]string{"pool workload is changed: its 12 nodes stay"}, []string{"pool workload is changed: its 12 nodes stay"}},
	} {
		s := past(t)
		p, printed := s.goesBack(n)
		if got, want := s.inForce(7, versionName), s.inForce(n, versionName); got != want {
			t.Errorf("back to %d: %s\nwant %s", n, got, want)
		}
		if s.cloud.SSM.Values[folder+versionName] != "1.12.1" || (len(p.Kept) > 0) != (n < 4) {
			t.Errorf("back to %d: version %s, kept %q", n, s.cloud.SSM.Values[folder+versionName], p.Kept)
		}
		_, again := s.goesBack(6)
		if got, want := s.inForce(8), s.inForce(6); got != want {
			t.Errorf("from %d to the newest: %s\nwant %s", n, got, want)
		}
		for _, want := range told.back {
			if !strings.Contains(printed, want) {
				t.Errorf("back to %d lacks %q:\n%s", n, want, printed)
			}
		}
		for _, want := range told.forward {
			if !strings.Contains(again, want) {
				t.Errorf("from %d to the newest lacks %q:\n%s", n, want, again)
			}
		}
		if s.cloud.S3.Objects["config/racks/prod/pool.json"] != `{"nodePool":{"weight":9}}` {
			t.Errorf("back to %d: the object of others was overwritten", n)
		}
	}
}

// Karpenter's version goes back where it is named.
func TestRollbackOfKarpentersVersion(t *testing.T) {
	t.Parallel()
	s := past(t)
	p, _ := s.goesBack(3, versionName)
	if got, want := s.inForce(7, versionName), s.inForce(3); got != want || len(p.Kept) > 0 {
		t.Errorf("%s\nwant %s\nkept %q", got, want, p.Kept)
	}
	// It was not written then, and unset would leave the version of now.
	if version := s.cloud.SSM.Values[folder+versionName]; version != "1.10.0" {
		t.Errorf("version %s", version)
	}
}

// Karpenter was off before it was turned on, though nothing said so: unset would leave it on.
func TestRollbackToBeforeKarpenter(t *testing.T) {
	t.Parallel()
	for _, include := range [][]string{nil, {"karpenter_enabled"}} {
		s := turnedOn(t)
		on := s.cloud.SSM.Values[folder+"karpenter_enabled"]
		s.cloud.SSM.Values[folder+"karpenter_enabled"] = params.Unset
		s.keeps(store.Summary{}, nil)
		s.keeps(store.Summary{Karpenter: "1.10.0"}, nil, "karpenter_enabled="+on)
		p, _, err := s.watcher().back(t.Context(), 1, include)
		if err != nil {
			t.Fatal(err)
		}
		off := slices.ContainsFunc(p.Differs, func(d difference) bool { return d.Parameter == "karpenter_enabled" && d.Then == "false" })
		kept := slices.ContainsFunc(p.Kept, func(k string) bool {
			return strings.HasPrefix(k, "karpenter_enabled: it stays true, and snapshot 1 has false; ")
		})
		if off != (include != nil) || kept == off {
			t.Errorf("included %v: differs %v, kept %q", include, p.Differs, p.Kept)
		}
	}
}

// What writing it again cannot take back stays, whatever the snapshot had.
func TestRollbackKeepsWhatLasts(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	s.keeps(store.Summary{}, nil, "cluster_name=other", "karpenter_auth_mode=")
	s.keeps(store.Summary{}, nil, "cluster_name=prod", "karpenter_auth_mode=true")
	p, _, err := s.watcher().back(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, lasts := range []string{"cluster_name", "karpenter_auth_mode"} {
		if slices.ContainsFunc(p.Differs, func(d difference) bool { return d.Parameter == lasts }) ||
			!slices.ContainsFunc(p.Kept, func(k string) bool { return strings.HasPrefix(k, lasts+": it stays ") }) {
			t.Errorf("%s: differs %v, kept %q", lasts, p.Differs, p.Kept)
		}
	}
}

// Without the right to put the text into S3, nothing is written.
func TestRollbackWithoutTheRightToWriteToS3(t *testing.T) {
	t.Parallel()
	s := past(t)
	s.denied = "S3"
	p, objects, err := s.watcher().back(t.Context(), 3, nil)
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	var out bytes.Buffer
	err = s.watcher().write(t.Context(), &carried{proposal: p}, application{yes: true}, objects, &out)
	if exitCode(err) != 1 || !strings.Contains(err.Error(), "s3:PutObject") || s.cloud.SSM.Values["/sawhorse/racks/prod/change"] != "" {
		t.Errorf("%v", err)
	}
}
