package validate

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
)

// An event that is no request is answered with the nearest one, by its id; nothing is read or kept for it, whatever rack it names.
func TestAnUnknownEventIsRefused(t *testing.T) {
	for misspelled, nearest := range map[string]string{
		"Rack Parameter Change Requested":    events.TypeParametersChangeRequested,
		"rack parameters change requested":   events.TypeParametersChangeRequested,
		"RackReconcileRequested":             events.TypeReconcileRequested,
		"Rack Reconcile Request":             events.TypeReconcileRequested,
		"Order Placed":                       "",
		strings.Repeat("Rack Reconcile ", 8): "",
	} {
		meant := "write one of these"
		if nearest != "" {
			meant = "did you mean " + nearest + "?"
		}
		s := begin(t, auth)
		s.cloud.Forget()
		answer, err := s.validate.Run(t.Context(), Event{
			Rack: "demo", Execution: "me", DryRun: true, Unknown: UnknownEvent{DetailType: misspelled, ID: "7"},
		})
		s.must(err)
		s.wants(answer, Rejected, false, "")
		if calls := s.cloud.Made(); len(calls) > 0 {
			t.Errorf("%s: it calls %q", misspelled, calls)
		}
		want := `7: detail-type: the event's detail-type is "` + misspelled + `"; `
		if len(s.refused) != 1 || len(s.refusals) != 1 || !strings.HasPrefix(s.refused[0]+": "+s.refusals[0], want) ||
			!strings.HasSuffix(s.refusals[0], "; send it again; "+meant) {
			t.Errorf("refused %q: %q, want %s…", s.refused, s.refusals, want)
		}
	}
}
