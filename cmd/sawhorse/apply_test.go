package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// turnedOn returns a stage with a rack whose Karpenter is on, with pools that have nodes.
func turnedOn(t *testing.T) *stage {
	s := settled(t, outcome.StateReconciled)
	for name, value := range map[string]string{
		"karpenter_enabled": "true", "karpenter_auth_mode": "true", "karpenter_cpu_limit": "100", "node_type": "m5.large", "tags": "unset",
		"karpenter_config": `{"nodePool":{"weight":10}}`, "karpenter_node_labels": "a=b",
		"additional_karpenter_nodepools_config": `[{"name":"late"}]`,
	} {
		s.cloud.SSM.Values[folder+name], s.cloud.SSM.Versions[folder+name] = value, 1
	}
	s.status.Pools = store.Pools{{Pool: "workload", Nodes: 12, Ready: true}}
	return s
}

func (s *stage) proposes(text string, prune bool) (proposal, string) {
	s.Helper()
	p, err := s.watcher().propose(s.Context(), file(s.T, text), prune)
	if err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.show(&out, "text"); err != nil {
		s.Fatal(err)
	}
	return p, out.String()
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		text     string
		prune    bool
		accepted bool
		want     []string
	}{
		"nothing": {"karpenter_enabled=true\ntags=\nkarpenter_config={ \"nodePool\": {\"weight\": 10} }\nnode_disk=unset", false, true,
			[]string{"rack prod has these settings: nothing differs\n"}},
		"a limit": {"karpenter_cpu_limit=200\nkarpenter_enabled=true", false, true,
			[]string{"PARAMETER            NOW  THEN\nkarpenter_cpu_limit  100  200\n", "pool workload is changed: its 12 nodes stay"}},
		"what replaces nodes": {"karpenter_node_labels=", false, true,
			[]string{"karpenter_node_labels  a=b  unset\n", "pool workload is changed: Karpenter replaces its 12 nodes (NodePoolDrifted)"}},
		"a pool that the status does not have": {`additional_karpenter_nodepools_config=[{"name":"late","cpu_limit":8}]`, false, true,
			[]string{"pool late is changed: "}},
		"what is refused": {"karpenter_cpu_limit=many\nkarpenter_node_disk=7", false, false,
			[]string{"karpenter_cpu_limit  100    many\nkarpenter_node_disk  unset  7\n", `problem  karpenter_cpu_limit: `}},
		"with --prune": {"karpenter_cpu_limit=100", true, true, []string{
			"karpenter_config                       {\"nodePool\":{\"weight\":10}}  unset\n",
			"kept     karpenter_auth_mode: --prune does not unset it", "kept     karpenter_enabled: ",
			"node_type                              m5.large",
		}},
	} {
		s := turnedOn(t)
		p, text := s.proposes(c.text, c.prune)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: lacks %q:\n%s", what, want, text)
			}
		}
		if p.Differs == nil {
			t.Errorf("%s: JSON would have null", what)
		}
		if p.Accepted != c.accepted {
			t.Errorf("%s: accepted %t\n%s", what, p.Accepted, text)
		}
		if writes := s.cloud.Writes(); len(writes) > 0 {
			t.Errorf("%s: wrote %v", what, writes)
		}
	}
}

// A pool that had no nodes when the status was written may have some by now.
func TestDiffOfAPoolWithoutNodesInTheStatus(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	s.status.Pools = store.Pools{{Pool: "workload", Ready: true}}
	const want = "pool workload is changed: Karpenter replaces its nodes ("
	if _, text := s.proposes("karpenter_node_labels=", false); !strings.Contains(text, want) {
		t.Errorf("it says\n%s", text)
	}
}

// What is wrong already refuses nothing that is right: a brake can be written whatever is wrong elsewhere.
func TestDiffOfARackThatIsWrongElsewhere(t *testing.T) {
	t.Parallel()
	for text, accepted := range map[string]bool{
		"paused=true": true, "karpenter_freeze=true": true, "karpenter_cpu_limit=many": false, "karpenter_node_expiry=31d": false,
		"karpenter_node_expiry=unset": true,
	} {
		s := turnedOn(t)
		s.cloud.SSM.Values[folder+"karpenter_node_expiry"], s.cloud.SSM.Values[folder+"karpenter_node"] = "30d", "x"
		p, printed := s.proposes(text, false)
		if p.Accepted != accepted || !strings.Contains(printed, "problem  karpenter_node: ") {
			t.Errorf("%s: accepted %v\n%s", text, p.Accepted, printed)
		}
	}
	s := turnedOn(t)
	const wrong = `karpenter_config={"nodePool":{"foo":%d}}`
	_, s.cloud.SSM.Values[folder+"karpenter_config"], _ = strings.Cut(fmt.Sprintf(wrong, 1), "=")
	if p, printed := s.proposes(fmt.Sprintf(wrong, 2), false); p.Accepted {
		t.Errorf("wrong in the same words as before: accepted\n%s", printed)
	}
}

