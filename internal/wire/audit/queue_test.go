package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/pass/audit"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	pass "github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// scene is the rack demo with Karpenter, whose only step that does anything is the queue's.
type scene struct {
	*testing.T
	cloud     *awsfake.Cloud
	store     *store.Store
	begins    *pass.Validate
	queue     *queue.Step
	requests  int
	requested []events.ReconcileRequested
}

func begin(t *testing.T) *scene {
	cloud := awsfake.New()
	records := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	s := &scene{T: t, cloud: cloud, store: records,
		queue: &queue.Step{SQS: cloud.SQS, Rules: cloud.Events, Written: records, Now: cloud.Now}}
	cloud.EKS.Addons["eks-pod-identity-agent"] = ekstypes.AddonStatusActive
	cloud.EKS.Group("system",
		ekstypes.NodegroupScalingConfig{MinSize: new(int32(2)), MaxSize: new(int32(4)), DesiredSize: new(int32(2))}, nil)
	for _, name := range []string{"karpenter_auth_mode", "karpenter_enabled"} {
		cloud.SSM.Values["/sawhorse/racks/demo/params/"+name] = "true"
	}
	nothing := func(context.Context, *plan.Plan, string) (outcome.Progress, error) { return outcome.Progress{}, nil }
	s.begins = &pass.Validate{
		Store: records, Paths: ownership.Paths{Prefix: "/sawhorse"}, Now: cloud.Now, Parameters: cloud.SSM, S3: cloud.S3,
		Bus:  report.Bus{Events: cloud.Events, Name: "sawhorse"},
		Dial: func(context.Context, plan.Cluster) (*k8s.Client, error) { return nil, errors.New("no cluster") },
		Observer: &observe.Observer{Now: cloud.Now, EKS: cloud.EKS, EC2: cloud.EC2, IAM: cloud.IAM, SQS: cloud.SQS, SSM: cloud.SSM,
			Rules: cloud.Events, Records: records},
		Auditor: audit.NewSteps(func() map[string]outcome.StepFunc {
			all := map[string]outcome.StepFunc{"queue": s.queue.Run}
			for _, other := range []string{"access", "autoscaler", "controller", "infrastructure", "network", "nodegroups", "nodepools", "proof"} {
				all[other] = nothing
			}
			return all
		}),
	}
	return s
}

// pass plays a full pass: its beginning, its steps, and its report. It returns the names of the steps.
func (s *scene) pass() string {
	s.Helper()
	number := func(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
	s.requests++
	s.cloud.Table.Items["rack#demo lease"] = awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner": &types.AttributeValueMemberS{Value: "me"}, "requested": number(s.requests), "served": number(s.requests - 1),
		"fullAt": number(s.requests),
	}
	answer, err := s.begins.Run(s.Context(), pass.Event{Rack: "demo", Execution: "me"})
	s.must(err)
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	var names []string
	for _, step := range answer.Steps {
		for step.Name == "queue" {
			progress, err := s.queue.Run(s.Context(), p, "")
			if s.must(err); progress.Wait == 0 {
				break
			}
			s.cloud.Pass(progress.Wait)
		}
		s.must(s.store.NoteApplied(s.Context(), "demo", step, nil))
		names = append(names, step.Name)
	}
	if answer.Report {
		end := &report.Report{Store: s.store, Outputs: store.Published{SSM: s.cloud.SSM, Paths: s.begins.Paths}, Now: s.cloud.Now,
			Send:    report.Bus{Events: s.cloud.Events, Name: "sawhorse"}.Send,
			Metrics: metrics.Writer{Out: io.Discard, Namespace: "Sawhorse", Now: s.cloud.Now}}
		_, err = end.Run(s.Context(), report.Event{Rack: "demo", Execution: "me", Generation: answer.Generation, Outcome: answer.Outcome,
			Started: s.cloud.Now(), Steps: names})
		s.must(err)
	}
	s.cloud.Table.Items["rack#demo lease"]["served"] = number(s.requests)
	delete(s.cloud.Table.Items["rack#demo lease"], "owner")
	return strings.Join(names, " ")
}

// looks audits the rack, with clients that refuse to write, and returns the steps that it has found due. It requests a pass if there are
// any.
func (s *scene) looks() string {
	s.Helper()
	s.cloud.Forget()
	s.cloud.Refused = readonly.ErrWouldWrite
	defer func() { s.cloud.Refused = nil }()
	var log bytes.Buffer
	s.requested = nil
	_, err := (&audit.Audit{Store: s.store, Look: s.begins.Audit, Now: s.cloud.Now, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Request: func(_ context.Context, r events.ReconcileRequested) error {
			s.requested = append(s.requested, r)
			return nil
		}}).Run(s.Context(), pass.Event{Rack: "demo"})
	s.must(err)
	var line struct{ Due []string }
	s.must(json.Unmarshal(log.Bytes(), &line))
	if want := len(line.Due) > 0; want != (len(s.requested) == 1) || want && !s.requested[0].Full || len(s.cloud.Writes()) > 0 {
		s.Errorf("due %v, requested %+v, wrote %v", line.Due, s.requested, s.cloud.Writes())
	}
	return strings.Join(line.Due, " ")
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// The audit finds a queue that somebody has deleted, and requests the pass that makes it again, by that step alone. Without it, Karpenter
// would hear of no interruption until a parameter is written.
func TestTheAuditFindsADeletedQueue(t *testing.T) {
	s := begin(t)
	if steps := s.pass(); !strings.Contains(steps, "queue") || len(s.cloud.SQS.Queues) != 1 {
		t.Fatalf("%s, queues %v", steps, s.cloud.SQS.Queues)
	}
	if due := s.looks(); due != "" {
		t.Fatalf("before: %s", due)
	}
	clear(s.cloud.SQS.Queues)
	if due := s.looks(); due != "queue" {
		t.Fatalf("found %q", due)
	}
	if steps := s.pass(); steps != "queue" || len(s.cloud.SQS.Queues) != 1 {
		t.Errorf("the pass took %q, queues %v", steps, s.cloud.SQS.Queues)
	}
	if due := s.looks(); due != "" {
		t.Errorf("after: %s", due)
	}
}
