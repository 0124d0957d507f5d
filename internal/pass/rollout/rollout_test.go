package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A look at a rack without anything new is one query of the table and writes nothing. Numbers of nodes are reported once an hour.
func TestALookWithoutNewsWritesNothing(t *testing.T) {
	s := begin(t, "workload")
	s.after(5 * time.Minute)
	for _, minutes := range []time.Duration{10, 15, 60} {
		s.runs(claim(fmt.Sprint("n-", int(minutes)), "workload", "1", "1"))
		s.cloud.Forget()
		s.after(minutes * time.Minute)
		if made := s.cloud.Made(); len(made) != 2 || made[0] != "DynamoDB.Query rollouts a" { // the second is this test's own
			t.Errorf("after %d minutes: %v", minutes, made)
		}
	}
	if p := s.pool(s.after(65*time.Minute), "workload"); p.Nodes != 3 {
		t.Errorf("%+v", p)
	}
	s.must(s.rollout.Store.EndRollout(s.Context(), "demo"))
	s.cloud.Forget()
	if _, err := s.rollout.Run(s.Context(), Event{}); err != nil || len(s.cloud.Made()) != 1 {
		t.Errorf("no rack: %v, %v", err, s.cloud.Made())
	}
}

func TestAPassThatHasTheRackTellsItself(t *testing.T) {
	s := begin(t, "workload")
	s.leased(start.Add(6 * time.Minute))
	if s.after(5 * time.Minute); len(s.written()) > 0 || len(s.sent()) > 0 {
		t.Errorf("wrote %v", s.written())
	}
	if s.after(10 * time.Minute); len(s.sent()) != 1 { // the pass has died
		t.Error("not reported afterwards")
	}
}

// leased has a pass hold the rack until then.
func (s *scene) leased(until time.Time) {
	s.cloud.Table.Items["rack#demo lease"] = awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner":   &types.AttributeValueMemberS{Value: "me"},
		"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(until.Unix())},
	}
}

// A pass that reports between the look and its report begins another rollout, and the look is out of date.
func TestAPassThatEndsMeanwhile(t *testing.T) {
	s := begin(t, "workload")
	s.rollout.Dial = func(ctx context.Context, cluster plan.Cluster) (*k8s.Client, error) {
		was, err := s.rollout.Store.Rollout(ctx, "demo")
		s.must(err)
		was.Generation, was.Applied = 8, s.clock
		s.must(s.rollout.Store.SaveRollout(ctx, *was))
		return s.Connector("rollout")(ctx, cluster)
	}
	if status := s.after(5 * time.Minute); len(s.sent()) > 0 || len(status.Pools) > 0 {
		t.Errorf("%+v, sent %v", status, s.sent())
	}
}

// The status that the report of a pass writes at the same time is read again.
func TestAReportAtTheSameTime(t *testing.T) {
	s := begin(t, "workload")
	s.cloud.Before = func(call string) error {
		if !strings.HasPrefix(call, "DynamoDB.UpdateItem") || !strings.HasSuffix(call, " status") {
			return nil
		}
		s.cloud.Before = nil
		status := store.Status{Rack: "demo", State: outcome.StateRejected, Generation: 8}
		text, err := status.Text()
		s.must(err)
		s.must(s.rollout.Outputs.WriteStatus(s.Context(), "demo", text))
		s.must(s.rollout.Store.SaveStatus(s.Context(), status, "", store.Reported{}.Wrote(status, text)))
		return nil
	}
	if status := s.after(5 * time.Minute); status.State != outcome.StateRejected || status.Generation != 8 || len(status.Pools) != 1 {
		t.Errorf("%+v", status)
	}
}

// What is reported is reported again if the call was stopped before the record was written, and the event is sent at least once.
func TestALookMayBeStoppedAnywhere(t *testing.T) {
	calls := 0
	t.Run("undisturbed", func(t *testing.T) {
		s := begin(t, "workload")
		s.after(5 * time.Minute)
		calls = len(s.cloud.Made()) - 1 // the last call is this test's own
	})
	for n := 1; n <= calls; n++ {
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			s := begin(t, "workload")
			s.clock = start.Add(5 * time.Minute)
			s.cloud.FailAt(n, awsfake.Throttling)
			if _, err := s.rollout.Run(s.Context(), Event{}); err == nil {
				t.Error("the call failed and Run did not")
			}
			s.cloud.FailAt(0, nil)
			if status := s.after(10 * time.Minute); len(status.Pools) != 1 || status.Rollout.Ended == "" || len(s.sent()) == 0 {
				t.Errorf("%+v, sent %v", status, s.sent())
			}
			s.cloud.Forget()
			if s.after(15 * time.Minute); len(s.written()) > 0 {
				t.Errorf("the next look wrote %v", s.written())
			}
		})
	}
}

// A cluster that does not answer keeps no other rack waiting.
func TestOneRackThatFails(t *testing.T) {
	s := begin(t, "workload")
	dial := s.rollout.Dial
	s.rollout.Dial = func(ctx context.Context, cluster plan.Cluster) (*k8s.Client, error) {
		if cluster.Name == "dark" {
			return nil, awsfake.Throttling
		}
		return dial(ctx, cluster)
	}
	for i := range 5 {
		s.must(s.rollout.Store.SaveRollout(s.Context(), store.Rollout{Rack: fmt.Sprint("dark-", i), Cluster: plan.Cluster{Name: "dark"}}))
	}
	s.must(s.rollout.Store.SaveRollout(s.Context(), store.Rollout{Rack: "garbled"}))
	s.cloud.Table.Items[ownership.PartitionRollouts+" garbled"]["rollout"] = &types.AttributeValueMemberS{Value: "no record"}
	s.clock = start.Add(5 * time.Minute)
	answer, err := s.rollout.Run(s.Context(), Event{})
	if err == nil || strings.Count(err.Error(), "rack dark-") != 5 || !strings.Contains(err.Error(), "rack garbled: decode") ||
		answer.Racks != 1 || !slices.Equal(answer.Reported, []string{"demo"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if answer, err := s.rollout.Run(s.Context(), Event{Rack: "demo"}); err != nil || answer.Racks != 1 || len(answer.Reported) > 0 {
		t.Errorf("%+v, %v", answer, err)
	}
	if answer, err := s.rollout.Run(s.Context(), Event{Rack: "unknown"}); err != nil || answer.Racks != 0 {
		t.Errorf("%+v, %v", answer, err)
	}
	delete(s.cloud.Table.Items, ownership.PartitionRollouts+" garbled")
	short, end := context.WithTimeout(s.Context(), longest)
	defer end()
	if answer, err := s.rollout.Run(short, Event{}); err == nil || answer.Racks != 0 || !strings.Contains(err.Error(), "6 racks are left") {
		t.Errorf("%+v, %v", answer, err)
	}
}
