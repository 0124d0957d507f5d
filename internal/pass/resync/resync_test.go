package resync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// scene has an account and the function resync in it.
type scene struct {
	*testing.T
	resync *Resync
	cloud  *awsfake.Cloud
	// measured has the lines of metrics.
	measured bytes.Buffer
}

func begin(t *testing.T, interval time.Duration, slots int) *scene {
	s := &scene{T: t, cloud: awsfake.New()}
	records, paths := &store.Store{DB: s.cloud.Table, Name: "sawhorse"}, ownership.Paths{Prefix: "/sawhorse"}
	teller := &report.Report{
		Store: records, Now: s.cloud.Now, Outputs: store.Published{SSM: s.cloud.SSM, Paths: paths},
		Send:    report.Bus{Events: s.cloud.Events, Name: "sawhorse"}.Send,
		Metrics: metrics.Writer{Out: io.Discard, Now: s.cloud.Now},
	}
	s.resync = &Resync{
		Machine: s.cloud.States, MachineARN: awsfake.MachineARN, Functions: s.cloud.Lambda, Audit: "Sawhorse-audit", Store: records,
		Parameters: s.cloud.SSM, Metrics: metrics.Writer{Out: &s.measured, Now: s.cloud.Now},
		Paths: paths, Interval: interval, Slots: slots, Now: s.cloud.Now, Report: teller.Run,
	}
	return s
}

// enlist adds racks to the list of those that are audited.
func (s *scene) enlist(names ...string) {
	s.Helper()
	for _, name := range names {
		if err := s.resync.Store.Enlist(s.Context(), name, false); err != nil {
			s.Fatal(err)
		}
	}
}

// audits returns the racks for which the function audit was called.
func (s *scene) audits() (racks []string) {
	s.Helper()
	for _, call := range s.cloud.Lambda.Invoked {
		var event struct{ Rack string }
		if input, ok := strings.CutPrefix(call, "Sawhorse-audit "); !ok || json.Unmarshal([]byte(input), &event) != nil {
			s.Fatal(call)
		}
		racks = append(racks, event.Rack)
	}
	return racks
}

// inputs returns the inputs of the executions that were started.
func (s *scene) inputs() (all []string) {
	for _, e := range s.cloud.States.Executions {
		if e.Status == sfntypes.ExecutionStatusRunning {
			all = append(all, e.Input)
		}
	}
	return all
}

// started returns the racks of the passes so far.
func (s *scene) started() (racks []string) {
	s.Helper()
	for _, input := range s.inputs() {
		var in struct {
			Type   string `json:"detail-type"`
			Detail struct {
				Rack string `json:"rack"`
				Full bool   `json:"full"`
			} `json:"detail"`
		}
		if err := json.Unmarshal([]byte(input), &in); err != nil || in.Type != "Rack Reconcile Requested" {
			s.Fatalf("%s: %v", input, err)
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
			s := begin(t, interval, c.slots)
			var want []string
			for i := range 70 {
				want = append(want, fmt.Sprintf("rack-%02d", i))
			}
			s.enlist(want...)
			for tick := range c.slots {
				due := time.Unix(1_800_000_000, 0).Add(offset + time.Duration(tick)*interval/time.Duration(c.slots))
				if _, err := s.resync.Run(t.Context(), Event{Time: due.UTC().Format(time.RFC3339)}); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.audits(); !slices.Equal(slices.Sorted(slices.Values(got)), want) || len(s.inputs()) > 0 {
				t.Errorf("%d minutes, %d slots, offset %s: %d audits, %d passes: %v",
					c.minutes, c.slots, offset, len(got), len(s.inputs()), got)
			}
		}
	}
}

// The racks are listed from the table, because Parameter Store would page through all parameters of the account.
func TestTheRacksAreThoseOfTheList(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.enlist("b", "a", "c-3")
	answer, err := s.resync.Run(t.Context(), Event{})
	if err != nil || !slices.Equal(answer.Racks, []string{"a", "b", "c-3"}) || !slices.Equal(s.audits(), []string{"a", "b", "c-3"}) {
		t.Errorf("%v, %v, audited %v", answer, err, s.audits())
	}
	for _, call := range s.cloud.Made() {
		if strings.HasPrefix(call, "SSM.") && call != "SSM.GetParameter /sawhorse/hold" {
			t.Errorf("a tick calls %s", call)
		}
	}
}

// An audit that cannot be called does not delay the other racks. The tick returns an error, so that Lambda repeats it.
func TestOneRackThatFailsKeepsNoOtherWaiting(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.enlist("a", "b", "c")
	s.cloud.Before = func(call string) error {
		if call == `Lambda.Invoke Sawhorse-audit {"rack":"a"}` {
			return awsfake.Throttling
		}
		return nil
	}
	tick := Event{Time: "2026-01-02T03:00:00Z"}
	answer, err := s.resync.Run(t.Context(), tick)
	if err == nil || !strings.Contains(err.Error(), "rack a") || !slices.Equal(answer.Racks, []string{"b", "c"}) {
		t.Errorf("%v, %v", answer, err)
	}
	s.cloud.Before = nil
	if _, err := s.resync.Run(t.Context(), tick); err != nil || !slices.Equal(s.audits(), []string{"b", "c", "a", "b", "c"}) {
		t.Errorf("%v, audited %v", err, s.audits())
	}
}

// Step Functions publishes ExecutionTime only when an execution ends. The age of the lease also shows a pass that hangs.
func TestThePassThatHangsIsMeasured(t *testing.T) {
	s := begin(t, time.Hour, 12)
	cloud := s.cloud
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
		s.measured.Reset()
		if _, err := s.resync.Run(t.Context(), Event{}); err != nil {
			t.Fatal(err)
		}
		var line struct {
			LongestPass float64
			AWS         struct {
				CloudWatchMetrics []struct{ Dimensions [][]string }
			} `json:"_aws"`
		}
		if err := json.Unmarshal(s.measured.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		// The fake's clock goes on by a second with each call.
		if got := line.LongestPass; got < least || got > least+40*min(1, least) || len(line.AWS.CloudWatchMetrics[0].Dimensions[0]) > 0 {
			t.Errorf("want %v s in %s", least, &s.measured)
		}
		if least == 7200 {
			hold("hangs", "", 2*time.Hour)
			hold("runs", "me", time.Minute)
		} else {
			hold("runs", "", time.Minute)
		}
	}
}
