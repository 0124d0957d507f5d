package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// changes returns the versions and states of the recorded changes.
func (s *scene) changes() string {
	s.Helper()
	changes, err := s.store.Changes(s.Context(), "demo")
	s.must(err)
	var all []string
	for _, c := range changes.List {
		all = append(all, fmt.Sprint(c.Version, " ", c.State))
	}
	return strings.Join(all, ", ")
}

// became returns what the record says of the last change: its version, outcome, note, and the parameters that have problems.
func (s *scene) became() string {
	s.Helper()
	changes, err := s.store.Changes(s.Context(), "demo")
	s.must(err)
	if changes.Last == nil {
		return ""
	}
	text := fmt.Sprint(changes.Last.Version, " ", changes.Last.Outcome, " ", changes.Last.Note)
	for _, p := range changes.Last.Problems {
		text += " " + p.Parameter
	}
	return text
}

// A valid change takes effect as a whole before any of it is in Parameter Store. Writing it is the first step.
func TestAChangeCountsAsAWhole(t *testing.T) {
	s := begin(t, "node_disk=20")
	s.change(`{"set":{"karpenter_auth_mode":"true","karpenter_enabled":"true","karpenter_cpu_limit":"7"},"note":"on"}`)
	answer := s.pass(false)
	s.wants(answer, outcome.PassPlanned, true, "change "+enable)
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" || s.changes() != "1 accepted" || s.became() != "1 Writing on" {
		t.Errorf("in force %v, changes %s, last %s", p, s.changes(), s.became())
	}
	t.Log("until it is written, each pass lays it over the tree")
	s.wants(s.pass(false), outcome.PassPlanned, true, "change")
	t.Log("a dry run counts it too")
	s.cloud.Forget()
	if _, err := s.validate.Run(s.Context(), Event{Rack: "demo", DryRun: true}); err != nil || stepNames(s.dry) != "change" {
		t.Errorf("%v: %s", err, stepNames(s.dry))
	}
	s.wrote()
	t.Log("when it is written, nothing is left to do")
	s.write("karpenter_auth_mode=true", "karpenter_enabled=true", "karpenter_cpu_limit=7")
	s.finish()
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	if s.became() != "1 Written on" {
		t.Errorf("last %s", s.became())
	}
}

// An invalid change is refused as a whole, is reported, and leaves the rack as it was. The changes before and after it take
// effect. Versions that no pass has seen are read from the history, in their order.
func TestABadChangeIsRefused(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	s.change(`{"set":{"karpenter_cpu_limit":"8","karpenter_auth_mode":"false"}}`)
	s.change(`{"set":{"node_disk":"x","karpenter_memory_limit_gb":"9"}}`)
	s.change(`{"set":[],"unset":["node_disk"]}`)
	s.change(`{"set":{"karpenter_memory_limit_gb":"10"},"unset":["karpenter_enabled"]}`)
	s.wants(s.pass(false), outcome.PassPlanned, true, "change nodepools")
	if want := []string{"2: karpenter_auth_mode", "3: node_disk", "4: change"}; !slices.Equal(s.refused, want) {
		t.Errorf("refused %v, want %v", s.refused, want)
	}
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" || p["karpenter_memory_limit_gb"] != "10" ||
		s.changes() != "1 accepted, 5 accepted" || s.became() != "5 Writing " {
		t.Errorf("in force %v, changes %s, last %s", p, s.changes(), s.became())
	}
	run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	if got := run.Versions["karpenter_cpu_limit"]; got != 1 { // that the change will make, by which a snapshot tells who wrote
		t.Errorf("version %d of karpenter_cpu_limit", got)
	}
	s.cloud.Forget()
	s.pass(false)
	if made := strings.Join(s.cloud.Made(), "\n"); strings.Contains(made, "GetParameterHistory") || len(s.refused) != 3 {
		t.Errorf("it is read again: %s, refused %v", made, s.refused)
	}
}

