package validate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const (
	holdAt = "/sawhorse/hold"
	all    = `{"racks": ["*"], "reason": "an incident"}`
	others = `{"racks": ["*"], "except": ["demo"]}`
)

// hold writes the stack's hold; "" deletes it.
func (s *scene) hold(text string) {
	if delete(s.cloud.SSM.Values, holdAt); text != "" {
		s.cloud.SSM.Values[holdAt] = text
	}
}

// advice returns what the last report says of the hold; it must be the first warning, so that it is left out last.
func (s *scene) advice() string {
	s.Helper()
	status := s.status()
	i := slices.IndexFunc(status.Warnings, func(p params.Problem) bool { return p.Parameter == holdAt })
	if i > 0 {
		s.Errorf("warnings %v", status.Warnings)
	}
	if i < 0 {
		return ""
	}
	return status.Warnings[i].Message
}

// listedHeld reports whether resync would let the rack go.
func (s *scene) listedHeld() bool {
	s.Helper()
	_, held, err := s.store.Racks(s.Context())
	s.must(err)
	return slices.Contains(held, "demo")
}

// A pass over a held rack reports what it would do and changes nothing; an audit finds what has drifted, and that is reported
// too. A rack that is let go is brought to its parameters.
func TestAHeldRack(t *testing.T) {
	s := reconciled(t)
	s.hold(others)
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
	if s.listedHeld() {
		t.Error("it is not held")
	}

	s.hold(all)
	s.write("karpenter_cpu_limit=200")
	before, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	s.wants(s.pass(false), outcome.PassPaused, true, "nodepools")
	s.brakes(outcome.StatePaused, "Paused hold")
	if got := s.advice(); !strings.HasPrefix(got, "the rack is held (an incident): passes change nothing") || strings.Contains(got, "off") {
		t.Errorf("the status says %q", got)
	}
	if after, err := s.store.Plan(t.Context(), "demo"); err != nil || !same(before, after) || !s.listedHeld() {
		t.Errorf("the plan in force was changed, or the rack is not marked: %v", err)
	}
	s.wants(s.pass(false), outcome.PassPaused, false, "nodepools")
	s.wrote(leaseItem)

	t.Log("an audit says what else would be due")
	s.wrong = map[string]string{"network": "somebody has changed it"}
	if got := s.looked(); got != "status" {
		t.Errorf("found %q", got)
	}
	s.wants(s.pass(true), outcome.PassPaused, true, "network nodepools")
	s.brakes(outcome.StatePaused, "Paused hold")
	if got := s.looked(); got != "" {
		t.Errorf("found again: %q", got)
	}

	t.Log("another reason is told")
	s.hold(strings.ReplaceAll(all, "incident", "upgrade"))
	s.wants(s.pass(true), outcome.PassPaused, true, "network nodepools")
	s.reported(outcome.StatePaused)

	t.Log("let go")
	s.hold("")
	if got := s.looked(); got != "network nodepools" {
		t.Errorf("an audit of the rack that was let go finds %q", got)
	}
	s.wants(s.pass(true), outcome.PassPlanned, true, "network nodepools")
	s.brakes(outcome.StateReconciled, "Reconciled ")
	if got := s.advice(); got != "" || s.listedHeld() {
		t.Errorf("the status says %q; marked %v", got, s.listedHeld())
	}
}

// A hold ends with itself: it leaves no pause behind, also where the parameter paused has a bad value meanwhile.
func TestAHoldIsNoPause(t *testing.T) {
	s := reconciled(t)
	s.hold(all)
	s.write("paused=maybe")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected hold")
	s.hold("")
	s.wrong = map[string]string{"network": "somebody has changed it"}
	s.wants(s.pass(true), outcome.PassRejected, true, "network")
	s.brakes(outcome.StateRejected, "Rejected ")
}

