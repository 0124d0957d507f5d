package resync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// machine is Step Functions: executions have a name once, and many inputs.
type machine struct {
	names  map[string]bool
	inputs []string
	err    error
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
		m.names[*in.Name] = true
	}
	m.inputs = append(m.inputs, *in.Input)
	return &sfn.StartExecutionOutput{}, nil
}

func begin(interval time.Duration, slots int) (*awsfake.Cloud, *machine, *Resync) {
	cloud, m := awsfake.New(), &machine{names: map[string]bool{}}
	return cloud, m, &Resync{
		Parameters: cloud.SSM, Machine: m, MachineARN: "arn:machine", Store: &rack.Store{DB: cloud.Table, Name: "sawhorse"},
		Paths: names.Paths{Prefix: "/sawhorse"}, Interval: interval, Slots: slots, Now: cloud.Now,
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

func ended(input, execution string) Event {
	var e Event
	text, _ := json.Marshal(map[string]any{"detail-type": "Step Functions Execution Status Change", "detail": map[string]any{
		"executionArn": execution, "status": "ABORTED", "input": input,
	}})
	_ = json.Unmarshal(text, &e)
	return e
}

const execution = "arn:aws:states:eu-central-1:123456789012:execution:Sawhorse-reconcile:"

func lease(cloud *awsfake.Cloud, owner, requested, served string) {
	item := awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"requested": &types.AttributeValueMemberN{Value: requested}, "served": &types.AttributeValueMemberN{Value: served},
	}
	if owner != "" {
		item["owner"] = &types.AttributeValueMemberS{Value: owner}
	}
	cloud.Table.Items["rack#demo lease"] = item
}

func TestAnExecutionThatEndedFreesItsRack(t *testing.T) {
	write := `{"source":"aws.ssm","detail-type":"Parameter Store Change","detail":{"name":"/sawhorse/racks/demo/params/node_disk"}}`
	request := `{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`
	for _, c := range []struct {
		what, input, owner, served string
		after                      string
		started                    int
	}{
		{"stopped in the middle", write, execution + "me", "2", "", 1},
		{"stopped, from another kind of event", request, execution + "me", "2", "", 1},
		{"the notice comes again after it was handled half", write, "", "2", "", 1},
		{"failed and released", write, "", "3", "", 0},
		{"another pass is at it", write, execution + "other", "2", execution + "other", 0},
		{"an input without a rack", `{"detail":{"name":"/other/x"}}`, execution + "me", "2", execution + "me", 0},
		{"an input that is none", `x`, execution + "me", "2", execution + "me", 0},
		{"a rack that is none", `{"detail":{"rack":"../x"}}`, execution + "me", "2", execution + "me", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, m, r := begin(time.Hour, 1)
			lease(cloud, c.owner, "3", c.served)
			if _, err := r.Run(t.Context(), ended(c.input, execution+"me")); err != nil {
				t.Fatal(err)
			}
			if owner := awsfake.Text(cloud.Table.Items["rack#demo lease"], "owner"); owner != c.after || len(m.inputs) != c.started {
				t.Errorf("owner %q, started %v", owner, m.inputs)
			}
		})
	}
}

// EventBridge delivers at least once, and a call may fail between its two effects: one pass follows in the end.
func TestTheSameNoticeTwiceStartsOnePass(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	lease(cloud, execution+"me", "3", "2")
	notice := ended(`{"detail":{"rack":"demo"}}`, execution+"me")
	m.err = awsfake.Throttling
	if _, err := r.Run(t.Context(), notice); err == nil {
		t.Fatal("a pass that could not be started is no success")
	}
	m.err = nil
	for range 2 {
		if _, err := r.Run(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.started(t); !slices.Equal(got, []string{"demo false"}) {
		t.Errorf("started %v", got)
	}
}

// A rack whose passes die again and again goes on being served: names of executions do not run out.
func TestSuccessorsOfSuccessors(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	name := strings.Repeat("e", 73) // as long as those that EventBridge gives
	for range 30 {
		lease(cloud, execution+name, "3", "2")
		known := maps.Clone(m.names)
		if _, err := r.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+name)); err != nil {
			t.Fatal(err)
		}
		for started := range m.names {
			if !known[started] {
				name = started
			}
		}
	}
	if len(m.inputs) != 30 {
		t.Errorf("%d passes of 30", len(m.inputs))
	}
}