// What a parameter has wrong already does not excuse a change that sets it to something that is wrong in the same way.
func TestAChangeOfWhatIsWrongAlready(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.write(`karpenter_config={"nodePool":{"foo":1}}`)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.change(`{"set":{"karpenter_config":"{\"nodePool\":{\"foo\":2}}"}}`)
	s.change(`{"set":{"karpenter_freeze":"true"}}`)
	s.pass(false)
	if !slices.Equal(s.refused, []string{"1: karpenter_config"}) || s.changes() != "2 accepted" {
		t.Errorf("refused %v, changes %s", s.refused, s.changes())
	}
}

// What is in force, and is not checked again, has become wrong: the release of Sawhorse that accepted it checked less.
func TestAChangeOfWhatHasBecomeWrong(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.finish()
	const wrong = `{"nodePool":{"foo":1}}`
	written := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_config": wrong}
	facts := plan.Facts{Records: s.records()}
	facts.Records.Checked = nodes.Compile(params.Parse(params.Input{Rack: "demo", Params: written}).Config, facts).Fingerprint()
	s.must(s.store.SaveRecords(t.Context(), "demo", facts.Records))
	s.write("karpenter_config=" + wrong)
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	s.change(`{"set":{"karpenter_freeze":"true"}}`)
	s.change(`{"set":{"karpenter_build_config":"{\"nodePool\":{\"foo\":2}}"}}`)
	s.pass(false)
	if !slices.Equal(s.refused, []string{"2: karpenter_build_config"}) || s.changes() != "1 accepted" {
		t.Errorf("refused %v, changes %s", s.refused, s.changes())
	}
}

// A change is judged by what runs in the cluster, as a pass is: a static pool without nodes may go, and the name of another's NodePool
// is taken.
func TestAChangeIsJudgedByTheCluster(t *testing.T) {
	s, api := begin(t, auth, on, `additional_karpenter_nodepools_config=[{"name":"fixed","replicas":2}]`), k8sfake.New(t)
	s.validate.Dial = api.Dial
	s.pass(false)
	s.finish()
	api.Put("/apis/karpenter.sh/v1/nodepools/ci", "karpenter.sh/v1", "NodePool", map[string]any{})
	s.change(`{"set":{"additional_karpenter_nodepools_config":"[{\"name\":\"fixed\",\"replicas\":2},{\"name\":\"ci\"}]"}}`)
	s.change(`{"unset":["additional_karpenter_nodepools_config"]}`)
	s.pass(false)
	if !slices.Equal(s.refused, []string{"1: additional_karpenter_nodepools_config"}) || s.changes() != "2 accepted" {
		t.Errorf("refused %v, changes %s", s.refused, s.changes())
	}
}

// An API server that does not answer is asked once in an iteration, however many changes are judged: its silence takes time each time.
func TestChangesWhileTheClusterIsSilent(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.finish()
	s.change(`{"set":{"karpenter_freeze":"true"}}`)
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	before := s.dialled
	s.pass(false)
	if s.dialled != before+1 || s.changes() != "1 accepted, 2 accepted" {
		t.Errorf("asked %d times, changes %s", s.dialled-before, s.changes())
	}
}

// A name that is no parameter's is refused where it is unset too.
func TestAChangeOfAnUnknownName(t *testing.T) {
	s := begin(t, auth)
	s.change(`{"unset":["karpenter_cpu_limits"]}`)
	s.pass(false)
	if !slices.Equal(s.refused, []string{"1: karpenter_cpu_limits"}) || s.changes() != "" {
		t.Errorf("refused %v, changes %s", s.refused, s.changes())
	}
}

// A parameter that a change has written a moment ago, and that is deleted, stays deleted, though the lease has other writes later.
func TestAParameterIsDeletedAfterAChange(t *testing.T) {
	s := audited(t)
	s.change(`{"set":{"karpenter_memory_limit_gb":"430"}}`)
	s.pass(false)
	s.finish()
	s.cloud.Pass(time.Second)
	s.noted(60, "Delete", "karpenter_memory_limit_gb", s.cloud.Now())
	answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	s.must(err)
	s.must(s.store.NoteApplied(t.Context(), "demo", answer.Steps[0], nil))
	if memory := s.records().Params["karpenter_memory_limit_gb"]; memory != "" || stepNames(answer.Steps) != "nodepools" {
		t.Fatalf("in force %q, steps %s", memory, stepNames(answer.Steps))
	}
	s.reported(outcome.StateReconciled)
	if due := s.looked(); due != "" {
		t.Errorf("an audit finds %s", due)
	}
	if _, err = s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true}); err != nil || stepNames(s.dry) != "" {
		t.Errorf("a dry run finds %s, %v", stepNames(s.dry), err)
	}
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
}

