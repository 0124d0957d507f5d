package validate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Anybody who may put events on the bus may name racks that do not exist. Nothing is created for them, and what the
// state machine has created is deleted.
func TestNothingIsMadeForARackThatThereIsNot(t *testing.T) {
	for _, full := range []bool{false, true} {
		s := begin(t)
		s.newLease("demo", full)
		s.wants(s.answer("demo"), outcome.PassUnknown, false, "")
		s.wrote(leaseItem)
	}

	t.Log("not for a name either that makes no name of a cluster")
	s := begin(t)
	long := strings.Repeat("a", 200)
	s.newLease(long, false)
	s.wants(s.answer(long), outcome.PassUnknown, false, "")
	s.wrote("DynamoDB.UpdateItem rack#" + long + " lease")

	t.Log("nor by a dry run")
	s = begin(t)
	if _, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	s.wrote()
}

// The parameter change makes a rack, as any of its parameters does: who may write it is said by IAM on its path.
func TestAChangeMakesARack(t *testing.T) {
	s := begin(t)
	s.newLease("demo", false)
	s.change(`{"set":{"karpenter_auth_mode":"true"}}`)
	s.wants(s.answer("demo"), outcome.PassPlanned, true, "change "+prepare)
	s.must(s.store.ForgetChanges(t.Context(), "demo"))

	t.Log("one that is refused is reported, and the rack is listed")
	s = begin(t)
	s.newLease("demo", false)
	s.change(`{"set":{"karpenter_cpu_limit":"x"}}`)
	s.wants(s.answer("demo"), outcome.PassUnchanged, true, "")
	if want := []string{"1: karpenter_cpu_limit"}; !slices.Equal(s.refused, want) {
		t.Errorf("refused %v, want %v", s.refused, want)
	}
	if listed, _, err := s.store.Listed(t.Context(), "demo"); err != nil || !listed {
		t.Errorf("listed %v, %v", listed, err)
	}
}

// While something of a rack cannot be read, its change is neither refused nor lost.
func TestAChangeOfARackThatCannotBeReadStaysOpen(t *testing.T) {
	for n := 1; ; n++ {
		s := begin(t)
		s.newLease("demo", false)
		s.change(`{"set":{"karpenter_cpu_limit":"7"}}`)
		s.cloud.Forget()
		s.cloud.FailAt(n, errors.New("slow down"))
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			return
		}
		if s.cloud.Forget(); err == nil || len(s.refused) > 0 {
			t.Errorf("call %d failed: %v, refused %v", n, err, s.refused)
		}
		if s.answer("demo"); s.changes() != "1 accepted" {
			t.Errorf("after call %d: %s", n, s.changes())
		}
	}
}

// The lease of a rack that once existed keeps counting, so that old records are not taken for those of a rack that is
// created again.
func TestTheLeaseOfARackThatWasThereStays(t *testing.T) {
	s := begin(t)
	s.requests = 7 // of which six are served
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
}

// A change of a rack that has any record is validated as usual.
func TestAChangeOfARackWithoutParameters(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	s.reported(outcome.StateReconciled)
	s.write("karpenter_auth_mode")
	s.change(`{"set":{"karpenter_auth_mode":"true"}}`)
	if got := s.pass(false); got.Outcome != outcome.PassPlanned || len(s.refused) > 0 {
		t.Errorf("%+v, refused %v", got, s.refused)
	}
}

// newLease creates the first lease of a rack, for which no iteration has ended.
func (s *scene) newLease(name string, full bool) {
	s.lease("me", full)
	item := s.cloud.Table.Items["rack#demo lease"]
	delete(s.cloud.Table.Items, "rack#demo lease")
	delete(item, "served")
	item["pk"] = &types.AttributeValueMemberS{Value: "rack#" + name}
	s.cloud.Table.Items["rack#"+name+" lease"] = item
	s.cloud.Forget()
}

// answer returns validate's answer for a rack.
func (s *scene) answer(name string) Answer {
	s.Helper()
	answer, err := s.validate.Run(s.Context(), Event{Rack: name, Execution: "me"})
	s.must(err)
	return answer
}
