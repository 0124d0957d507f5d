package store

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A step that runs again must not record its own work as the baseline.
func TestOnlyTheFirstBaselineCounts(t *testing.T) {
	s, _ := store()
	must(t, s.Baselines().RecordOnce(t.Context(), "demo", "nodegroup/build", []byte("before")))
	must(t, s.Baselines().RecordOnce(t.Context(), "demo", "nodegroup/build", []byte("our own work")))
	must(t, s.Baselines().RecordOnce(t.Context(), "other", "nodegroup/build", []byte("another rack's")))
	value, ok, err := s.Baselines().Get(t.Context(), "demo", "nodegroup/build")
	if err != nil || !ok || string(value) != "before" {
		t.Errorf("%q, %v, %v", value, ok, err)
	}
	must(t, s.Baselines().Forget(t.Context(), "demo", "nodegroup/build"))
	must(t, s.Baselines().Forget(t.Context(), "demo", "nodegroup/build"))
	if _, ok, err := s.Baselines().Get(t.Context(), "demo", "nodegroup/build"); ok || err != nil {
		t.Errorf("after Forget: %v, %v", ok, err)
	}
	must(t, s.Baselines().RecordOnce(t.Context(), "demo", "nodegroup/build", []byte("the next time")))
	if value, _, _ := s.Baselines().Get(t.Context(), "demo", "nodegroup/build"); string(value) != "the next time" {
		t.Errorf("%q", value)
	}
}

