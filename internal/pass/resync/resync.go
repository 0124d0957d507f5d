// Package resync does what no event requested of a rack: it has racks audited as scheduled, starts the pass after an execution
// that ended without releasing its rack, and has the stack's hold reach passes that run, and end for racks that it lets go.
package resync

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// StateMachine is the part of Step Functions' API that resync needs.
type StateMachine interface {
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
	GetExecutionHistory(context.Context, *sfn.GetExecutionHistoryInput, ...func(*sfn.Options)) (*sfn.GetExecutionHistoryOutput, error)
}

// Functions is what calling the function audit needs of Lambda.
type Functions interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Event is a tick of the schedule, Step Functions' notice that an execution has ended, or Parameter Store's that the hold was
// written.
type Event struct {
	DetailType string `json:"detail-type"`
	Detail     struct {
		ExecutionARN string `json:"executionArn"`
		Status       string `json:"status"`
		Input        string `json:"input"`
		Error        string `json:"error"`
		Cause        string `json:"cause"`
		// StartDate is when the execution started, in milliseconds.
		StartDate int64 `json:"startDate"`
		// Operation is what was done to the hold: Create, Update or Delete.
		Operation string `json:"operation"`
	} `json:"detail"`
	// Time is when the tick was due, which selects the racks, or when the hold was written (RFC 3339).
	Time string `json:"time"`
}

// Answer has the racks whose audit or pass was started, for the log.
type Answer struct {
	Racks []string `json:"racks"`
}

// Resync starts audits and passes.
type Resync struct {
	Machine    StateMachine
	MachineARN string
	Functions  Functions
	// Audit is the name of the function audit.
	Audit string
	Store *store.Store
	// Parameters reads the hold, and whether a rack that is not listed has parameters.
	Parameters store.RackReader
	Paths      ownership.Paths
	// Report writes the status of a pass that could not report itself.
	Report  func(context.Context, report.Event) (report.Answer, error)
	Metrics metrics.Writer
	// Interval is the time in which every rack is audited once, Slots the number of ticks in it.
	Interval time.Duration
	Slots    int
	Now      func() time.Time
}

// Run answers one event.
func (r *Resync) Run(ctx context.Context, event Event) (Answer, error) {
	switch event.DetailType {
	case events.TypeExecutionChange:
		return r.ended(ctx, event)
	case events.TypeParameterChange:
		return r.written(ctx, event)
	}
	return r.scheduled(ctx, r.tick(event))
}

// scheduled has the racks of one tick audited. It does not wait for the audits, and it may be repeated: an audit only
// reads, and requests a pass only if something is due. What fails for one rack is reported in the end and does not keep
// the others from their audits.
func (r *Resync) scheduled(ctx context.Context, tick time.Time) (Answer, error) {
	f, unread, err := r.fleet(ctx)
	if err != nil {
		return Answer{}, err
	}
	racks, holding := r.hold(ctx, f, tick, store.Written{})
	answer, failed := Answer{Racks: racks}, []error{unread, r.measure(f), holding}
	for _, name := range due(f.racks, r.slot(tick), r.Slots) {
		if err := r.audit(ctx, name); err != nil {
			failed = append(failed, err)
			continue
		}
		answer.Racks = append(answer.Racks, name)
	}
	return answer, errors.Join(failed...)
}

// audit calls the function audit for a rack, asynchronously: Lambda queues the call, and repeats it if it fails.
func (r *Resync) audit(ctx context.Context, rack string) error {
	_, err := r.Functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &r.Audit, InvocationType: lambdatypes.InvocationTypeEvent,
		Payload: canonical.JSON(statemachine.ValidateCall{Rack: rack}),
	})
	if err != nil {
		return fmt.Errorf("rack %s: audit: %w", rack, err)
	}
	return nil
}

// measure writes how long the longest pass that holds a rack has been running. An execution that hangs writes no metrics
// itself.
func (r *Resync) measure(f fleet) error {
	var longest time.Duration
	for _, lease := range f.leases {
		if !lease.Since.IsZero() {
			longest = max(longest, r.Now().Sub(lease.Since))
		}
	}
	return r.Metrics.Longest(longest)
}

// slot returns the number of the tick since 1970.
func (r *Resync) slot(tick time.Time) int64 {
	return tick.Unix() / int64(max(1, r.Interval.Seconds()/float64(r.Slots)))
}

// due returns the racks of a slot. Each rack has one slot of so many, which a hash of its name selects. So the audits
// are spread over the interval, and a tick depends on no other tick.
func due(racks []string, slot int64, slots int) []string {
	var due []string
	for _, name := range racks {
		hash := fnv.New32a()
		hash.Write([]byte(name))
		if int64(hash.Sum32())%int64(slots) == slot%int64(slots) {
			due = append(due, name)
		}
	}
	return due
}

// tick returns when a tick was due, so that a late or repeated delivery selects the same racks. An event without a time is
// due now.
func (r *Resync) tick(event Event) time.Time {
	if due, err := time.Parse(time.RFC3339, event.Time); err == nil {
		return due
	}
	return r.Now()
}

// start starts an execution, at most once for each name.
func (r *Resync) start(ctx context.Context, rack, input, execution string) error {
	_, err := r.Machine.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &r.MachineARN, Input: &input, Name: &execution})
	if err != nil && !errors.As(err, new(*types.ExecutionAlreadyExists)) {
		return fmt.Errorf("rack %s: start pass: %w", rack, err)
	}
	return nil
}

// request returns the input of an execution for a request.
func request(r events.ReconcileRequested) string {
	return string(canonical.JSON(map[string]any{"detail-type": r.DetailType(), "detail": r}))
}