// A parameter that is deleted and made again begins at version 1.
func TestTheParameterChangeIsMadeAgain(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	for range 3 {
		s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	}
	s.pass(false)
	s.finish()
	s.cloud.Pass(time.Minute)
	const name = "/sawhorse/racks/demo/change"
	delete(s.cloud.SSM.Values, name)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"8"}}`)
	s.pass(false)
	if p := s.records().Params; p["karpenter_cpu_limit"] != "8" || s.became() != "1 Writing " {
		t.Errorf("in force %v, last %s", p, s.became())
	}
}

// Each iteration judges a few changes, and asks for another one.
func TestManyChangesAreJudgedInSeveralIterations(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	for range mostChanges + 2 {
		s.change(`{"set":{"node_disk":"x"}}`)
	}
	s.pass(false)
	requested := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "requested")
	if len(s.refused) != mostChanges || requested != fmt.Sprint(s.requests+1) {
		t.Errorf("refused %v, %s requests", s.refused, requested)
	}
	s.pass(false)
	if len(s.refused) != mostChanges+2 || s.became() != fmt.Sprint(mostChanges+2)+" Refused  node_disk" {
		t.Errorf("refused %v, last %s", s.refused, s.became())
	}
}

// A dry run and an audit neither accept nor refuse.
func TestADryRunJudgesNoChange(t *testing.T) {
	s := begin(t, auth)
	s.change(`{"set":{"node_disk":"x"}}`)
	s.cloud.Forget()
	if _, err := s.validate.Run(s.Context(), Event{Rack: "demo", DryRun: true}); err != nil || len(s.refused) > 0 || s.changes() != "" {
		t.Errorf("%v: refused %v, changes %s", err, s.refused, s.changes())
	}
	s.wrote()
}

// A dry run that is asked about a change answers for the rack as it would then be, also for one that does not exist.
func TestADryRunOfAChange(t *testing.T) {
	for _, c := range []struct{ proposed, steps, problem string }{
		{`{"set":{"karpenter_auth_mode":"true","karpenter_enabled":"true"}}`, enable, ""},
		{`{"set":{"karpenter_auth_mode":"true"},"unset":["karpenter_enabled"]}`, prepare, ""},
		{`{"set":{"karpenter_enabled":"true"}}`, "", "karpenter_enabled"},
		{`{"set":{"karpenter_cpu_limit":7}}`, "", "change"},
		{`{}`, "", ""},
	} {
		s := begin(t)
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true, Proposed: []byte(c.proposed)})
		s.must(err)
		problem := ""
		if len(s.answered.Problems) > 0 {
			problem = s.answered.Problems[0].Parameter
		}
		if stepNames(s.dry) != c.steps || problem != c.problem {
			t.Errorf("%s: steps %s, problems %v", c.proposed, stepNames(s.dry), s.answered.Problems)
		}
		s.wrote()
	}
}

// For a rack that never asked for a change, Sawhorse writes changes and does nothing else.
func TestAChangeOfARackThatAsksForNothing(t *testing.T) {
	s := begin(t, "node_disk=20")
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	s.wants(s.validated(false), outcome.PassPlanned, true, "change")
	claimant, err := s.store.ClusterLock(t.Context(), "arn:aws:eks:eu-central-1:123456789012:cluster/demo")
	if err != nil || claimant != "" || s.records().Goal != "" {
		t.Errorf("%v: claimed by %q, %+v", err, claimant, s.records())
	}
}

// An accepted change is written completely, even if the rack's parameters have become invalid since.
func TestAnAcceptedChangeIsWrittenToItsEnd(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	s.validated(false)
	s.write("node_disk=x")
	s.wants(s.validated(false), outcome.PassRejected, true, "change")
	if full := s.validated(true); full.Outcome != outcome.PassRejected || full.Steps[0].Name != "change" ||
		len(full.Steps) != 1+len(strings.Fields(enable)) {
		t.Errorf("a full pass: %s, %s", full.Outcome, stepNames(full.Steps))
	}
}

// For a paused rack, Sawhorse writes changes and does nothing else. After that, a later write takes effect.
func TestAChangeOfAPausedRackIsWritten(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"paused":"true","karpenter_cpu_limit":"7"}}`)
	for _, full := range []bool{false, true} {
		s.wants(s.validated(full), outcome.PassPaused, true, "change")
	}
	s.reported(outcome.StatePaused)
	s.write("paused=true", "karpenter_cpu_limit=7")
	s.finish()
	s.wants(s.pass(false), outcome.PassPaused, true, "nodepools")
	s.write("paused=false")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
}

