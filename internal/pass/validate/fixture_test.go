package validate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

// scene is the rack demo, its cluster, and a pass "me" that has the rack's lease.
type scene struct {
	*testing.T
	cloud    *awsfake.Cloud
	store    *store.Store
	validate *Validate
	requests int
	begun    [][]plan.Step
	// steps has the names of the last answer's steps.
	steps []string

	dialled int
	// wrong has the steps that the auditor finds due, with the reasons. all makes it the auditor of the function audit.
	// Otherwise it is that of the function validate, which has only the queue's step.
	wrong map[string]string
	all   bool
	// audited has the steps that the auditor was called for.
	audited []string

	// refused has the versions of the changes, or the events, that were refused, each with the first parameter that has a
	// problem. refusals has the messages.
	refused, refusals []string

	// quiet has the rack's state after each iteration without a report.
	quiet []outcome.State

	dry []plan.Step
	// beganAfter is the status before the iteration that began last.
	beganAfter *store.Status
	// answered is the run of the last answer to a dry run or a refused event, with its problems.
	answered store.Run
	// differs has the steps of the answer that differ from the plan in force.
	differs []string
}

const folder = "/sawhorse/racks/demo/params/"

func begin(t *testing.T, written ...string) *scene {
	cloud := awsfake.New()
	s := &scene{T: t, cloud: cloud, store: &store.Store{DB: cloud.Table, Name: "sawhorse"}}
	cloud.EKS.Addons["eks-pod-identity-agent"] = ekstypes.AddonStatusActive
	cloud.EKS.Group("system", ekstypes.NodegroupScalingConfig{MinSize: new(int32(2)), MaxSize: new(int32(4)), DesiredSize: new(int32(2))}, nil)
	cloud.EKS.Group("build", ekstypes.NodegroupScalingConfig{MinSize: new(int32(0)), MaxSize: new(int32(3)), DesiredSize: new(int32(0))},
		map[string]string{ownership.LabelBuild: "true"})
	cloud.EKS.Groups["build"].Taints = []ekstypes.Taint{{Key: new("dedicated"), Value: new("build"), Effect: ekstypes.TaintEffectNoSchedule}}
	observer := &observe.Observer{
		Now: cloud.Now,
		EKS: cloud.EKS, EC2: cloud.EC2, IAM: cloud.IAM, SQS: cloud.SQS, SSM: cloud.SSM, Rules: cloud.Events, Records: s.store,
		Deployment: plan.Deployment{
			RequireClusterTag: true, ObjectPrefixes: []string{"s3://config/racks/", "s3://own/racks/{rack}/"},
			ObjectOwners: []string{awsfake.Account, "222222222222"},
			NodeRoles:    []string{"*"},
		},
	}
	s.validate = &Validate{
		Store: s.store, Paths: ownership.Paths{Prefix: "/sawhorse"}, Now: cloud.Now,
		Parameters: cloud.SSM, Observer: observer, Auditor: s, S3: cloud.S3, Dial: s.dial, Bus: s,
	}
	s.write(written...)
	return s
}

func (s *scene) Quiet(run store.Run, state outcome.State) error {
	if run.Execution != "me" && run.Execution != "" { // a look has no execution
		s.Errorf("a quiet iteration of %+v", run)
	}
	s.quiet = append(s.quiet, state)
	return nil
}

func (s *scene) Refused(ctx context.Context, run store.Run, change int64, problems []params.Problem) error {
	return s.Answer(ctx, run, strconv.FormatInt(change, 10), problems)
}

func (s *scene) Answer(_ context.Context, run store.Run, event string, problems []params.Problem) error {
	run.Problems = problems
	s.answered = run
	s.refused, s.refusals = append(s.refused, event+": "+problems[0].Parameter), append(s.refusals, problems[0].Message)
	return nil
}

// change writes the parameter change.
func (s *scene) change(text string) {
	s.cloud.Pass(time.Second)
	s.cloud.SSM.Write("/sawhorse/racks/demo/change", text)
}

// finish ends the accepted changes, as if they were written.
func (s *scene) finish() {
	s.Helper()
	changes, err := s.store.Changes(s.Context(), "demo")
	s.must(err)
	for i, c := range changes.List {
		if c.State == store.ChangeAccepted {
			for j, w := range c.Writes {
				c.Writes[j].Done, c.Writes[j].Version = true, w.Base+1
			}
			changes.End(i, s.cloud.Now())
		}
	}
	s.must(s.store.SaveChanges(s.Context(), "demo", &changes, s.cloud.Now()))
}

// dial connects to no cluster, so what runs in the pools is unknown.
func (s *scene) dial(context.Context, plan.Cluster) (*k8s.Client, error) {
	s.dialled++
	return nil, errors.New("no cluster")
}

// Audits reports whether the auditor has a step. Together with Due it makes the scene the auditor of validate.
func (s *scene) Audits(step plan.Step) bool { return s.all || step.Name == "queue" }

func (s *scene) Due(_ context.Context, _ *plan.Plan, steps []plan.Step, _ map[string][]params.Problem) map[string]string {
	due := map[string]string{}
	for _, step := range steps {
		s.audited = append(s.audited, step.Name)
		if why := s.wrong[step.Name]; why != "" {
			due[step.Name] = why
		}
	}
	return due
}

// Started records the steps. Together with DryRun, Refused, Answer and Quiet it makes the scene the bus of validate.
func (s *scene) Started(_ context.Context, _ store.Run, steps []plan.Step, before *store.Status) error {
	s.begun, s.beganAfter = append(s.begun, steps), before
	return nil
}

