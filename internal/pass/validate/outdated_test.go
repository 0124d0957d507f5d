package validate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// noted adds a write to the lease, as the state machine does for an event.
func (s *scene) noted(place int, operation, name string, at time.Time) {
	s.lease("me", false)
	written := operation + " " + at.UTC().Format(time.RFC3339) + " params/" + name
	s.cloud.Table.Items["rack#demo lease"][fmt.Sprintf("wrote%02d", place)] = &types.AttributeValueMemberS{Value: written}
}

func (s *scene) outcome() outcome.Outcome {
	s.Helper()
	answer, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
	s.must(err)
	return answer.Outcome
}

// The tree of a pass has the write that started the pass, and the writes that were added to its lease.
func TestTheTreeIsNotFromBeforeAWrite(t *testing.T) {
	put := func(s *scene, name, value string) {
		_, err := s.cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
			Name: new(folder + name), Value: &value, Type: "String", Overwrite: new(true),
		})
		s.must(err)
	}
	for operation, write := range map[string]func(*scene){
		"Create": func(s *scene) { put(s, "karpenter_cpu_limit", "7") },
		"Update": func(s *scene) { put(s, "karpenter_memory_limit_gb", "9") },
		"Delete": func(s *scene) {
			_, err := s.cloud.SSM.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: new(folder + "karpenter_memory_limit_gb")})
			s.must(err)
		},
	} {
		t.Run(operation, func(t *testing.T) {
			s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true", "karpenter_memory_limit_gb=8")
			s.T = t
			s.pass(false)
			s.cloud.Pass(time.Hour)
			s.cloud.Lag.Parameters = time.Minute
			write(s)
			// The fake's clock goes on with each call, and the tree is read at any place among those that are side by side.
			now := s.cloud.Now()
			s.validate.Now = func() time.Time { return now }
			name := map[string]string{"Create": "karpenter_cpu_limit"}[operation]
			if name == "" {
				name = "karpenter_memory_limit_gb"
			}
			s.noted(3, operation, name, now)
			if got := s.outcome(); got != outcome.PassOutdated {
				t.Fatalf("what was read is from before the write, and the outcome is %s", got)
			}
			s.cloud.Pass(s.cloud.Lag.Parameters)
			s.noted(3, operation, name, now)
			if got := s.outcome(); got != outcome.PassPlanned {
				t.Errorf("once the replica has it: %s", got)
			}
		})
	}
}

// A write that never shows in the tree, because it was overwritten or the event's clock differs, delays a pass only for
// a limited time.
func TestAnOutdatedTreeIsTakenInTheEnd(t *testing.T) {
	for _, at := range []time.Duration{-replication, replication + time.Minute, -time.Hour, time.Hour} {
		s := begin(t, "karpenter_auth_mode=true")
		s.noted(0, "Update", "gone", s.cloud.Now().Add(at))
		s.cloud.Table.Items["rack#demo lease"]["wrote05"] = &types.AttributeValueMemberS{Value: "no write at all"}
		if got := s.outcome(); got != outcome.PassPlanned {
			t.Errorf("a write of %v from now: %s", at, got)
		}
	}
}

// A function whose clock is off by more than a replica may lag does not wait for the write, and its pass takes the tree from before
// it. The write is not lost: the next audit finds it, by whatever clock.
func TestAWriteThatAWrongClockMisses(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Minute, -replication, replication + time.Minute, 10 * time.Minute} {
		s := audited(t)
		s.cloud.Pass(time.Hour)
		s.cloud.Lag.Parameters = time.Minute
		_, err := s.cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
			Name: new(folder + "karpenter_cpu_limit"), Value: new("200"), Type: "String", Overwrite: new(true),
		})
		s.must(err)
		now := s.cloud.Now()
		s.noted(3, "Create", "karpenter_cpu_limit", now)
		s.validate.Now = func() time.Time { return now.Add(off) }
		if got := s.outcome(); got != outcome.PassUnchanged {
			t.Fatalf("%v off: %s", off, got)
		}
		s.cloud.Pass(s.cloud.Lag.Parameters)
		due, err := s.validate.Audit(t.Context(), "demo", int64(s.requests)+1)
		s.must(err)
		if why := due["nodepools"]; !strings.Contains(why, ".spec.limits.cpu: ") {
			t.Errorf("%v off: due %v", off, due)
		}
	}
}

// A dry run has no lease, and so no writes to compare with.
func TestADryRunReadsOnce(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true")
	s.noted(0, "Update", "gone", s.cloud.Now())
	answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "dry", DryRun: true})
	if err != nil || answer.Outcome != outcome.PassDryRun {
		t.Errorf("%+v, %v", answer, err)
	}
}