// A write to a parameter of a change that has not come to it yet is later than the change. It is in force at once, and so is a
// turning off; the change is given up as a whole.
func TestAWriteToAParameterOfAChange(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7","karpenter_memory_limit_gb":"9"}}`)
	s.validated(false)
	s.change(`{"set":{"node_disk":"30"}}`)
	s.validated(false)
	s.cloud.SSM.Write(folder+"karpenter_memory_limit_gb", "11")
	s.wants(s.validated(false), outcome.PassPlanned, true, "change nodepools")
	if p := s.records().Params; p["karpenter_cpu_limit"] == "7" || p["karpenter_memory_limit_gb"] != "11" || p["node_disk"] != "30" {
		t.Errorf("in force %v", p)
	}
	if s.changes() != "1 given up, 2 accepted" || !slices.Equal(s.refused, []string{"1: change"}) ||
		!strings.Contains(s.refusals[0], "karpenter_memory_limit_gb") {
		t.Errorf("%s, refused %v %v", s.changes(), s.refused, s.refusals)
	}
}

// A write that is later than a change counts at once too where the change was not judged before it: the change is refused. So does one
// that gives an earlier change up. What Sawhorse writes of the changes before is nobody's write.
func TestAWriteAfterAChangeThatIsNotJudged(t *testing.T) {
	const change = `{"set":{"karpenter_enabled":"true","karpenter_cpu_limit":"7"}}`
	for _, c := range []struct {
		what    string
		do      func(*scene)
		refused string
	}{
		{"turned off", func(s *scene) { s.cloud.SSM.Write(folder+"karpenter_enabled", "false") }, "1: karpenter_enabled"},
		{"the same value", func(s *scene) { s.cloud.SSM.Write(folder+"karpenter_enabled", "true") }, ""},
		{"another parameter", func(s *scene) { s.cloud.SSM.Write(folder+"paused", "true") }, ""},
		{"deleted", func(s *scene) {
			delete(s.cloud.SSM.Values, folder+"karpenter_cpu_limit")
			s.noted(60, "Delete", "karpenter_cpu_limit", s.cloud.Now())
		}, "1: karpenter_cpu_limit"},
	} {
		s := begin(t, auth, on, "karpenter_cpu_limit=9")
		s.pass(false)
		s.lease("me", false)
		s.change(change)
		s.cloud.Pass(3 * time.Second)
		c.do(s)
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		s.must(err)
		refused, changes := "", "1 accepted"
		if len(s.refused) > 0 {
			refused, changes = s.refused[0], ""
		}
		if refused != c.refused || s.changes() != changes {
			t.Errorf("%s: %s, refused %v %v", c.what, s.changes(), s.refused, s.refusals)
		}
		if enabled := s.records().Params["karpenter_enabled"]; (enabled == "false") != (c.what == "turned off") {
			t.Errorf("%s: in force %s", c.what, enabled)
		}
	}

	t.Log("two changes, and a write after both")
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7","karpenter_memory_limit_gb":"9"}}`)
	s.change(`{"set":{"karpenter_memory_limit_gb":"10"}}`)
	s.validated(false)
	s.cloud.SSM.Write(folder+"karpenter_memory_limit_gb", "11")
	s.validated(false)
	if s.changes() != "1 given up" || !slices.Equal(s.refused, []string{"1: change", "2: karpenter_memory_limit_gb"}) ||
		s.records().Params["karpenter_memory_limit_gb"] != "11" {
		t.Errorf("%s, refused %v, in force %v", s.changes(), s.refused, s.records().Params)
	}

	t.Log("two changes, of which the first is written before the second is judged")
	s = begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	s.validated(false)
	s.change(`{"set":{"karpenter_cpu_limit":"8"}}`)
	s.cloud.Pass(time.Second)
	s.cloud.SSM.Write(folder+"karpenter_cpu_limit", "7")
	s.finish()
	s.validated(false)
	if s.changes() != "1 ended, 2 accepted" || s.records().Params["karpenter_cpu_limit"] != "8" {
		t.Errorf("%s, refused %v, in force %v", s.changes(), s.refused, s.records().Params)
	}
}

