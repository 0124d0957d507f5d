// Package resync starts passes that no write asked for: the scheduled ones, and the one after an execution that ended
// without releasing its rack.
package resync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps/report"
)

// Parameters is what finding the racks needs of SSM.
type Parameters interface {
	DescribeParameters(context.Context, *ssm.DescribeParametersInput, ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error)
}

// StateMachine is what starting a pass, and looking at one that ended, needs of Step Functions.
type StateMachine interface {
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
	GetExecutionHistory(context.Context, *sfn.GetExecutionHistoryInput, ...func(*sfn.Options)) (*sfn.GetExecutionHistoryOutput, error)
}

// Event is a tick of the schedule, or Step Functions' notice that an execution has ended.
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
	} `json:"detail"`
	// Time is when the tick was due, RFC 3339; its place in the interval chooses the racks.
	Time string `json:"time"`
}

// Answer is what was started, for the log.
type Answer struct {
	Racks []string `json:"racks"`
}

// Resync starts passes.
type Resync struct {
	Parameters Parameters
	Machine    StateMachine
	MachineARN string
	Store      *rack.Store
	Paths      names.Paths
	// Report writes the status of a pass that could not do so itself.
	Report func(context.Context, report.Event) (report.Answer, error)
	// Interval is the time in which every rack gets one full pass, Slots the number of ticks in it.
	Interval time.Duration
	Slots    int
	Now      func() time.Time
}

// Run answers one event.
func (r *Resync) Run(ctx context.Context, event Event) (Answer, error) {
	if event.DetailType == events.TypeExecutionChange {
		return r.ended(ctx, event)
	}
	racks, err := r.racks(ctx)
	if err != nil {
		return Answer{}, err
	}
	due := r.due(racks, r.tick(event))
	for _, name := range due {
		if err := r.start(ctx, name, request(events.ReconcileRequested{Rack: name, Reason: "schedule", Full: true}), ""); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Racks: due}, nil
}

// due are the racks whose turn the tick is: each rack has one slot of the interval, by its name, so that the passes are
// spread over it and no tick needs to know of another.
func (r *Resync) due(racks []string, tick time.Time) []string {
	slot := int(tick.Unix()/int64(max(1, r.Interval.Seconds()/float64(r.Slots)))) % r.Slots
	var due []string
	for _, name := range racks {
		hash := fnv.New32a()
		hash.Write([]byte(name))
		if int(hash.Sum32()%uint32(r.Slots)) == slot {
			due = append(due, name)
		}
	}
	return due
}

// tick is when a tick was due: a late or repeated delivery chooses the same racks. Without a time it is the clock's.
func (r *Resync) tick(event Event) time.Time {
	if due, err := time.Parse(time.RFC3339, event.Time); err == nil {
		return due
	}
	return r.Now()
}

// racks are the names that have parameters or a status. DescribeParameters gives names without values, 50 at a time.
func (r *Resync) racks(ctx context.Context) ([]string, error) {
	var found []string
	folder := r.Paths.Racks()
	pages := ssm.NewDescribeParametersPaginator(r.Parameters, &ssm.DescribeParametersInput{
		MaxResults:       new(int32(50)),
		ParameterFilters: []ssmtypes.ParameterStringFilter{{Key: new("Path"), Option: new("Recursive"), Values: []string{folder}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("parameters below %s: list: %w", folder, err)
		}
		for _, p := range page.Parameters {
			name, rest, _ := strings.Cut(strings.TrimPrefix(*p.Name, folder+"/"), "/")
			// A rack whose parameters have been deleted has a status until it is forgotten.
			if (strings.HasPrefix(rest, "params/") || rest == "status") && names.ValidRack(name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// start starts a pass; one that is named at most once.
func (r *Resync) start(ctx context.Context, rack, input, execution string) error {
	start := &sfn.StartExecutionInput{StateMachineArn: &r.MachineARN, Input: &input}
	if execution != "" {
		start.Name = &execution
	}
	_, err := r.Machine.StartExecution(ctx, start)
	var exists *types.ExecutionAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("rack %s: start pass: %w", rack, err)
	}
	return nil
}

// request is the input of a pass that resync asks for.
func request(r events.ReconcileRequested) string {
	input, err := json.Marshal(map[string]any{"detail-type": r.DetailType(), "detail": r})
	if err != nil {
		panic("resync: request: " + err.Error()) // plain data always marshals
	}
	return string(input)
}