// JSON with a flaw differs from JSON without, also where a lenient reader finds the same in both, and is judged as it is written.
func TestDiffOfFlawedJSON(t *testing.T) {
	t.Parallel()
	const good, name = `{"nodePool":{"weight":10}}`, "karpenter_config"
	for _, flawed := range []string{good + "}", good + "]", `{"nodePool":{},"nodePool":{"weight":10}}`} {
		s := turnedOn(t)
		if p, text := s.proposes(name+"="+flawed, false); p.Accepted || len(p.Differs) != 1 {
			t.Errorf("%s\n%s", flawed, text)
		}
		s.cloud.SSM.Values[folder+name] = flawed
		if p, text := s.proposes(name+"="+good, false); !p.Accepted || len(p.Differs) != 1 {
			t.Errorf("%s in place of %s\n%s", good, flawed, text)
		}
	}
}

// The effect on nodes is that against what is in force, which is not what is written while the rack is paused, and which has Karpenter
// turned on where nothing says so any more.
func TestDiffAgainstWhatIsInForce(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ set, want string }{
		"paused=unset":            {"karpenter_node_labels=x=y", "pool workload is changed: Karpenter replaces its 12 nodes (NodePoolDrifted)"},
		"karpenter_enabled=false": {"karpenter_enabled=unset", "pool workload is removed: Karpenter drains and ends its 12 nodes"},
	} {
		s := turnedOn(t)
		s.keeps(store.Summary{Karpenter: "1.10.0"}, nil)
		name, value, _ := strings.Cut(c.set, "=")
		s.cloud.SSM.Values[folder+name], s.cloud.SSM.Values[folder+"paused"] = value, "true"
		if _, printed := s.proposes(text, false); !strings.Contains(printed, c.want) {
			t.Errorf("%s lacks %q:\n%s", text, c.want, printed)
		}
	}
}

// What is in S3 and stays as it is replaces and retires nothing. It is as the last snapshot has it; of another object nothing is known.
func TestDiffBesideWhatIsInS3(t *testing.T) {
	t.Parallel()
	const pools, config, stays = "s3://bucket/pools.json", "s3://bucket/config.json", "pool workload is changed: its 12 nodes stay\n"
	for text, want := range map[string]string{
		"karpenter_cpu_limit=200": stays,
		"karpenter_cpu_limit=200\nadditional_karpenter_nodepools_config=s3://bucket/others.json": stays,
	} {
		s := turnedOn(t)
		s.status.Pools = append(s.status.Pools, store.Pool{Pool: "gpu", Nodes: 20, Ready: true})
		s.keeps(store.Summary{Karpenter: "1.10.0"}, map[string]string{pools: `[{"name":"gpu"}]`, config: `{"nodePool":{"weight":20}}`},
			"additional_karpenter_nodepools_config="+pools, "karpenter_config="+config)
		if p, printed := s.proposes(text, false); !p.Accepted || !strings.HasSuffix(printed, want) || strings.Contains(printed, "pool gpu") {
			t.Errorf("%s:\n%s", text, printed)
		}
		const follows = "pool gpu is changed: Karpenter replaces its 20 nodes (NodeClassDrift)"
		if _, printed := s.proposes("karpenter_node_disk=50", false); !strings.Contains(printed, follows) {
			t.Errorf("what the pool in S3 inherits:\n%s", printed)
		}
	}
}

// A rack without karpenter_version keeps the version that it runs, and is judged by that.
func TestDiffOfARackThatKeepsItsVersion(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	s.status.Karpenter = "1.12.1"
	s.keeps(store.Summary{Karpenter: "1.12.1"}, nil)
	const together = `{"nodePool":{"weight":10},"ec2NodeClass":{"placementGroupSelector":{"name":"together"}}}`
	p, printed := s.proposes("karpenter_config="+together, false)
	if !p.Accepted || !strings.Contains(printed, "pool workload is changed: Karpenter replaces its 12 nodes") {
		t.Errorf("it says\n%s", printed)
	}
}