// writing returns a rack with an accepted change of a limit.
func writing(t *testing.T) (*scene, store.Changes) {
	t.Helper()
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
	s.validated(false)
	changes, err := s.store.Changes(t.Context(), "demo")
	s.must(err)
	return s, changes
}

// A change whose writing has failed holds up nothing: until it is tried again, its step comes last, and ends for a newer write. Then it
// comes first: if another step fails in each pass, the change is still written, or given up.
func TestAChangeThatCannotBeWrittenHoldsUpNothing(t *testing.T) {
	s, changes := writing(t)
	changes.List[0].Failing = "karpenter_cpu_limit: AccessDeniedException"
	changes.List[0].Next = s.cloud.Now().Add(time.Minute)
	s.must(s.store.SaveChanges(t.Context(), "demo", &changes, s.cloud.Now()))
	answer := s.validated(false)
	s.wants(answer, outcome.PassPlanned, true, "nodepools change")
	if last := answer.Steps[1]; last.Uninterruptible || last.Deadline < int((15*time.Minute).Seconds()) {
		t.Errorf("%+v", last)
	}
	s.write(off)
	answer = s.validated(false)
	if steps := strings.Fields(stepNames(answer.Steps)); answer.Outcome != outcome.PassPlanned || steps[len(steps)-1] != "change" ||
		!slices.Contains(steps, "nodepools") || s.records().Params["karpenter_enabled"] != "false" {
		t.Errorf("turning off: %s %s", answer.Outcome, steps)
	}
	s.cloud.Pass(time.Minute)
	if answer = s.validated(false); answer.Steps[0].Name != "change" || !slices.ContainsFunc(answer.Steps, func(step plan.Step) bool {
		return step.Name == "nodepools"
	}) {
		t.Errorf("when it is tried again: %s", stepNames(answer.Steps))
	}
}

// A change that was given up ends the iteration whose plan was made for it, however often the step is called. The next plan is made
// without it.
func TestAnIterationEndsForAChangeThatIsGivenUp(t *testing.T) {
	s, changes := writing(t)
	changes.GiveUp(0, s.cloud.Now())
	changes.List[0].Ends = []params.Problem{{Parameter: "karpenter_cpu_limit"}}
	s.must(s.store.SaveChanges(t.Context(), "demo", &changes, s.cloud.Now()))
	s.validated(false)
	changes, err := s.store.Changes(t.Context(), "demo")
	s.must(err)
	if c := changes.List[0]; c.State != store.ChangeGivenUp || len(c.Ends) > 0 || s.records().Params["karpenter_cpu_limit"] != "" {
		t.Errorf("%+v, in force %v", c, s.records().Params)
	}
}