func (s *scene) DryRun(_ context.Context, run store.Run, steps []plan.Step, differences []plan.Difference) (*events.Pass, error) {
	s.dry, s.answered, s.differs = steps, run, nil
	for _, d := range differences {
		s.differs = append(s.differs, d.Step)
	}
	return &events.Pass{Rack: run.Rack, Request: run.Request, DryRun: true}, nil
}

// write sets parameters given as "name=value". A "name" alone deletes the parameter.
func (s *scene) write(parameters ...string) {
	for _, p := range parameters {
		name, value, given := strings.Cut(p, "=")
		if delete(s.cloud.SSM.Values, folder+name); given {
			s.cloud.SSM.Values[folder+name] = value
		}
	}
}

// pass runs one iteration as the state machine does: a request, the lease, validate, the steps, the release.
func (s *scene) pass(full bool) Answer {
	s.Helper()
	answer := s.validated(full)
	if answer.Outcome == outcome.PassPlanned || answer.Outcome == outcome.PassRejected {
		for _, step := range answer.Steps {
			s.must(s.store.NoteApplied(s.Context(), "demo", step, nil))
		}
	}
	return answer
}

// validated runs an iteration that ends before its steps.
func (s *scene) validated(full bool) Answer {
	s.Helper()
	s.lease("me", full)
	s.cloud.Forget()
	answer, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
	s.must(err)
	if answer.Generation != int64(s.requests) || answer.Steps == nil {
		s.Errorf("generation %d of %d requests, steps %v", answer.Generation, s.requests, answer.Steps)
	}
	s.steps = strings.Fields(stepNames(answer.Steps))
	return answer
}

// failsAt runs a pass whose n-th call fails, and reports whether it made as many.
func (s *scene) failsAt(n int) bool {
	s.Helper()
	s.lease("me", false)
	s.cloud.FailAt(n, awsfake.Throttling)
	_, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
	failed := s.cloud.Failed()
	if failed && err == nil {
		s.Errorf("call %d failed, and nobody says so", n)
	}
	s.cloud.FailAt(0, nil)
	return failed
}

func (s *scene) lease(owner string, full bool) {
	number := func(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
	s.requests++
	item := awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner": &types.AttributeValueMemberS{Value: owner}, "requested": number(s.requests), "served": number(s.requests - 1),
	}
	if full {
		item["fullAt"] = number(s.requests)
	}
	s.cloud.Table.Items["rack#demo lease"] = item
}

// reported does what the function report does with the findings of the last iteration.
func (s *scene) reported(state outcome.State) {
	s.Helper()
	run, err := s.store.Run(s.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	var steps []string
	if state == outcome.StatePaused {
		steps = s.steps
	}
	status := store.Status{
		Rack: "demo", State: state, Generation: run.Generation, Goal: run.Goal, Karpenter: s.records().InForce(),
		Problems: run.Problems, Warnings: run.Warnings, Steps: steps, Brakes: s.records().Brakes(), Change: run.Change,
	}
	status.Warnings = slices.Concat(status.Warnings, s.records().FreezeAdvice(run.Freeze))
	for _, warnings := range s.records().Warnings {
		status.Warnings = append(status.Warnings, warnings...)
	}
	reported, err := s.store.Reported(s.Context(), "demo")
	s.must(err)
	reported = reported.By("me", 0)
	if !reported.Same(status) {
		text, err := status.Text()
		s.must(err)
		s.cloud.SSM.Values["/sawhorse/racks/demo/status"] = text
		reported = reported.Wrote(status, text)
	}
	outputs, err := s.store.Outputs(s.Context(), "demo")
	s.must(err)
	maps.DeleteFunc(outputs, func(_, value string) bool { return value == "" })
	if len(outputs) > 0 {
		s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] = string(canonical.JSON(outputs))
	}
	if state == outcome.StateReconciled {
		reported.Values = run.Values
	}
	s.must(s.store.SaveStatus(s.Context(), status, store.Digest(state, run, steps), reported))
}

// status returns the status of the last report.
func (s *scene) status() *store.Status {
	s.Helper()
	reported, err := s.store.Reported(s.Context(), "demo")
	s.must(err)
	status, err := reported.Status()
	s.must(err)
	return status
}

func (s *scene) records() plan.Records {
	s.Helper()
	records, err := s.store.Records(s.Context(), "demo")
	s.must(err)
	return records
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wants checks the outcome, whether a report is asked for, and the steps.
func (s *scene) wants(got Answer, want outcome.Outcome, report bool, steps string) {
	s.Helper()
	if got.Outcome != want || got.Report != report || stepNames(got.Steps) != steps {
		s.Errorf("%s, report %v, steps %q; want %s, %v, %q", got.Outcome, got.Report, stepNames(got.Steps), want, report, steps)
	}
}

func stepNames(steps []plan.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

// wrote checks that exactly these writes were made.
func (s *scene) wrote(want ...string) {
	s.Helper()
	if got := s.cloud.Writes(); !slices.Equal(got, want) {
		s.Errorf("writes %q, want %q", got, want)
	}
}

const (
	before  = "access access/conflicts network nodegroups/labels"
	prepare = before + " controller/crds"
	pools   = " controller/release controller/plugin nodegroups/build nodepools proof autoscaler nodegroups/placement"
	enable  = before + " infrastructure queue controller/crds" + pools
	// turnOn is enable after prepare.
	turnOn    = "access/conflicts infrastructure queue" + pools
	leaseItem = "DynamoDB.UpdateItem rack#demo lease"
	listItem  = "DynamoDB.PutItem racks demo"
)

// find returns the verdict of validate without saving it.
func (s *scene) find() (verdict, error) {
	in, err := s.validate.stored(s.Context(), request{rack: "demo"})
	s.must(err)
	in, err = s.validate.observed(s.Context(), in)
	return assess(in), err
}
