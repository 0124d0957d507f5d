package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// written returns what a pass's line makes CloudWatch record: the values by the dimension's value and the metric's name,
// as in " Changes" or " Passes".
func written(t *testing.T, p Pass) map[string]float64 {
	t.Helper()
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := (Writer{Out: &out, Namespace: "Sawhorse", Now: func() time.Time { return now }}).Pass(p); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
		t.Fatalf("not one line: %q", out.String())
	}
	var line struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []directive
		} `json:"_aws"`
	}
	var values map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &values); err != nil {
		t.Fatal(err)
	}
	if line.AWS.Timestamp != now.UnixMilli() || values["rack"] != p.Rack || values["state"] != string(p.State) {
		t.Errorf("%s", out.String())
	}
	all := map[string]float64{}
	for _, d := range line.AWS.CloudWatchMetrics {
		if d.Namespace != "Sawhorse" {
			t.Errorf("namespace %q", d.Namespace)
		}
		for _, names := range d.Dimensions {
			of := ""
			for _, name := range names {
				of, _ = values[name].(string)
			}
			for _, m := range d.Metrics {
				value, number := values[m.Name].(float64)
				if !number || m.Unit == "" {
					t.Errorf("metric %+v: value %v", m, values[m.Name])
				}
				all[of+" "+m.Name] = value
			}
		}
	}
	return all
}

// CloudWatch bills a metric for each hour in which it has data. The metric by rack is written by a pass after which the
// rack is out of line, and by one whose status says something new: also that the rack is in line again.
func TestMetrics(t *testing.T) {
	took := 1500 * time.Millisecond
	type values = map[string]float64
	for what, c := range map[string]struct {
		pass Pass
		want values
	}{
		"nothing to do": {
			Pass{State: "Reconciled"}, values{" Passes": 1, " Rejected": 0, " Failed": 0},
		},
		"a full pass that found nothing": {
			Pass{State: "Reconciled", Took: &took}, values{" Passes": 1, " Rejected": 0, " Failed": 0},
		},
		"changes": {
			Pass{State: "Reconciled", Changes: 3, Took: &took, NewStatus: true},
			values{" Passes": 1, " Rejected": 0, " Failed": 0, "demo OutOfLine": 0, " Changes": 3, " Seconds": 1.5},
		},
		"rejected": {
			Pass{State: "Rejected", Took: &took, NewStatus: true},
			values{" Passes": 1, " Rejected": 1, " Failed": 0, "demo OutOfLine": 1, " Changes": 0, " Seconds": 1.5},
		},
		"rejected for the same": {
			Pass{State: "Rejected"}, values{" Passes": 1, " Rejected": 1, " Failed": 0, "demo OutOfLine": 1, " Changes": 0},
		},
		"failed": {
			Pass{State: "Failed", Took: &took, NewStatus: true},
			values{" Passes": 1, " Rejected": 0, " Failed": 1, "demo OutOfLine": 1, " Changes": 0, " Seconds": 1.5},
		},
		"paused": {
			Pass{State: "Paused"}, values{" Passes": 1, " Rejected": 0, " Failed": 0, "demo OutOfLine": 1, " Changes": 0},
		},
		"in line again": {
			Pass{State: "Reconciled", Took: &took, NewStatus: true},
			values{" Passes": 1, " Rejected": 0, " Failed": 0, "demo OutOfLine": 0, " Changes": 0, " Seconds": 1.5},
		},
		"a rack that does not exist": {
			Pass{State: "Failed", Took: &took, NewStatus: true, Unknown: true}, values{" Passes": 1, " Rejected": 0, " Failed": 1},
		},
	} {
		c.pass.Rack = "demo"
		if got := written(t, c.pass); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// A rack costs nothing while its pools are in order.
func TestDegradedRacks(t *testing.T) {
	var out bytes.Buffer
	writer := Writer{Out: &out, Namespace: "Sawhorse", Now: time.Now}
	if err := writer.Degraded(nil, nil); err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := writer.Degraded([]string{"a", "b"}, []string{"c"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for text := range strings.Lines(out.String()) {
		var line struct {
			Rack                     string
			OutOfLine, DegradedRacks int
			AWS                      struct{ CloudWatchMetrics []directive } `json:"_aws"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		d := line.AWS.CloudWatchMetrics[0]
		got = append(got, fmt.Sprint(line.Rack, d.Dimensions, d.Metrics[0].Name, line.OutOfLine, line.DegradedRacks))
	}
	want := []string{"a[[Rack]]OutOfLine1 0", "b[[Rack]]OutOfLine1 0", "c[[Rack]]OutOfLine0 0", "[[]]DegradedRacks0 2"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}
