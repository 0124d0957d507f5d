package resync

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/meter"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps/report"
)

// machine is Step Functions: executions have a name once, and many inputs.
type machine struct {
	names  map[string]bool
	last   string // the latest of them
	inputs []string
	err    error
	// history is that of every execution, the last event first; without one it cannot be read.
	history []sfntypes.HistoryEvent
}

func (m *machine) GetExecutionHistory(_ context.Context, in *sfn.GetExecutionHistoryInput, _ ...func(*sfn.Options)) (*sfn.GetExecutionHistoryOutput, error) {
	if m.history == nil || !in.ReverseOrder {
		return nil, awsfake.Throttling
	}
	return &sfn.GetExecutionHistoryOutput{Events: m.history}, nil
}

func (m *machine) StartExecution(_ context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	if m.err != nil {
		return nil, m.err
	}
	if in.Name != nil {
		if len(*in.Name) > 80 {
			return nil, &sfntypes.InvalidName{}
		}
		if m.names[*in.Name] {
			return nil, &sfntypes.ExecutionAlreadyExists{}
		}
		m.names[*in.Name], m.last = true, *in.Name
	}
	m.inputs = append(m.inputs, *in.Input)
	return &sfn.StartExecutionOutput{}, nil
}

func begin(interval time.Duration, slots int) (*awsfake.Cloud, *machine, *Resync) {
	cloud, m := awsfake.New(), &machine{names: map[string]bool{}}
	store, paths := &rack.Store{DB: cloud.Table, Name: "sawhorse"}, names.Paths{Prefix: "/sawhorse"}
	teller := &report.Report{
		Store: store, Now: cloud.Now, Outputs: rack.Published{SSM: cloud.SSM, Paths: paths}, Send: report.Bus{Events: cloud.Events, Name: "sawhorse"}.Send,
		Meter: meter.Meter{Out: io.Discard, Now: cloud.Now},
	}
	return cloud, m, &Resync{
		Parameters: cloud.SSM, Machine: m, MachineARN: "arn:machine", Store: store,
		Paths: paths, Interval: interval, Slots: slots, Now: cloud.Now, Report: teller.Run,
	}
}

// started are the racks of the passes so far.
func (m *machine) started(t *testing.T) []string {
	t.Helper()
	var racks []string
	for _, input := range m.inputs {
		var in struct {
			Type   string `json:"detail-type"`
			Detail struct {
				Rack string `json:"rack"`
				Full bool   `json:"full"`
			} `json:"detail"`
		}
		if err := json.Unmarshal([]byte(input), &in); err != nil || in.Type != "Rack Reconcile Requested" {
			t.Fatalf("%s: %v", input, err)
		}
		racks = append(racks, fmt.Sprint(in.Detail.Rack, " ", in.Detail.Full))
	}
	return racks
}

// Whatever the interval, and whenever the schedule was made: in one interval each rack has one full pass.
func TestEachRackOnceAnInterval(t *testing.T) {
	for _, c := range []struct{ minutes, slots int }{{60, 12}, {60, 1}, {60, 60}, {15, 5}, {1, 1}, {1440, 48}, {30, 3}} {
		for _, offset := range []time.Duration{0, time.Second, 17*time.Minute + 3*time.Second} {
			interval := time.Duration(c.minutes) * time.Minute
			cloud, m, r := begin(interval, c.slots)
			var want []string
			for i := range 70 {
				name := fmt.Sprintf("rack-%02d", i)
				cloud.SSM.Values["/sawhorse/racks/"+name+"/params/karpenter_enabled"] = "true"
				want = append(want, name+" true")
			}
			for tick := range c.slots {
				due := time.Unix(1_800_000_000, 0).Add(offset + time.Duration(tick)*interval/time.Duration(c.slots))
				if _, err := r.Run(t.Context(), Event{Time: due.UTC().Format(time.RFC3339)}); err != nil {
					t.Fatal(err)
				}
			}
			got := m.started(t)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%d minutes, %d slots, offset %s: %d passes: %v", c.minutes, c.slots, offset, len(got), got)
			}
		}
	}
}

// A rack whose parameters have been deleted has its status until it is forgotten.
func TestRacksAreThoseWithParametersOrAStatus(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	for _, name := range []string{
		"racks/b/params/node_disk", "racks/b/params/paused", "racks/a/params/paused", "racks/only-status/status",
		"racks/Bad/params/paused", "racks/a/outputs/params", "other/params/x",
	} {
		cloud.SSM.Values["/sawhorse/"+name] = "x"
	}
	for i := range 60 { // a second page
		cloud.SSM.Values[fmt.Sprintf("/sawhorse/racks/b/params/p%d", i)] = "x"
	}
	answer, err := r.Run(t.Context(), Event{})
	if err != nil || !slices.Equal(answer.Racks, []string{"a", "b", "only-status"}) || !slices.Equal(m.started(t), []string{"a true", "b true", "only-status true"}) {
		t.Errorf("%v, %v, started %v", answer, err, m.started(t))
	}
}
