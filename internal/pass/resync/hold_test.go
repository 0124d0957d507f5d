package resync

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const hold = "/sawhorse/hold"

// writes writes the hold and returns its event.
func (s *scene) writes(text string) Event {
	s.Helper()
	_, err := s.cloud.SSM.PutParameter(s.Context(), &ssm.PutParameterInput{
		Name: new(hold), Value: &text, Overwrite: new(true), Type: ssmtypes.ParameterTypeString,
	})
	if err != nil {
		s.Fatal(err)
	}
	e := Event{DetailType: "Parameter Store Change", Time: s.cloud.Now().UTC().Format(time.RFC3339)}
	e.Detail.Operation = "Update"
	return e
}

// leased gives a rack a lease that has been requested so often; with a pass if it has an owner.
func (s *scene) leased(rack string, requested int, owner string) {
	item := awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#" + rack}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"requested": &types.AttributeValueMemberN{Value: fmt.Sprint(requested)},
		"since":     &types.AttributeValueMemberN{Value: fmt.Sprint(s.cloud.Now().Unix())},
	}
	if owner != "" {
		item["owner"] = &types.AttributeValueMemberS{Value: owner}
	}
	s.cloud.Table.Items["rack#"+rack+" lease"] = item
}

// interrupted returns the racks whose pass was told of the hold, with how often anything was requested of them.
func (s *scene) interrupted() (all []string) {
	for _, rack := range []string{"canary", "idle", "runs"} {
		if item := s.cloud.Table.Items["rack#"+rack+" lease"]; item["heldAt"] != nil {
			all = append(all, fmt.Sprint(rack, " ", item["heldAt"].(*types.AttributeValueMemberN).Value))
		}
	}
	return all
}

func (s *scene) run(event Event) {
	s.Helper()
	if _, err := s.resync.Run(s.Context(), event); err != nil {
		s.Error(err)
	}
}

// A write of the hold ends the passes of held racks; a tick does the same if the event was lost, once for each write.
func TestAHoldReachesPassesThatRun(t *testing.T) {
	const except = `{"racks": ["*"], "except": ["canary"]}`
	for _, c := range []struct {
		what string
		text string
		want []string
	}{
		{"all but one", except, []string{"runs 8"}},
		{"not understood", "x", []string{"canary 8", "runs 8"}},
		{"none of them", `{"racks": ["other"]}`, nil},
	} {
		for _, lost := range []bool{false, true} {
			s := begin(t, time.Hour, 60)
			s.enlist("canary", "idle", "runs")
			s.leased("canary", 7, "me")
			s.leased("idle", 7, "")
			s.leased("runs", 7, "me")
			event := s.writes(c.text)
			if lost {
				event = Event{}
			}
			s.run(event)
			if got := s.interrupted(); !slices.Equal(got, c.want) {
				t.Errorf("%s, event lost %v: %v, want %v", c.what, lost, got, c.want)
			}
			if wrote := s.cloud.Table.Items["rack#runs lease"]["wrote32"]; c.want != nil && (wrote == nil) != lost {
				t.Errorf("%s, event lost %v: the pass must read %v", c.what, lost, wrote)
			}
			s.run(Event{})
			if got := s.interrupted(); !slices.Equal(got, c.want) {
				t.Errorf("%s: another tick: %v, want %v", c.what, got, c.want)
			}
			if len(s.started()) > 0 {
				t.Errorf("%s: passes %v", c.what, s.started())
			}
		}
	}
}