// Turning off is held too, and the status says so. So is a freeze, and the removal of a rack without parameters.
func TestWhatElseIsHeld(t *testing.T) {
	s := reconciled(t)
	s.hold(all)
	s.write(off)
	answer := s.pass(false)
	if answer.Outcome != outcome.PassPaused || !slices.Contains(s.steps, "nodepools") {
		t.Errorf("%s, steps %v", answer.Outcome, s.steps)
	}
	s.reported(outcome.StatePaused)
	if got := s.advice(); !strings.HasSuffix(got, "and do not turn Karpenter off before that") {
		t.Errorf("the status says %q", got)
	}
	s.write(on, bad, frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.wantsFreeze(false, true)
	s.brakes(outcome.StateRejected, "Rejected hold: karpenter_freeze is true, and the freeze is not in force, because the rack is held")

	s = begin(t, auth)
	s.pass(false)
	s.hold(all)
	clear(s.cloud.SSM.Values)
	s.hold(all)
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
	if got := s.looked(); got != "" {
		t.Errorf("an audit of a rack that is to be forgotten, and held, finds %q", got)
	}
	s.hold("")
	s.wants(s.pass(true), outcome.PassForgotten, true, plan.CloseStep.Name)
}

// A dry run of a held rack answers with what a pass would do without the hold.
func TestADryRunOfAHeldRack(t *testing.T) {
	s := reconciled(t)
	s.hold(all)
	s.write("karpenter_cpu_limit=200")
	s.cloud.Forget()
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	s.wrote()
	if stepNames(s.dry) != "nodepools" || s.answered.Warnings[0].Parameter != holdAt {
		t.Errorf("steps %s, warnings %v", stepNames(s.dry), s.answered.Warnings)
	}
}

// A hold that cannot be understood, or not be read, holds the rack.
func TestAHoldThatIsNotUnderstood(t *testing.T) {
	s := reconciled(t)
	s.write("karpenter_cpu_limit=200")
	s.hold(`{"racks": ["other"], "until": "tomorrow"}`)
	s.wants(s.pass(false), outcome.PassPaused, true, "nodepools")
	s.reported(outcome.StatePaused)
	if got := s.advice(); !strings.Contains(got, `all racks are held, because its value "{\"racks\"`) ||
		!strings.Contains(got, "write for example") {
		t.Errorf("the status says %q", got)
	}
	s.hold("")
	s.cloud.Before = func(call string) error {
		if call == "SSM.GetParameter "+holdAt {
			return &smithy.GenericAPIError{Code: "AccessDeniedException"}
		}
		return nil
	}
	s.wants(s.pass(false), outcome.PassPaused, true, "nodepools")
}

// While the hold cannot be read for another reason, an iteration ends before it changes anything.
func TestAHoldThatCannotBeReadNow(t *testing.T) {
	s := reconciled(t)
	s.write("karpenter_cpu_limit=200")
	s.cloud.Fail("SSM.GetParameter", awsfake.Throttling)
	s.lease("me", false)
	s.cloud.Forget()
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"}); err == nil {
		t.Error("nobody says so")
	}
	s.wrote(leaseItem)
}

// An iteration for a write of the hold waits until Parameter Store shows it.
func TestAnIterationForAHoldHasReadIt(t *testing.T) {
	s := reconciled(t)
	s.cloud.Lag.Parameters = time.Hour
	text := all
	_, err := s.cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: new(holdAt), Value: &text, Type: ssmtypes.ParameterTypeString, Overwrite: new(true),
	})
	s.must(err)
	s.write("karpenter_cpu_limit=200")
	at := s.cloud.Now().UTC().Truncate(time.Second)
	s.validate.Now = func() time.Time { return at } // the fake's clock goes on with each call
	wrote := "Update " + at.Add(-2*time.Second).Format(time.RFC3339) + " hold"
	run := func() Answer {
		s.lease("me", false)
		s.cloud.Table.Items["rack#demo lease"]["wrote32"] = &types.AttributeValueMemberS{Value: wrote}
		answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		s.must(err)
		return answer
	}
	if answer := run(); answer.Outcome != outcome.PassOutdated {
		t.Errorf("%s, steps %s", answer.Outcome, stepNames(answer.Steps))
	}
	s.cloud.Lag.Parameters = 0
	if answer := run(); answer.Outcome != outcome.PassPaused {
		t.Errorf("then %s", answer.Outcome)
	}
}
