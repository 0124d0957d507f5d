package validate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

var allWords = events.Force{events.ForceRoom, events.ForceForeignPools, events.ForceInstances, events.ForceVersion,
	events.ForceNewDefaults, events.ForceRetire + "gpu-a"}

// forced runs an iteration in which an event asks for force, with these words or with all of them. The event stays unserved,
// as in a pass that runs another
// iteration.
func (s *scene) forced(full bool, words ...string) Answer {
	s.Helper()
	s.lease("me", full)
	if len(words) == 0 {
		words = allWords
	}
	for _, word := range words {
		attribute := "force" + strings.NewReplacer("-", "_", ":", "_").Replace(word) + "At"
		s.cloud.Table.Items["rack#demo lease"][attribute] = &types.AttributeValueMemberN{Value: strconv.Itoa(s.requests)}
	}
	answer, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
	s.must(err)
	return answer
}

// force returns what the steps find in the plan.
func (s *scene) force() bool {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	return len(p.Force) == len(allWords)
}

func TestForceIsThatOfThePass(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	if s.force() {
		t.Error("nobody asked for force")
	}
	s.write(off)
	if answer := s.forced(false); answer.Outcome != outcome.PassPlanned || !s.force() {
		t.Errorf("force was asked for: %+v", answer)
	}

	t.Log("a later pass that finishes the same is without it, unless it is asked for again")
	if answer := s.validated(false); answer.Outcome != outcome.PassPlanned || s.force() {
		t.Errorf("%+v", answer)
	}
}

// A full pass of a rejected rack repairs with the last good plan, even if another event's pass made that plan with
// force.
func TestForceOfARejectedRack(t *testing.T) {
	s := begin(t, auth, on)
	s.forced(false)
	s.write("karpenter_cpu_limit=none")
	if answer := s.pass(true); answer.Outcome != outcome.PassRejected || len(answer.Steps) == 0 || s.force() {
		t.Errorf("the force of an earlier event: %+v", answer)
	}
	if answer := s.forced(true); answer.Outcome != outcome.PassRejected || len(answer.Steps) == 0 || !s.force() {
		t.Errorf("this event's force: %+v", answer)
	}
	s.pass(true)
	s.cloud.Forget()
	if s.pass(true); s.force() {
		t.Error("and again without")
	}
	for _, write := range s.cloud.Writes() {
		if write == "DynamoDB.PutItem plan#demo plan" {
			t.Error("a plan was saved that says what the last one said")
		}
	}
}