// While Parameter Store shows the hold from before the event, every pass that runs reads again, and none is started.
func TestAHoldThatIsNotShownYet(t *testing.T) {
	s := begin(t, time.Hour, 60)
	s.enlist("canary", "idle", "runs")
	must(t, s.resync.Store.Enlist(t.Context(), "idle", true))
	s.writes(`{"racks": ["idle"]}`)
	s.cloud.Pass(time.Hour)
	s.cloud.Lag.Parameters = 40 * time.Second
	s.leased("canary", 7, "me")
	s.leased("runs", 7, "me")
	s.run(s.writes(`{"racks": ["runs"]}`))
	if got := s.interrupted(); !slices.Equal(got, []string{"canary 8", "runs 8"}) || len(s.started()) > 0 {
		t.Errorf("interrupted %v, started %v", got, s.started())
	}
}

// The racks that are let go get a full pass each within five minutes, not all at once, and each once, also if ticks are
// repeated; a rack that stays held, and one that no pass found held, get none.
func TestRacksAreLetGoOverFiveMinutes(t *testing.T) {
	for minutes, most := range map[int]int{1: 14, 5: 40, 30: 40} {
		s := begin(t, time.Hour, 60/minutes)
		var want []string
		for i := range 40 {
			rack := fmt.Sprintf("rack-%02d", i)
			must(t, s.resync.Store.Enlist(t.Context(), rack, true))
			want = append(want, rack+" true")
		}
		must(t, s.resync.Store.Enlist(t.Context(), "kept", true))
		s.enlist("free")
		s.run(s.writes(`{"racks": ["kept"]}`))
		last, now := len(s.started()), s.cloud.Now() // the fake's clock goes on with each call
		for minute := 0; minute < 5; minute += minutes {
			if got := len(s.started()); got-last > most {
				t.Errorf("ticks of %d minutes: %d passes at once", minutes, got-last)
			}
			last = len(s.started())
			for range 2 {
				s.run(Event{Time: now.Add(time.Duration(minute) * time.Minute).UTC().Format(time.RFC3339)})
			}
		}
		if got := slices.Sorted(slices.Values(s.started())); !slices.Equal(got, want) {
			t.Errorf("ticks of %d minutes: %d passes: %v", minutes, len(got), got)
		}
	}
}

// A pass that was started and did not clear the mark is followed by another one, five minutes later.
func TestARackThatIsStillMarkedIsStartedAgain(t *testing.T) {
	s := begin(t, time.Hour, 1)
	must(t, s.resync.Store.Enlist(t.Context(), "runs", true))
	s.run(Event{})
	s.run(Event{})
	s.leased("runs", 1, "")
	s.run(Event{})
	if got := s.started(); len(got) != 2 {
		t.Errorf("started %v", got)
	}
}

// Each tick measures the age of the hold, and whether it is understood; without a hold neither has data.
func TestTheHoldIsMeasured(t *testing.T) {
	s := begin(t, time.Hour, 60)
	measured := func(what string, age, unclear bool) {
		t.Helper()
		s.measured.Reset()
		s.run(Event{})
		text := s.measured.String()
		if strings.Contains(text, `"HoldAge":90`) != age || strings.Contains(text, `"HoldUnclear":1`) != unclear {
			t.Errorf("%s: %s", what, text)
		}
	}
	measured("none", false, false)
	s.writes(`{"racks": ["*"]}`)
	s.cloud.Pass(25 * time.Hour) // 90,000 s
	measured("an old one", true, false)
	s.writes("x")
	measured("one that is not understood", false, true)
	s.cloud.Before = func(call string) error {
		if call == "SSM.GetParameter "+hold {
			return &smithy.GenericAPIError{Code: "AccessDeniedException"}
		}
		return nil
	}
	measured("one that may not be read", false, true)
}

// A tick that cannot read the hold for another reason has the racks audited nevertheless, and returns the error.
func TestAHoldThatCannotBeReadNow(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.enlist("a")
	s.cloud.Before = func(call string) error {
		if call == "SSM.GetParameter "+hold {
			return awsfake.Throttling
		}
		return nil
	}
	if _, err := s.resync.Run(t.Context(), Event{}); err == nil || !slices.Equal(s.audits(), []string{"a"}) {
		t.Errorf("%v, audited %v", err, s.audits())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
