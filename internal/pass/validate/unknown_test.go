package validate

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
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

// A change request does not create a rack. It is refused, and its record is deleted within minutes.
func TestAChangeRequestMakesNoRack(t *testing.T) {
	s := begin(t)
	s.newLease("demo", false)
	s.request("good", `{"rack":"demo","set":{"karpenter_cpu_limit":"7"}}`)
	s.request("bad", `{"rack":"demo","set":{"karpenter_cpu_limit":"x"}}`)
	s.wants(s.answer("demo"), outcome.PassUnknown, false, "")
	if want := []string{"bad: rack", "good: rack"}; !slices.Equal(s.refused, want) {
		t.Errorf("refused %v, want %v", s.refused, want)
	}
	soon := s.cloud.Now().Add(10 * time.Minute).Unix()
	for _, id := range []string{"good", "bad"} {
		item := s.cloud.Table.Items["change#demo change#"+id]
		if ttl, err := strconv.ParseInt(awsfake.Text(item, "ttl"), 10, 64); err != nil || ttl > soon ||
			awsfake.Text(item, "state") != "refused" || item["payload"] != nil {
			t.Errorf("left of %s: %v", id, slices.Sorted(maps.Keys(item)))
		}
	}
	if changes, err := s.store.Changes(t.Context(), "demo"); err != nil || len(changes) > 0 {
		t.Errorf("open: %v, %v", changes, err)
	}
}

// While the table cannot say whether a rack exists, its change requests are neither refused nor lost.
func TestAChangeRequestOfARackThatCannotBeReadStaysOpen(t *testing.T) {
	for n := 1; ; n++ {
		s := begin(t)
		s.newLease("demo", false)
		s.request("good", `{"rack":"demo","set":{"karpenter_cpu_limit":"7"}}`)
		s.cloud.Forget()
		s.cloud.FailAt(n, errors.New("slow down"))
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			return
		}
		if s.cloud.Forget(); err == nil {
			t.Errorf("call %d failed, and nobody says so", n)
		}
		changes, open := s.store.Changes(t.Context(), "demo")
		if updates := strings.HasSuffix(err.Error(), "update: slow down"); open != nil || len(changes) != 1 || !updates && len(s.refused) > 0 {
			t.Errorf("%v: open %v, %v, refused %v", err, changes, open, s.refused)
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

// A change request for a rack that has any record is validated as usual.
func TestAChangeRequestOfARackWithoutParameters(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	s.reported(outcome.StateReconciled)
	s.write("karpenter_auth_mode")
	s.request("good", `{"rack":"demo","set":{"karpenter_auth_mode":"true"}}`)
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
