package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// put writes karpenter_version as a user does, which gives it another version in Parameter Store.
func (s *scene) put(value string) {
	s.Helper()
	_, err := s.cloud.SSM.PutParameter(s.Context(), &ssm.PutParameterInput{
		Name: new(folder + "karpenter_version"), Value: &value, Overwrite: new(true), Type: ssmtypes.ParameterTypeString,
	})
	s.must(err)
}

// applied does what the steps of a pass do: all of them, or up to a controller that fails.
func (s *scene) applied(answer Answer, fails bool) {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	records, err := s.store.Records(s.Context(), "demo")
	s.must(err)
	record := records.Karpenter
	for _, step := range answer.Steps {
		if step.Name == "controller/crds" {
			record.CRDs = p.Controller.CRDs.Version
			s.must(s.store.NoteKarpenter(s.Context(), "demo", record))
		}
		if step.Name == "controller/release" {
			if record.Version = p.Controller.Release.Version; p.Controller.Previous != nil {
				record.RolledBack = nil
			}
			if fails {
				record.Version = p.Controller.Previous.Version
				record.RolledBack = &plan.RolledBack{
					Version: p.Controller.Release.Version, Reason: "it panics", Write: p.Controller.Write, Generation: p.Generation,
				}
			}
			s.must(s.store.NoteKarpenter(s.Context(), "demo", record))
			if fails {
				return
			}
		}
		s.must(s.store.NoteApplied(s.Context(), "demo", step, nil))
	}
}

// planned returns the version that the plan in force is for, and the one before if it is a change.
func (s *scene) planned() (version string, previous *plan.Release) {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	return p.Controller.Release.Version, p.Controller.Previous
}

// running returns a rack that runs the default version.
func running(t *testing.T) *scene {
	s := begin(t, auth, on)
	s.applied(s.validated(false), false)
	if r := s.records().Karpenter; r.Version != "1.10.0" || r.Planned != "1.10.0" {
		t.Fatalf("%+v", r)
	}
	return s
}

// tries checks that the next pass changes to a version.
func (s *scene) tries(version string) Answer {
	s.Helper()
	answer := s.validated(false)
	got, previous := s.planned()
	if answer.Outcome != outcome.PassPlanned || got != version || previous == nil || !slices.Contains(s.steps, "controller/release") {
		s.Fatalf("%s %v: a plan for %s, previous %v", answer.Outcome, s.steps, got, previous)
	}
	return answer
}

// stays checks that the next pass is for the version in force, with a warning about the one that failed.
func (s *scene) stays(version, failed string) Answer {
	s.Helper()
	answer := s.validated(false)
	got, previous := s.planned()
	run, err := s.store.Run(s.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	if got != version || previous != nil {
		s.Fatalf("%s %v: a plan for %s, previous %v", answer.Outcome, s.steps, got, previous)
	}
	warned := slices.ContainsFunc(run.Warnings, func(p params.Problem) bool {
		return p.Parameter == "karpenter_version" && strings.Contains(p.Message, "Karpenter "+failed+" failed here (it panics)")
	})
	if answer.Report && !warned {
		s.Errorf("warnings %v", run.Warnings)
	}
	return answer
}

// A version that failed is not tried again until the parameter is written again, also with the same value, or by force.
func TestAVersionThatFailedIsNotTriedAgain(t *testing.T) {
	s := running(t)
	s.put("1.12.1")
	s.applied(s.tries("1.12.1"), true)

	t.Log("the controller's rights are those of the version in force again; the CRDs stay")
	answer := s.stays("1.10.0", "1.12.1")
	for _, step := range []string{"infrastructure", "controller/release"} {
		if !slices.Contains(s.steps, step) {
			t.Errorf("steps %v, without %s", s.steps, step)
		}
	}
	if slices.Contains(s.steps, "controller/crds") {
		t.Errorf("steps %v", s.steps)
	}
	s.applied(answer, false)
	if answer := s.stays("1.10.0", "1.12.1"); answer.Outcome != outcome.PassUnchanged {
		t.Errorf("%+v", answer)
	}
	s.write("karpenter_cpu_limit=7")
	s.applied(s.stays("1.10.0", "1.12.1"), false)

	t.Log("by force")
	if answer := s.forced(false); answer.Outcome != outcome.PassPlanned {
		t.Fatal(answer)
	}
	if got, previous := s.planned(); got != "1.12.1" || previous == nil {
		t.Fatalf("by force: %s, %v", got, previous)
	}
	s.fail("1.12.1")
	asked := s.cloud.Table.Items["rack#demo lease"]["forceversionAt"]
	s.applied(s.stays("1.10.0", "1.12.1"), false)
	t.Log("a further iteration of that pass does not try it once more, although the event with force is not served yet")
	s.lease("me", false)
	s.cloud.Table.Items["rack#demo lease"]["forceversionAt"] = asked
	s.cloud.Table.Items["rack#demo lease"]["served"] = &types.AttributeValueMemberN{Value: "0"}
	_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	s.must(err)
	if got, previous := s.planned(); got != "1.10.0" || previous != nil {
		t.Errorf("a plan for %s, previous %v", got, previous)
	}

	t.Log("written again")
	s.put("1.12.1")
	s.applied(s.tries("1.12.1"), true)
	s.applied(s.stays("1.10.0", "1.12.1"), false)

	t.Log("deleted and created again: Parameter Store begins at version 1")
	_, err = s.cloud.SSM.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: new(folder + "karpenter_version")})
	s.must(err)
	if answer := s.validated(false); answer.Outcome != outcome.PassUnchanged || s.records().Karpenter.RolledBack != nil {
		t.Fatalf("%+v, %+v", answer, s.records().Karpenter)
	}
	s.put("1.12.1")
	s.applied(s.tries("1.12.1"), false)
	if r := s.records().Karpenter; r.Version != "1.12.1" {
		t.Errorf("%+v", r)
	}
}

