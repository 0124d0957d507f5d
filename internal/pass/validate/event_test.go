package validate

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// An event that is not a request is answered with the only one, under the event's ID. Nothing is read or
// stored for it, whatever rack it names.
func TestAnUnknownEventIsRefused(t *testing.T) {
	for _, misspelled := range []string{
		"RackReconcileRequested", "Rack Reconcile Request", "Rack Parameters Change Requested", "Order Placed",
		strings.Repeat("Rack Reconcile ", 8),
	} {
		s := begin(t, auth)
		s.cloud.Forget()
		answer, err := s.validate.Run(t.Context(), Event{
			Rack: "demo", Execution: "me", DryRun: true, Unknown: statemachine.UnknownEvent{DetailType: misspelled, ID: "7"},
		})
		s.must(err)
		s.wants(answer, outcome.PassRejected, false, "")
		if calls := s.cloud.Made(); len(calls) > 0 {
			t.Errorf("%s: it calls %q", misspelled, calls)
		}
		want := `7: detail-type: the event's detail-type is "` + misspelled + `"; allowed is "Rack Reconcile Requested"; `
		if len(s.refused) != 1 || len(s.refusals) != 1 || !strings.HasPrefix(s.refused[0]+": "+s.refusals[0], want) {
			t.Errorf("refused %q: %q, want %s…", s.refused, s.refusals, want)
		}
	}
}

// A request with a wrong field is answered with the field and what to write instead. Nothing is read or stored for it.
func TestAWrongRequestIsRefused(t *testing.T) {
	const ask = events.TypeReconcileRequested
	for _, c := range []struct {
		detailType, detail, rack string
		problems                 []string // path, and a part of the message
	}{
		{ask, `{"rack":"demo","forced":true}`, "demo", []string{
			`forced: the request has the unknown field "forced"; allowed are dryRun, force, full, rack, reason, request, set, unset; ` +
				`nothing was done for it; send it again; did you mean force?`}},
		{ask, `{"rack":"demo","zzzzzzzz":true}`, "demo", []string{"zzzzzzzz: nothing was done for it; send it again; leave it out"}},
		{ask, `{"rack":"demo","dryrun":true}`, "demo", []string{"dryrun: did you mean dryRun?"}},
		{ask, `{"rack":"demo","full":"true"}`, "demo", []string{"full: full is text in quotes; allowed is true or false without quotes; " +
			"nothing was done for it; write that, and send the request again"}},
		{ask, `{"rack":"demo","full":[true],"force":null}`, "demo", []string{
			"force: force is null; allowed is an array", "full: full is an array;"}},
		{ask, `{"rack":"demo","force":["room","rooms",7]}`, "demo", []string{
			`force[1]: force has the word "rooms"; allowed are room, foreign-pools, instances, version, new-defaults, contested, retire:{pool};`,
			"force[2]: force has the word 7;"}},
		{ask, `{"rack":"demo","reason":{},"request":7}`, "demo", []string{
			"reason: reason is an object; allowed is text",
			"request: request is a number; allowed is text in quotes; nothing was done for it; write that"}},
		{ask, `{"rack":"demo","request":"` + strings.Repeat("é", events.MaxRequest+1) + `"}`, "demo", []string{
			"request: request has 129 characters; allowed are at most 128"}},
		{ask, `{"dryRun":true}`, "", []string{"rack: the request names no rack"}},
		{ask, `{"rack":7}`, "", []string{"rack: rack is a number; allowed is text"}},
		{ask, `{"rack":"Demo","ful":true}`, "Demo", []string{`rack: the rack's name is "Demo"; allowed is a-z first`, "ful: did you mean full?"}},
		{ask, `{"rack":"demo-"}`, "demo-", []string{"rack: no dash at the end"}},
		{ask, `{"rack":"demo","set":{"paused":"true"}}`, "demo", []string{
			"set: set is only for dry runs; nothing was done for it; write dryRun: true"}},
		{ask, `{"rack":"demo","dryRun":true,"unset":"paused"}`, "demo", []string{"unset: unset is text in quotes; allowed is an array;"}},
		{ask, "", "demo", []string{": is too large to say which"}},
		// This happens only if the state machine and this function disagree.
		{ask, `{"rack":"demo"}`, "demo", []string{": is not as docs/events.md describes it"}},
	} {
		s := begin(t, auth)
		s.cloud.Forget()
		answer, err := s.validate.Run(t.Context(), Event{
			Rack: c.rack, Execution: "me", DryRun: true, Request: "r-1",
			Unknown: statemachine.UnknownEvent{DetailType: c.detailType, ID: "7", Detail: c.detail},
		})
		s.must(err)
		s.wants(answer, outcome.PassRejected, false, "")
		if calls := s.cloud.Made(); len(calls) > 0 {
			t.Errorf("%s: it calls %q", c.detail, calls)
		}
		if want := map[bool]string{true: "demo"}[c.rack == "demo"]; s.answered.Rack != want || s.answered.Request != "r-1" {
			t.Errorf("%s: answered as rack %q, request %q", c.detail, s.answered.Rack, s.answered.Request)
		}
		if len(s.answered.Problems) != len(c.problems) {
			t.Errorf("%s: %+v", c.detail, s.answered.Problems)
			continue
		}
		for i, p := range s.answered.Problems {
			path, part, _ := strings.Cut(c.problems[i], ": ")
			if p.Parameter != "detail" || p.Path != path || !strings.Contains(p.Message, part) {
				t.Errorf("%s: %+v, want %s", c.detail, p, c.problems[i])
			}
		}
	}
}