// What somebody writes between the table and the answer to its question is not overwritten.
func TestApplyAfterAWriteInBetween(t *testing.T) {
	t.Parallel()
	for what, between := range map[string]func(*stage){
		"written": func(s *stage) { s.cloud.SSM.Write(folder+"karpenter_cpu_limit", "500") },
		"made":    func(s *stage) { s.cloud.SSM.Write(folder+"paused", "true") },
		"deleted": func(s *stage) { delete(s.cloud.SSM.Values, folder+"node_type") },
	} {
		s := turnedOn(t)
		p, _ := s.proposes("karpenter_cpu_limit=200", false)
		between(s)
		err := s.watcher().write(t.Context(), &carried{proposal: p}, application{yes: true}, nil, io.Discard)
		change := s.cloud.SSM.Values["/sawhorse/racks/prod/change"]
		if exitCode(err) != 1 || !strings.Contains(err.Error(), "somebody else has written ") || change != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A replica that is behind what apply has shown is asked again.
func TestApplyWhileAReplicaIsBehind(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	p, _ := s.proposes("karpenter_cpu_limit=200", false)
	const name = folder + "node_type"
	delete(s.cloud.SSM.Values, name)
	s.acts = []func(){func() { s.cloud.SSM.Values[name] = "m5.large" }, s.serves}
	if err := s.watcher().write(t.Context(), &carried{proposal: p}, application{yes: true}, nil, io.Discard); err != nil {
		t.Error(err)
	}
}

// applied runs apply. change is the parameter change after it.
func (s *stage) applied(text string, how application) (change string, end error) {
	s.Helper()
	w := s.watcher()
	s.cloud.Forget()
	end = w.apply(s.Context(), file(s.T, text), how)
	return s.cloud.SSM.Values["/sawhorse/racks/prod/change"], end
}

func TestApplyWritesOneChangeAndFollowsIt(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	var e *execution
	s.acts = []func(){
		func() {
			e = s.begins("second")
			s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeWriting}
		},
		func() {
			s.parameter("karpenter_cpu_limit", 2)
			s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeWritten}
			e.reads("Planned", true, "nodepools").takes("nodepools", "done", "")
		},
		func() {
			change := s.status.Change
			s.reports(e, outcome.StateReconciled)
			s.status.Change = change
			e.ends()
		},
	}
	change, err := s.applied("karpenter_cpu_limit=200\nkarpenter_node_labels=unset\n", application{yes: true, note: "more"})
	concludes(t, err, "")
	if want := `{"note":"more","set":{"karpenter_cpu_limit":"200"},"unset":["karpenter_node_labels"]}`; change != want {
		t.Errorf("wrote %s, want %s", change, want)
	}
	if len(s.acts) > 0 {
		t.Error("it has not waited for the pass")
	}
}

// The versions of a parameter that was deleted begin at 1 again, while the status has the last change before that.
func TestApplyAfterTheParameterWasDeleted(t *testing.T) {
	t.Parallel()
	deleted := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, last := range []int64{1, 3} {
		s := turnedOn(t)
		s.status.Change = &store.ChangeStatus{Version: last, Modified: deleted, Outcome: store.ChangeWritten}
		refused := store.ChangeStatus{Version: 1, Modified: deleted.Add(time.Minute), Outcome: store.ChangeRefused}
		s.acts = []func(){func() { s.status.Generation++ }, func() { s.status.Change = &refused }}
		_, err := s.applied("karpenter_cpu_limit=200", application{yes: true})
		concludes(t, err, "the change is refused")
	}
}

func TestApplyTellsWhatBecameOfTheChange(t *testing.T) {
	t.Parallel()
	problem := []params.Problem{{Parameter: "karpenter_cpu_limit", Message: "no"}}
	for what, c := range map[string]struct {
		became store.ChangeStatus
		code   int
		text   string
	}{
		"refused":   {store.ChangeStatus{Version: 1, Outcome: store.ChangeRefused, Problems: problem}, 1, "the change is refused"},
		"given up":  {store.ChangeStatus{Version: 1, Outcome: store.ChangeIsGivenUp, Problems: problem}, 1, "given up"},
		"overtaken": {store.ChangeStatus{Version: 2, Outcome: store.ChangeWritten}, 3, "version 2 of the change has come after it"},
		"never":     {store.ChangeStatus{}, 3, "no pass has answered it for 10m0s"},
	} {
		s := turnedOn(t)
		s.acts = []func(){func() { s.status.Change = &c.became }}
		_, err := s.applied("karpenter_cpu_limit=200", application{yes: true})
		if concludes(t, err, c.text); exitCode(err) != c.code {
			t.Errorf("%s: exit code %d", what, exitCode(err))
		}
	}
}

func TestApplyThatWritesNothing(t *testing.T) {
	t.Parallel()
	long := `karpenter_config={"ec2NodeClass":{"userData":"` + strings.Repeat("#", 9000) + `"}}`
	for what, c := range map[string]struct {
		text string
		how  application
		code int
		want string
	}{
		"nothing differs": {"karpenter_cpu_limit=100", application{yes: true}, 0, ""},
		"a dry run":       {"karpenter_cpu_limit=200", application{dryRun: true}, 0, ""},
		"refused":         {"karpenter_cpu_limit=many", application{yes: true}, 1, ""},
		"no terminal":     {"karpenter_cpu_limit=200", application{}, 2, "add --yes"},
		"unreadable":      {"karpenter_cpu_limit", application{yes: true}, 2, "it has no names"},
		"too long":        {long, application{yes: true}, 1, "Parameter Store takes 8192"},
		"no settings":     {"# none", application{yes: true, prune: true}, 2, "--prune would unset all of the rack"},
	} {
		s := turnedOn(t)
		change, err := s.applied(c.text, c.how)
		if exitCode(err) != c.code || change != "" || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wrote %q", what, err, change)
		}
	}
	s := turnedOn(t)
	s.denied = "SSM"
	if _, err := s.applied("karpenter_cpu_limit=200", application{yes: true}); !errors.As(err, new(undecided)) {
		t.Errorf("%v", err)
	}
}