// Replace is one write, which leaves no moment without a record.
func TestABaselineIsReplacedInOneWrite(t *testing.T) {
	s, cloud := store()
	must(t, s.Baselines().RecordOnce(t.Context(), "demo", "a", []byte("1")))
	cloud.Forget()
	must(t, s.Baselines().Replace(t.Context(), "demo", "a", []byte("2")))
	if writes := cloud.Writes(); len(writes) != 1 {
		t.Errorf("%v", writes)
	}
	if got, ok, err := s.Baselines().Get(t.Context(), "demo", "a"); err != nil || !ok || string(got) != "2" {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
}

// A baseline may be empty. That it exists is what matters.
func TestEmptyBaseline(t *testing.T) {
	s, _ := store()
	must(t, s.Baselines().RecordOnce(t.Context(), "demo", "tag/subnet-a", nil))
	if value, ok, err := s.Baselines().Get(t.Context(), "demo", "tag/subnet-a"); err != nil || !ok || len(value) != 0 {
		t.Errorf("%q, %v, %v", value, ok, err)
	}
}

// The state before a change and the work under way have names of their own.
func TestCheckpointsAreNoBaselines(t *testing.T) {
	s, _ := store()
	must(t, s.Checkpoints().RecordOnce(t.Context(), "demo", "autoscaler", nil))
	if _, ok, err := s.Baselines().Get(t.Context(), "demo", "autoscaler"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestBaselineThatCannotBeKeptIsAnError(t *testing.T) {
	s, cloud := store()
	cloud.FailAt(1, awsfake.Throttling)
	keepsCause(t, s.Baselines().RecordOnce(t.Context(), "demo", "x", nil), "rack demo: ")
}

// A version does not change what a later one wrote.
func TestRecordsOfOtherVersions(t *testing.T) {
	s, cloud := store()
	must(t, s.SaveRecords(t.Context(), "demo", plan.Records{WasOn: true}))
	kept := cloud.Table.Items["rack#demo records"]
	if r, err := s.Records(t.Context(), "demo"); err != nil || !r.WasOn {
		t.Errorf("%+v, %v", r, err)
	}
	kept["format"] = number(recordsReadable + 1)
	if _, err := s.Records(t.Context(), "demo"); err == nil || !strings.Contains(err.Error(), "rack demo: read records: a later version") ||
		!strings.Contains(err.Error(), "deploy that version again") {
		t.Errorf("%v", err)
	}
}

// What a release has written, a later one reads whole, until the format has another number. If this fails for the sample of
// the format that is written, a field was renamed, removed or added: give the format another number, which the release
// before must read already, or leave the field out where it is empty.
func TestSamplesOfTheRecords(t *testing.T) {
	for format := recordsFormat; format <= recordsReadable; format++ {
		sample, err := os.ReadFile(fmt.Sprintf("testdata/records-%d.json", format))
		must(t, err)
		var attributes map[string]string
		must(t, json.Unmarshal(sample, &attributes))
		var applied map[string]string
		must(t, json.Unmarshal([]byte(attributes["applied"]), &applied))
		values, steps := key("demo", "records"), item{}
		for step, fingerprint := range applied {
			steps[step] = text(fingerprint)
		}
		for name, value := range attributes {
			values[name] = text(value)
		}
		values["format"], values["applied"] = number(int64(format)), &types.AttributeValueMemberM{Value: steps}

		s, cloud := store()
		cloud.Table.Items["rack#demo records"] = values
		records, err := s.Records(t.Context(), "demo")
		must(t, err)
		must(t, s.SaveRecords(t.Context(), "demo", records))
		for name, value := range values {
			if got := cloud.Table.Items["rack#demo records"][name]; format == recordsFormat && !reflect.DeepEqual(got, value) {
				t.Errorf("%s of the sample of format %d is written again as %s, not %s", name, format, canonical.JSON(got), canonical.JSON(value))
			}
		}
	}
}

func TestPlanRoundTrip(t *testing.T) {
	s, cloud := store()
	if p, err := s.Plan(t.Context(), "demo"); p != nil || err != nil {
		t.Fatalf("a new rack: %v, %v", p, err)
	}
	want := plan.Plan{
		Format: plan.Format, Rack: "demo", Generation: 7, Goal: plan.GoalKarpenter, Cluster: plan.Cluster{Name: "demo"},
		NodePools: plan.NodePools{Objects: []plan.Object{{"kind": "NodePool", "spec": map[string]any{"n": float64(1), "s": "ü<&>"}}}},
		Steps:     []plan.Step{{Name: "nodegroups/placement", Function: "nodegroups", Part: "placement", Deadline: 60, Fingerprint: "f"}},
	}
	must(t, s.SavePlan(t.Context(), &want))
	got, err := s.Plan(t.Context(), "demo")
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if g := awsfake.Text(cloud.Table.Items["plan#demo plan"], "generation"); g != "7" {
		t.Errorf("generation %s", g)
	}

	want.Format++
	must(t, s.SavePlan(t.Context(), &want))
	if p, err := s.Plan(t.Context(), "demo"); p != nil || err != nil {
		t.Errorf("a plan of another format is no plan: %v, %v", p, err)
	}
}

// Someone with write access to the table may replace a rack's plan with another rack's. Its steps would change that
// other rack's resources.
func TestThePlanOfAnotherRack(t *testing.T) {
	s, cloud := store()
	must(t, s.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "prod"}))
	cloud.Table.Items["plan#demo plan"] = cloud.Table.Items["plan#prod plan"]
	p, err := s.Plan(t.Context(), "demo")
	if p != nil || err == nil || !strings.Contains(err.Error(), `rack demo: the table has the plan of rack "prod"`) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A JSON parameter holds 64 KB, an item 400 KB. The largest plan must fit.
func TestLargePlanFits(t *testing.T) {
	s, _ := store()
	p := plan.Plan{Format: plan.Format, Rack: "demo"}
	for range 200 {
		p.NodePools.Objects = append(p.NodePools.Objects, plan.Object{"kind": "NodePool", "spec": strings.Repeat(`{"key":"value"},`, 400)})
	}
	must(t, s.SavePlan(t.Context(), &p))
	if got, err := s.Plan(t.Context(), "demo"); err != nil || len(got.NodePools.Objects) != 200 {
		t.Errorf("%v", err)
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	s, _ := store()
	if got, err := s.Records(t.Context(), "demo"); err != nil || !reflect.DeepEqual(got, plan.Records{}) {
		t.Fatalf("a new rack: %+v, %v", got, err)
	}
	want := plan.Records{
		Goal: plan.GoalKarpenter, WasOn: true, Credentials: "irsa", ClusterLock: "not kept here",
		Applied: map[string]string{"access": "1", "nodegroups/labels": "2"}, Params: map[string]string{"karpenter_enabled": "true"},
		Warnings: map[string][]params.Problem{
			"access": {{Parameter: "rack", Message: "w"}}, "queue": {{Parameter: "rack", Message: "old"}},
		},
	}
	must(t, s.SaveRecords(t.Context(), "demo", want))
	want.ClusterLock = ""
	if got, err := s.Records(t.Context(), "demo"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	warning := []params.Problem{{Parameter: "cluster_autoscaler", Message: "none"}}
	must(t, s.NoteApplied(t.Context(), "demo", plan.Step{Name: "nodegroups/labels", Fingerprint: "3"}, warning))
	must(t, s.NoteApplied(t.Context(), "demo", plan.Step{Name: "queue", Fingerprint: "4"}, nil))
	got, err := s.Records(t.Context(), "demo")
	must(t, err)
	if want := map[string][]params.Problem{
		"access": want.Warnings["access"], "nodegroups/labels": warning,
	}; !reflect.DeepEqual(got.Warnings, want) {
		t.Errorf("warnings %v, want %v", got.Warnings, want)
	}
	if want := map[string]string{"access": "1", "nodegroups/labels": "3", "queue": "4"}; !reflect.DeepEqual(got.Applied, want) {
		t.Errorf("applied %v, want %v", got.Applied, want)
	}
}

// The first steps of a new rack are recorded in records without applied steps.
func TestNoteAppliedOnFreshRecords(t *testing.T) {
	s, _ := store()
	must(t, s.SaveRecords(t.Context(), "demo", plan.Records{Goal: plan.GoalAccess}))
	must(t, s.NoteApplied(t.Context(), "demo", plan.Step{Name: "access", Fingerprint: "1"}, nil))
	if got, err := s.Records(t.Context(), "demo"); err != nil || got.Applied["access"] != "1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAClusterHasOneRack(t *testing.T) {
	s, cloud := store()
	if owner, err := s.ClusterLock(t.Context(), "arn"); owner != "" || err != nil {
		t.Fatalf("%q, %v", owner, err)
	}
	for _, c := range []struct{ rack, want string }{{"demo", "demo"}, {"demo", "demo"}, {"other", "demo"}} {
		if owner, err := s.LockCluster(t.Context(), "arn", c.rack); err != nil || owner != c.want {
			t.Errorf("claim by %s: %q, %v; want %q", c.rack, owner, err, c.want)
		}
	}
	cloud.FailAt(1, awsfake.Throttling)
	if owner, err := s.LockCluster(t.Context(), "arn2", "demo"); err == nil || owner != "" {
		t.Errorf("a failed claim: %q, %v", owner, err)
	}
}

func TestRunCollectsItsSteps(t *testing.T) {
	s, cloud := store()
	change := func(subject string) []outcome.Change { return []outcome.Change{{Subject: subject, Action: "created"}} }
	problem := []params.Problem{{Parameter: "rack", Message: "no"}}
	must(t, s.SaveRun(t.Context(), Run{Rack: "demo", Generation: 1, Execution: "another iteration's", Started: clock}))
	must(t, s.NoteStep(t.Context(), "demo", 1, clock, StepRecord{Step: "access", Changes: change("another iteration's")}))
	must(t, s.SaveRun(t.Context(), Run{Rack: "demo", Generation: 10, Execution: "me", Started: clock, Outcome: "Planned"}))
	for _, call := range []StepRecord{
		{Step: "queue", Changes: change("queue"), Note: "waits", Warnings: problem},
		{Step: "queue", Changes: change("rule")},
		{Step: "queue"},
		{Step: "access", Changes: change("entry"), Problems: problem},
		{Step: "nodegroups/placement", Changes: change("pin")},
	} {
		must(t, s.NoteStep(t.Context(), "demo", 10, clock, call))
	}
	want := Run{Rack: "demo", Generation: 10, Execution: "me", Started: clock, Outcome: "Planned", Steps: []StepRecord{
		{Step: "access", Changes: change("entry"), Problems: problem},
		{Step: "nodegroups/placement", Changes: change("pin")},
		// The changes of all calls, but the note and the warnings of the last call only, because earlier ones are
		// outdated.
		{Step: "queue", Changes: append(change("queue"), change("rule")...)},
	}}
	got, err := s.Run(t.Context(), "demo", 9, 10)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v, %v\nwant %+v", got, err, want)
	}
	for place, item := range cloud.Table.Items {
		if awsfake.Text(item, "ttl") == "" {
			t.Errorf("%s would stay for ever", place)
		}
	}
}

// An iteration that is superseded by a newer request ends without a report. The next one reports what it did.
func TestRunHasOvertakenIterations(t *testing.T) {
	s, _ := store()
	did := func(what string) StepRecord {
		said := []params.Problem{{Parameter: "rack", Message: what}}
		return StepRecord{
			Step: "queue", Changes: []outcome.Change{{Subject: what, Action: "created"}}, Note: what, Warnings: said, Incidents: said,
		}
	}
	for generation, what := range []string{1: "told already", 2: "overtaken", 3: "own", 4: "later"} {
		if what != "" {
			must(t, s.SaveRun(t.Context(), Run{Rack: "demo", Generation: int64(generation), Goal: what, Started: clock}))
			must(t, s.NoteStep(t.Context(), "demo", int64(generation), clock, did(what)))
		}
	}
	want := did("own")
	want.Changes, want.Incidents = append(did("overtaken").Changes, want.Changes...), append(did("overtaken").Incidents, want.Incidents...)
	if got, err := s.Run(t.Context(), "demo", 1, 3); err != nil || got.Goal != "own" || !reflect.DeepEqual(got.Steps, []StepRecord{want}) {
		t.Errorf("%+v, %v", got, err)
	}
	t.Log("an iteration that is reported once more is reported alone")
	if got, err := s.Run(t.Context(), "demo", 3, 3); err != nil || !reflect.DeepEqual(got.Steps, []StepRecord{did("own")}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A completed step has the warnings of its last call. One that is still waiting has those of the wait.
func TestRecall(t *testing.T) {
	says := func(what string) []params.Problem { return []params.Problem{{Parameter: "rack", Message: what}} }
	run := Run{Steps: []StepRecord{
		{Step: "ended", Warnings: says("while it waited")}, {Step: "silent", Warnings: says("while it waited")},
		{Step: "waits", Warnings: says("now")},
	}}
	run.Recall(plan.Records{
		Applied: map[string]string{"ended": "1", "silent": "1", "earlier": "1"},
		Warnings: map[string][]params.Problem{
			"ended": says("in the end"), "waits": says("in an earlier pass"), "earlier": says("in an earlier pass"),
		},
	})
	var got []string
	for _, step := range run.Steps {
		for _, w := range step.Warnings {
			got = append(got, step.Step+" "+w.Message)
		}
	}
	slices.Sort(got)
	if want := []string{"earlier in an earlier pass", "ended in the end", "waits now"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The messages about a rack may exceed the size of a DynamoDB item.
func TestMuchToSay(t *testing.T) {
	s, _ := store()
	var many []params.Problem
	for i := range 5000 {
		many = append(many, params.Problem{
			Parameter: "karpenter_config", Path: fmt.Sprint("ec2NodeClass.", i), Message: strings.Repeat("allowed is this and that ", 10),
		})
	}
	must(t, s.SaveRun(t.Context(), Run{Rack: "demo", Generation: 1, Problems: many, Started: clock}))
	must(t, s.NoteStep(t.Context(), "demo", 1, clock, StepRecord{Step: "queue", Problems: many}))
	must(t, s.SaveStatus(t.Context(), Status{Rack: "demo", Problems: many}, "digest", Reported{}))
	if got, err := s.Run(t.Context(), "demo", 0, 1); err != nil || len(got.Problems) != 5000 || len(got.Steps[0].Problems) != 5000 {
		t.Errorf("%d problems, %v", len(got.Problems), err)
	}
}

// A pass may be running while a new version is deployed.
func TestRunOfAnEarlierVersion(t *testing.T) {
	s, cloud := store()
	values := key("demo", "run#000000000001")
	values["record"] = text(`{"goal":"karpenter"}`)
	cloud.Table.Items["rack#demo run#000000000001"] = values
	if got, err := s.Run(t.Context(), "demo", 0, 1); err != nil || got.Goal != "karpenter" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRunThatWasNeverBegun(t *testing.T) {
	s, _ := store()
	if got, err := s.Run(t.Context(), "demo", 0, 3); err != nil || !reflect.DeepEqual(got, Run{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStatusRecordIsComplete(t *testing.T) {
	s, cloud := store()
	if reported, err := s.Reported(t.Context(), "demo"); reported.Findings != "" || err != nil {
		t.Fatalf("%q, %v", reported.Findings, err)
	}
	must(t, s.SaveStatus(t.Context(), large(), "digest", Reported{}))
	var kept Status
	must(t, unpack(cloud.Table.Items["rack#demo status"], "status", &kept))
	reported, err := s.Reported(t.Context(), "demo")
	if err != nil || reported.Generation != large().Generation || reported.Findings != "digest" || !reflect.DeepEqual(kept, large()) {
		t.Errorf("reported %+v, %v, status %+v", reported, err, kept)
	}
}
