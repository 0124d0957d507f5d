package resync

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// machine fakes Step Functions, which starts an execution only once for each name.
type machine struct {
	names  map[string]bool
	last   string // the latest of them
	inputs []string
	err    error
	// history is the history of every execution, the last event first. Without it, reading fails with the error unread.
	history []sfntypes.HistoryEvent
	unread  error
	looks   int
	// audits has the racks that were audited, refused those whose audit cannot be called.
	audits, refused []string
	// measured has the lines of metrics.
	measured bytes.Buffer
}

func (m *machine) GetExecutionHistory(_ context.Context, in *sfn.GetExecutionHistoryInput,
	_ ...func(*sfn.Options)) (*sfn.GetExecutionHistoryOutput, error) {
	m.looks++
	if m.history == nil || !in.ReverseOrder {
		return nil, m.unread
	}
	return &sfn.GetExecutionHistoryOutput{Events: m.history}, nil
}

func (m *machine) StartExecution(_ context.Context, in *sfn.StartExecutionInput,
	_ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
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

// Invoke makes the machine Lambda. It takes only asynchronous calls of the function audit.
func (m *machine) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	var event struct{ Rack string }
	if err := json.Unmarshal(in.Payload, &event); err != nil || *in.FunctionName != "Sawhorse-audit" || in.InvocationType != "Event" {
		return nil, fmt.Errorf("%s %s %s", *in.FunctionName, in.InvocationType, in.Payload)
	}
	if slices.Contains(m.refused, event.Rack) {
		return nil, awsfake.Throttling
	}
	m.audits = append(m.audits, event.Rack)
	return &lambda.InvokeOutput{StatusCode: 202}, nil
}

func begin(interval time.Duration, slots int) (*awsfake.Cloud, *machine, *Resync) {
	cloud, m := awsfake.New(), &machine{names: map[string]bool{}, unread: &sfntypes.ExecutionDoesNotExist{}}
	records, paths := &store.Store{DB: cloud.Table, Name: "sawhorse"}, ownership.Paths{Prefix: "/sawhorse"}
	teller := &report.Report{
		Store: records, Now: cloud.Now, Outputs: store.Published{SSM: cloud.SSM, Paths: paths},
		Send:    report.Bus{Events: cloud.Events, Name: "sawhorse"}.Send,
		Metrics: metrics.Writer{Out: io.Discard, Now: cloud.Now},
	}
	return cloud, m, &Resync{
		Machine: m, MachineARN: "arn:machine", Functions: m, Audit: "Sawhorse-audit", Store: records, Parameters: cloud.SSM,
		Metrics: metrics.Writer{Out: &m.measured, Now: cloud.Now},
		Paths:   paths, Interval: interval, Slots: slots, Now: cloud.Now, Report: teller.Run,
	}
}

// started returns the racks of the passes so far.
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

