package validate

import (
	"slices"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// refusedOff runs a pass that turns Karpenter off, up to the capacity check, which refuses it.
func (s *scene) refusedOff(full bool) {
	s.Helper()
	answer := s.validated(full)
	fit := slices.Index(s.steps, plan.FitStep)
	if answer.Outcome != outcome.PassPlanned || fit < 0 {
		s.Fatalf("%s, steps %v: Karpenter is not turned off", answer.Outcome, s.steps)
	}
	s.applied(Answer{Steps: answer.Steps[:fit]}, false)
	s.reported(outcome.StateRejected)
}

// goal returns the goal of the plan in force, and of the records.
func (s *scene) goal() plan.Goal {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	if s.must(err); p.Goal != s.records().Goal {
		s.Errorf("the plan's goal is %s, that of the records %s", p.Goal, s.records().Goal)
	}
	return p.Goal
}

// A refused turning off has changed nothing. A parameter that is deleted then counts as true, and Karpenter stays on, also if the next
// audit would find room, and also while another parameter is wrong.
func TestARefusedTurningOffIsTakenBack(t *testing.T) {
	for what, write := range map[string][]string{
		"unset": {"karpenter_enabled=unset"}, "deleted": {"karpenter_enabled"}, "all deleted": {"karpenter_enabled", "karpenter_auth_mode"},
		"true": {on},
	} {
		for _, wrong := range []string{"", bad} {
			if what == "all deleted" && wrong != "" {
				continue
			}
			s := reconciled(t)
			s.write(off)
			s.refusedOff(false)
			s.refusedOff(true) // the audit has tried it again
			s.write(write...)
			if wrong != "" {
				s.write(wrong)
				s.wrong = map[string]string{"queue": "somebody has deleted it"}
			}
			answer := s.validated(true)
			if got := s.goal(); got != plan.GoalKarpenter || slices.Contains(s.steps, plan.FitStep) {
				t.Errorf("%s, %s: %s, goal %s, steps %v", what, wrong, answer.Outcome, got, s.steps)
			}
			if wrong != "" {
				if answer.Outcome != outcome.PassRejected || !slices.Contains(s.steps, "queue") {
					t.Errorf("%s, %s: %s, steps %v", what, wrong, answer.Outcome, s.steps)
				}
				continue
			}
			if enabled := s.records().Params["karpenter_enabled"]; answer.Outcome == outcome.PassRejected || enabled != "true" {
				t.Errorf("%s: %s, karpenter_enabled is %s", what, answer.Outcome, enabled)
			}
			warned := slices.ContainsFunc(s.found().Warnings, func(w params.Problem) bool {
				return strings.Contains(w.Message, "because Karpenter is on") || strings.Contains(w.Message, "deleting is no command")
			})
			if warned != (what != "true") {
				t.Errorf("%s: warned %t: %v", what, warned, s.found().Warnings)
			}
		}
	}
}

// While turning off is refused, an audit repairs what there is, and hands nothing over that had not been handed over.
func TestARefusedTurningOffHandsNothingOver(t *testing.T) {
	s := begin(t, auth, on)
	s.all = true
	answer := s.validated(false)
	proof := slices.IndexFunc(answer.Steps, func(step plan.Step) bool { return step.Name == "proof" })
	s.applied(Answer{Steps: answer.Steps[:proof]}, false) // it fails there
	s.write(off)
	s.refusedOff(false)
	s.wrong = map[string]string{"queue": "somebody has deleted it"}
	answer = s.validated(true)
	s.wants(answer, outcome.PassRejected, true, "queue")
}

// Builds that still run when turning off is refused do not keep the audit from trying it again: their proof alone repairs nothing.
func TestARefusedTurningOffIsTriedAgainWhileBuildsRun(t *testing.T) {
	s := begin(t, auth, on, "build_node_enabled=true")
	s.all = true
	answer := s.validated(false)
	without := slices.DeleteFunc(slices.Clone(answer.Steps), func(step plan.Step) bool { return step.Name == "nodegroups/build" })
	if len(without) == len(answer.Steps) {
		t.Fatalf("there is no build group: %v", s.steps)
	}
	s.applied(Answer{Steps: without}, false)
	s.write(off)
	s.refusedOff(false)
	s.refusedOff(true)
}

// So it is if any call of a pass fails, that accepts the turning off or the way back.
func TestARefusedTurningOffSurvivesFailures(t *testing.T) {
	for _, refused := range []bool{false, true} {
		for n := 1; ; n++ {
			s := reconciled(t)
			if s.write(off); refused {
				s.refusedOff(false)
				s.write("karpenter_enabled=unset")
			}
			if !s.failsAt(n) {
				break
			}
			s.write("karpenter_enabled=unset")
			if answer := s.validated(true); s.goal() != plan.GoalKarpenter || s.records().Params["karpenter_enabled"] != "true" {
				t.Errorf("refused %t, call %d: %s, goal %s, steps %v", refused, n, answer.Outcome, s.goal(), s.steps)
			}
		}
	}
}

// Once it has begun, it goes on.
func TestATurningOffThatHasBegunGoesOn(t *testing.T) {
	for _, checkpoint := range []string{outcome.CheckpointOff, outcome.CheckpointRemoval} {
		s := reconciled(t)
		s.write(off)
		s.refusedOff(false)
		s.must(s.store.Checkpoints().RecordOnce(t.Context(), "demo", checkpoint, []byte("{}")))
		s.write("karpenter_enabled=unset")
		for range 2 {
			if s.validated(false); s.goal() != plan.GoalAccess || !slices.Contains(s.steps, plan.FitStep) {
				t.Errorf("%s: steps %v", checkpoint, s.steps)
			}
		}
	}
}

// What was in force when a turning off was refused still is: the way back is not closed by it.
func TestTheWayBackFromARefusedTurningOff(t *testing.T) {
	const image = "ami-0bbbbbbbbbbbbbbb1"
	s := begin(t, auth, on, "system_deployments=ingress/nginx",
		`karpenter_config={"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[{"id":"`+image+`"}]}}`)
	s.validate.Observer.Deployment.SystemNamespaces = []string{"ingress"}
	s.cloud.EC2.Images = []ec2types.Image{{ImageId: new(image), OwnerId: new(awsfake.Account),
		Tags: []ec2types.Tag{{Key: new("sawhorse.dev/nodes"), Value: new("true")}}}}
	s.applied(s.validated(false), false)
	s.validate.Observer.Deployment.SystemNamespaces, s.cloud.EC2.Images[0].Tags = nil, nil
	s.write(off)
	s.refusedOff(false)
	s.write(on)
	if answer := s.validated(false); answer.Outcome == outcome.PassRejected || s.goal() != plan.GoalKarpenter {
		t.Errorf("%s: %v", answer.Outcome, s.found().Problems)
	}
}

// While turning off is refused, audits repair what Karpenter needs, and try again to turn it off where nothing is to be repaired, or
// where a repair has failed.
func TestARackWhoseTurningOffIsRefusedIsRepaired(t *testing.T) {
	s := reconciled(t)
	s.write(off)
	s.refusedOff(false)
	if s.looked() == "" {
		t.Error("the audit does not try it again")
	}
	s.wrong = map[string]string{"queue": "somebody has deleted it", "nodepools": "somebody has changed it"}
	answer := s.validated(true)
	if s.wants(answer, outcome.PassRejected, true, "queue nodepools"); s.goal() != plan.GoalKarpenter {
		t.Errorf("goal %s", s.goal())
	}
	s.applied(answer, false)
	s.reported(outcome.StateRejected)
	s.wrong = nil
	s.refusedOff(true)
	s.wrong = map[string]string{"queue": "somebody has deleted it"}
	s.reported(outcome.StateFailed)
	s.refusedOff(true)
}

// Until turning off has begun, a freeze is laid over the pools, and one that lies over them is in force and can be taken off.
func TestAFreezeWhileTurningOffIsRefused(t *testing.T) {
	const inForce = "Rejected karpenter_freeze: the freeze is in force"
	s := reconciled(t)
	s.write(off)
	s.refusedOff(false)
	s.write(frozen)
	s.refusedOff(false)
	s.brakes(outcome.StateRejected, inForce)

	s = reconciled(t, frozen)
	s.write(off)
	s.refusedOff(false)
	s.brakes(outcome.StateRejected, inForce)
	s.write("karpenter_freeze=yes")
	if s.refusedOff(false); !s.records().Frozen() {
		t.Error("a freeze whose value is refused is taken off")
	}
	s.write(free)
	s.refusedOff(true)
	s.brakes(outcome.StateRejected, "Rejected ")
	s.write(on)
	s.applied(s.validated(false), false)
	s.wantsFreeze(false, true)
}