// fail records that a version failed, by the last write.
func (s *scene) fail(version string) {
	s.Helper()
	record := s.records().Karpenter
	record.RolledBack = &plan.RolledBack{Version: version, Reason: "it panics", Write: s.version(), Generation: int64(s.requests)}
	s.must(s.store.NoteKarpenter(s.Context(), "demo", record))
}

func (s *scene) version() int64 {
	s.Helper()
	tree, err := store.ReadTree(s.Context(), s.cloud.SSM, strings.TrimSuffix(folder, "/"))
	s.must(err)
	return tree.Versions["karpenter_version"]
}

// A change is in force before it is written. The version that it asks for has then the write that is to come.
func TestAVersionOfAChangeThatFailed(t *testing.T) {
	s := running(t)
	for _, value := range []string{"1.12.1", "1.14.3"} {
		s.change(`{"set":{"karpenter_version":"` + value + `"}}`)
		answer := s.tries(value)
		s.put(value)
		s.finish()
		s.applied(Answer{Steps: answer.Steps[1:]}, true)
		s.applied(s.stays("1.10.0", value), false)
	}
}

// A paused rack changes nothing, also in the middle of a change.
func TestAPausedRackDoesNotChangeItsVersion(t *testing.T) {
	s := running(t)
	s.put("1.12.1")
	s.tries("1.12.1")
	s.write("paused=true")
	if answer := s.validated(false); answer.Outcome != outcome.PassPaused {
		t.Fatal(answer)
	}
	s.wrote(leaseItem, "DynamoDB.PutItem rack#demo records", "DynamoDB.PutItem rack#demo run#000000000003")
	s.write("paused=false")
	s.applied(s.tries("1.12.1"), false)
}

// A write that is rejected does not leave another version alone with the cluster: the pass completes the change. A version
// that fails meanwhile is not tried again, and the next pass, full or not, goes on towards the version that came back.
func TestARejectedWriteDuringAChangeOfVersion(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s := running(t)
		s.all = true
		s.put("1.12.1")
		s.tries("1.12.1")
		s.write("karpenter_cpu_limit=many")
		answer := s.validated(false)
		if answer.Outcome != outcome.PassRejected || !slices.Contains(s.steps, "controller/release") {
			t.Fatalf("%s, steps %v", answer.Outcome, s.steps)
		}
		s.applied(answer, fails)
		s.reported(outcome.StateRejected)
		answer = s.validated(!fails)
		got, previous := s.planned()
		if !fails {
			if answer.Outcome != outcome.PassRejected || len(s.steps) > 0 || got != "1.12.1" {
				t.Errorf("%s, steps %v, a plan for %s", answer.Outcome, s.steps, got)
			}
			continue
		}
		if answer.Outcome != outcome.PassRejected || !slices.Contains(s.steps, "controller/release") || got != "1.10.0" || previous != nil {
			t.Fatalf("%s, steps %v, a plan for %s, previous %v", answer.Outcome, s.steps, got, previous)
		}
		s.applied(answer, false)
		s.reported(outcome.StateRejected)
		if answer := s.validated(true); answer.Outcome != outcome.PassRejected || len(s.steps) > 0 || s.records().Karpenter.RolledBack == nil {
			t.Errorf("%s, steps %v, %+v", answer.Outcome, s.steps, s.records().Karpenter)
		}
	}
}