// Each rack is audited once in one interval, for any interval and any start of the schedule.
func TestEachRackOnceAnInterval(t *testing.T) {
	for _, c := range []struct{ minutes, slots int }{{60, 12}, {60, 1}, {60, 60}, {15, 5}, {1, 1}, {1440, 48}, {30, 3}} {
		for _, offset := range []time.Duration{0, time.Second, 17*time.Minute + 3*time.Second} {
			interval := time.Duration(c.minutes) * time.Minute
			_, m, r := begin(interval, c.slots)
			var want []string
			for i := range 70 {
				name := fmt.Sprintf("rack-%02d", i)
				if err := r.Store.Enlist(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				want = append(want, name)
			}
			for tick := range c.slots {
				due := time.Unix(1_800_000_000, 0).Add(offset + time.Duration(tick)*interval/time.Duration(c.slots))
				if _, err := r.Run(t.Context(), Event{Time: due.UTC().Format(time.RFC3339)}); err != nil {
					t.Fatal(err)
				}
			}
			if slices.Sort(m.audits); !slices.Equal(m.audits, want) || len(m.inputs) > 0 {
				t.Errorf("%d minutes, %d slots, offset %s: %d audits, %d passes: %v",
					c.minutes, c.slots, offset, len(m.audits), len(m.inputs), m.audits)
			}
		}
	}
}

// The racks are listed from the table, because Parameter Store would page through all parameters of the account.
func TestTheRacksAreThoseOfTheList(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	for _, name := range []string{"b", "a", "c-3"} {
		if err := r.Store.Enlist(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := r.Run(t.Context(), Event{})
	if err != nil || !slices.Equal(answer.Racks, []string{"a", "b", "c-3"}) || !slices.Equal(m.audits, []string{"a", "b", "c-3"}) {
		t.Errorf("%v, %v, audited %v", answer, err, m.audits)
	}
	for _, call := range cloud.Made() {
		if strings.HasPrefix(call, "SSM.") {
			t.Errorf("a tick calls %s", call)
		}
	}
}

// An audit that cannot be called does not delay the other racks. The tick returns an error, so that Lambda repeats it.
func TestOneRackThatFailsKeepsNoOtherWaiting(t *testing.T) {
	_, m, r := begin(time.Hour, 1)
	for _, name := range []string{"a", "b", "c"} {
		if err := r.Store.Enlist(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	m.refused = []string{"a"}
	tick := Event{Time: "2026-01-02T03:00:00Z"}
	answer, err := r.Run(t.Context(), tick)
	if err == nil || !strings.Contains(err.Error(), "rack a") || !slices.Equal(answer.Racks, []string{"b", "c"}) {
		t.Errorf("%v, %v", answer, err)
	}
	m.refused = nil
	if _, err := r.Run(t.Context(), tick); err != nil || !slices.Equal(m.audits, []string{"b", "c", "a", "b", "c"}) {
		t.Errorf("%v, audited %v", err, m.audits)
	}
}

// Step Functions publishes ExecutionTime only when an execution ends. The age of the lease also shows a pass that hangs.
func TestThePassThatHangsIsMeasured(t *testing.T) {
	cloud, m, r := begin(time.Hour, 12)
	hold := func(name, owner string, since time.Duration) {
		item := awsfake.Item{
			"pk": &types.AttributeValueMemberS{Value: "rack#" + name}, "sk": &types.AttributeValueMemberS{Value: "lease"},
			"since": &types.AttributeValueMemberN{Value: fmt.Sprint(cloud.Now().Add(-since).Unix())},
		}
		if owner != "" {
			item["owner"] = &types.AttributeValueMemberS{Value: owner}
		}
		cloud.Table.Items["rack#"+name+" lease"] = item
		cloud.Table.Items["racks "+name] = awsfake.Item{
			"pk": &types.AttributeValueMemberS{Value: "racks"}, "sk": &types.AttributeValueMemberS{Value: name},
		}
	}
	hold("hangs", "me", 2*time.Hour)
	hold("runs", "me", time.Minute)
	hold("free", "", 9*time.Hour)
	for _, least := range []float64{7200, 60, 0} {
		m.measured.Reset()
		if _, err := r.Run(t.Context(), Event{}); err != nil {
			t.Fatal(err)
		}
		var line struct {
			LongestPass float64
			AWS         struct {
				CloudWatchMetrics []struct{ Dimensions [][]string }
			} `json:"_aws"`
		}
		if err := json.Unmarshal(m.measured.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		// The fake's clock goes on by a second with each call.
		if got := line.LongestPass; got < least || got > least+40*min(1, least) || len(line.AWS.CloudWatchMetrics[0].Dimensions[0]) > 0 {
			t.Errorf("want %v s in %s", least, &m.measured)
		}
		if least == 7200 {
			hold("hangs", "", 2*time.Hour)
			hold("runs", "me", time.Minute)
		} else {
			hold("runs", "", time.Minute)
		}
	}
}