// A change overrides guards as a request does: until the pass that accepted it has ended.
func TestAChangeWithForce(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.change(`{"set":{"karpenter_enabled":"false"},"force":["room","new-defaults"]}`)
	for range 2 {
		answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		s.must(err)
		p, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		if answer.Outcome != outcome.PassPlanned || !slices.Equal(p.Force, []string{"new-defaults", "room"}) {
			t.Errorf("%+v, force %v", answer, p.Force)
		}
		s.must(s.store.Request(t.Context(), "demo")) // another iteration of the same pass
	}
	s.finish()
	s.validated(false)
	if p, err := s.store.Plan(t.Context(), "demo"); err != nil || len(p.Force) > 0 {
		t.Errorf("a later pass: force %v, %v", p.Force, err)
	}
}

// A change may be an object in S3, as a JSON parameter.
func TestAChangeInS3(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.cloud.S3.Objects["config/racks/change.json"] = `{"set":{"karpenter_cpu_limit":"7"}}`
	s.change("s3://config/racks/change.json")
	s.wants(s.pass(false), outcome.PassPlanned, true, "change nodepools")
	s.change("s3://config/racks/none.json")
	s.change("s3://elsewhere/change.json")
	s.change("s3://config/racks/two words.json")
	s.change("s3://config/racks/" + strings.Repeat("k", 1024))
	s.cloud.Forget()
	s.pass(false)
	if s.changes() != "1 accepted" || !slices.Equal(s.refused, []string{"2: change", "3: change", "4: change", "5: change"}) ||
		!strings.Contains(s.refusals[2], "which is no object in S3") || !strings.Contains(s.refusals[3], "has a key of 1030 bytes") {
		t.Errorf("%s, refused %v: %q", s.changes(), s.refused, s.refusals)
	}
	made := slices.DeleteFunc(s.cloud.Made(), func(call string) bool { return !strings.HasPrefix(call, "S3.") })
	if !slices.Equal(made, []string{"S3.GetObject config/racks/none.json"}) {
		t.Errorf("calls %v", made)
	}
}

// Sawhorse does not decrypt.
func TestASecretChangeIsRefused(t *testing.T) {
	s := begin(t, auth)
	s.cloud.SSM.Secure["/sawhorse/racks/demo/change"] = true
	s.change(`{"set":{"node_disk":"30"}}`)
	s.pass(false)
	if !slices.Equal(s.refused, []string{"1: change"}) || !strings.Contains(s.refusals[0], "SecureString") || s.changes() != "" {
		t.Errorf("%s, refused %v: %q", s.changes(), s.refused, s.refusals)
	}
}

// A pass waits until Parameter Store shows the write for which it runs.
func TestAChangeThatIsReadTooEarly(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	s.lease("me", false)
	now := s.cloud.Now()
	s.validate.Now = func() time.Time { return now } // the fake's goes on with each call
	at := now.UTC().Format(time.RFC3339)
	s.cloud.Table.Items["rack#demo lease"]["wrote07"] = &types.AttributeValueMemberS{Value: "Create " + at + " change"}
	answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	if s.must(err); answer.Outcome != outcome.PassOutdated {
		t.Errorf("%+v", answer)
	}
	s.cloud.SSM.Write("/sawhorse/racks/demo/change", `{"set":{"node_disk":"30"}}`)
	answer, err = s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	if s.must(err); answer.Outcome != outcome.PassPlanned {
		t.Errorf("%+v", answer)
	}
}

// If any call fails, the repeated pass has the same result.
func TestChangesSurviveFailures(t *testing.T) {
	for n := 1; n < 120; n++ {
		s := begin(t, auth)
		s.pass(false)
		s.change(`{"set":{"karpenter_enabled":"true"}}`)
		s.change(`{"set":{"node_disk":"x"}}`)
		s.lease("me", false)
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			if err != nil || n < 10 {
				t.Fatalf("call %d: %v", n, err)
			}
			return
		}
		if err == nil {
			t.Errorf("call %d failed, and nobody says so", n)
		}
		answer := s.validated(false)
		if answer.Outcome != outcome.PassPlanned || answer.Steps[0].Name != plan.ChangeStep.Name ||
			s.changes() != "1 "+string(store.ChangeAccepted) {
			t.Errorf("after call %d: %s %s, changes %s", n, answer.Outcome, stepNames(answer.Steps), s.changes())
		}
	}
	t.Error("no end")
}
