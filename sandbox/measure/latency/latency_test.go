package latency

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
)

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }

// A state ends where the next one begins. The one in which the NodePool gets the value ends there, and those after it
// are left out.
func TestTimesOfStates(t *testing.T) {
	got := times(at(0), at(9), passes.Timeline{Began: at(1), States: []passes.Visit{
		{State: "Debounce", At: at(2)}, {State: "Validate", At: at(5)}, {State: "RunStep", At: at(7)}, {State: "Report", At: at(11)},
	}})
	want := []state{
		{"write, event, start", time.Second}, {"until the first state", time.Second},
		{"Debounce", 3 * time.Second}, {"Validate", 2 * time.Second}, {"RunStep", 2 * time.Second},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestTheReportHasMediansAndTheirRatio(t *testing.T) {
	var all []round
	for i := range 3 {
		all = append(all, round{
			kubectl: time.Duration(i+1) * 100 * time.Millisecond, call: 10 * time.Millisecond, write: 700 * time.Millisecond,
			states: []state{{"RunStep", time.Duration(i+1) * time.Second}, {"RunStep", time.Second}},
		})
	}
	var text bytes.Buffer
	out := heartbeat.New(&text, "a test")
	defer out.Stop()
	report(out, all, time.Second)
	for _, want := range []string{"kubectl patch of a NodePool              0.200 s", "compared with kubectl         3.5\n",
		"RunStep                                  3.000 s\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}
