package meter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// line has the parts of the embedded metric format that CloudWatch requires.
type line struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []metric
		}
	} `json:"_aws"`
}

func written(t *testing.T, p Pass) (line, map[string]any) {
	t.Helper()
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := (Meter{Out: &out, Namespace: "Sawhorse", Now: func() time.Time { return now }}).Pass(p); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
		t.Fatalf("not one line: %q", out.String())
	}
	var l line
	var values map[string]any
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &values); err != nil {
		t.Fatal(err)
	}
	if l.AWS.Timestamp != now.UnixMilli() || len(l.AWS.CloudWatchMetrics) != 1 || l.AWS.CloudWatchMetrics[0].Namespace != "Sawhorse" {
		t.Fatalf("%+v", l)
	}
	return l, values
}

func TestEveryMetricOfALineHasItsValueByRackAndOverAll(t *testing.T) {
	took := 90 * time.Second
	for _, p := range []Pass{
		{Rack: "demo", Generation: 7, Execution: "me", State: "Reconciled", Changes: 3, Took: &took, Told: true},
		{Rack: "demo", State: "Rejected", Told: true},
	} {
		l, values := written(t, p)
		of := l.AWS.CloudWatchMetrics[0]
		if len(of.Dimensions) != 2 || len(of.Dimensions[0]) != 1 || len(of.Dimensions[1]) != 0 || values[of.Dimensions[0][0]] != "demo" {
			t.Errorf("dimensions %v of %v", of.Dimensions, values)
		}
		for _, m := range of.Metrics {
			if _, number := values[m.Name].(float64); !number || m.Unit == "" {
				t.Errorf("metric %+v: value %v", m, values[m.Name])
			}
		}
	}
}

// CloudWatch bills a metric for each hour in which it has data. A pass with nothing to report writes no metrics by
// rack.
func TestAPassWithNothingToTellHasNoMetricsByRack(t *testing.T) {
	l, values := written(t, Pass{Rack: "demo", State: "Reconciled"})
	if of := l.AWS.CloudWatchMetrics[0].Dimensions; len(of) != 1 || len(of[0]) != 0 || values["rack"] != "demo" || values[Passes] != 1.0 {
		t.Errorf("dimensions %v of %v", of, values)
	}
}

func TestStates(t *testing.T) {
	for state, want := range map[string][3]float64{
		"Reconciled": {0, 0, 0}, "Paused": {1, 0, 0}, "Rejected": {1, 1, 0}, "Failed": {1, 0, 1},
	} {
		_, values := written(t, Pass{Rack: "demo", State: state})
		if got := [3]any{values[OutOfLine], values[Rejected], values[Failed]}; got != [3]any{want[0], want[1], want[2]} || values[Passes] != 1.0 {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}

func TestAPassThatHadNothingToDoHasNoDuration(t *testing.T) {
	l, values := written(t, Pass{Rack: "demo", State: "Reconciled"})
	if _, there := values[Seconds]; there || len(l.AWS.CloudWatchMetrics[0].Metrics) != 5 {
		t.Errorf("%v", values)
	}
	took := 1500 * time.Millisecond
	if _, values = written(t, Pass{Rack: "demo", State: "Reconciled", Took: &took}); values[Seconds] != 1.5 {
		t.Errorf("%v", values)
	}
}
