package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// rehearsed runs apply --dry-run. The dry pass has answered when the command looks for it for the third time.
func (s *stage) rehearsed(text, answer string) (carried, error) {
	s.Helper()
	s.begins("of another event").ends()
	s.acts = []func(){nil, func() {
		e := s.starts("dry")
		e.Input = `{"id":"event-1","detail-type":"Rack Reconcile Requested","detail":{"rack":"prod","dryRun":true}}`
		if e.enters("Validate", "{}"); answer != "" {
			e.answers(`{"outcome":"DryRun","steps":[],"dryRun":` + answer + `}`)
		}
		e.ends()
	}}
	w := s.watcher()
	p, err := w.propose(s.Context(), file(s.T, text), false)
	if err != nil {
		s.Fatal(err)
	}
	s.cloud.Forget()
	done := carried{proposal: p}
	var out strings.Builder
	err = w.write(s.Context(), &done, application{dryRun: true}, nil, &out)
	s.Log(out.String())
	return done, err
}

// What a dry pass says of the cluster takes the place of what the command judges without it.
func TestApplyDryRunIsJudgedByADryPass(t *testing.T) {
	t.Parallel()
	s := turnedOn(t)
	done, err := s.rehearsed("karpenter_cpu_limit=200\nkarpenter_node_labels=unset", `{"rack":"prod","dryRun":true,"steps":["nodepools"],
		"pools":[{"pool":"workload","change":"changed","nodes":3,"replaced":2}],
		"warnings":[{"parameter":"rack","message":"seen in the cluster"}]}`)
	if err != nil || !done.Accepted || done.DryRun == nil || !slices.Equal(done.DryRun.Steps, []string{"nodepools"}) ||
		len(done.Warnings) != 1 || len(done.Pools) != 1 || *done.Pools[0].Nodes != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	var asked events.ReconcileRequested
	sent := s.cloud.Events.Sent
	if len(sent) != 1 || json.Unmarshal([]byte(*sent[0].Detail), &asked) != nil || !asked.DryRun || asked.Rack != "prod" ||
		asked.Set["karpenter_cpu_limit"] != "200" || !slices.Equal(asked.Unset, []string{"karpenter_node_labels"}) ||
		*sent[0].EventBusName != "sawhorse" {
		t.Errorf("%+v", asked)
	}
	if len(s.acts) > 0 || slices.ContainsFunc(s.cloud.Writes(), func(call string) bool { return strings.HasPrefix(call, "SSM.") }) {
		t.Errorf("wrote %v", s.cloud.Writes())
	}
	s = turnedOn(t)
	done, err = s.rehearsed("karpenter_cpu_limit=200", `{"rack":"prod","problems":[{"parameter":"karpenter_cpu_limit","message":"not here"}]}`)
	if exitCode(err) != 1 || done.Accepted || len(done.Problems) != 1 {
		t.Errorf("refused by the dry pass: %+v, %v", done, err)
	}
	s = turnedOn(t)
	s.status.Problems = []params.Problem{{Parameter: "karpenter_enabled", Message: "a group is not dedicated"}}
	done, err = s.rehearsed("karpenter_freeze=true",
		`{"rack":"prod","problems":[{"parameter":"karpenter_enabled","message":"a group is not dedicated"}]}`)
	if err != nil || !done.Accepted {
		t.Errorf("a brake, and what the cluster has wrong without it: %+v, %v", done, err)
	}
}

// A dry pass says what is due, also of a rack that is paused, where no pass does it.
func TestApplyDryRunOfARackThatIsPaused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, stopped := range []string{"paused", ""} {
		out.Reset()
		showSteps(&out, events.Pass{Steps: []string{"nodepools"}}, stopped)
		if strings.HasPrefix(out.String(), "paused: a pass would report these steps, and take none of them\n") != (stopped != "") {
			t.Errorf("stopped %q: %s", stopped, out.String())
		}
	}
	s := turnedOn(t)
	s.cloud.SSM.Values[folder+"paused"] = "true"
	for text, stopped := range map[string]string{"karpenter_cpu_limit=200": "paused", "paused=unset": ""} {
		if p, _ := s.proposes(text, false); p.stopped != stopped {
			t.Errorf("%s: stopped %q", text, p.stopped)
		}
	}
	s.status.Brakes = []string{"hold"}
	if p, _ := s.proposes("paused=unset", false); p.stopped != "held" {
		t.Errorf("held: stopped %q", p.stopped)
	}
}

// Without the right to put events, or without an answer, the judgement stands that needs no cluster.
func TestApplyDryRunWithoutADryPass(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(*stage){
		"no right to put events":    func(s *stage) { s.denied = "Events" },
		"refused by EventBridge":    func(s *stage) { s.cloud.Events.Refuse = "no" },
		"no right to see passes":    func(s *stage) { s.cloud.Before = deniedFrom(s, "StepFunctions.ListExecutions") },
		"it ends without an answer": func(*stage) {},
	} {
		s := turnedOn(t)
		prepare(s)
		done, err := s.rehearsed("karpenter_node_labels=unset", "")
		if err != nil || !done.Accepted || done.DryRun != nil || len(done.Pools) != 1 || *done.Pools[0].Nodes != 12 {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
	}
	s := turnedOn(t)
	if done, err := s.rehearsed("karpenter_cpu_limit=many", "{}"); exitCode(err) != 1 || done.Accepted || len(s.cloud.Events.Sent) > 0 {
		t.Errorf("what is refused without the cluster asks for none: %+v, %v", done, err)
	}
}

// deniedFrom denies the calls that begin with a text.
func deniedFrom(s *stage, text string) func(string) error {
	return func(call string) error {
		if s.denied = ""; strings.HasPrefix(call, text) {
			s.denied = "StepFunctions"
		}
		return s.before(call)
	}
}
