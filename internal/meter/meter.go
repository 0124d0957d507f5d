// Package meter writes the results of passes as log lines that CloudWatch turns into metrics (the embedded metric
// format). This needs no API call and no permission, and the line is also the pass's log entry.
package meter

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Metrics of passes over all racks. Metrics by rack are written only by passes with something to report, because
// CloudWatch bills a metric for each hour in which it has data.
const (
	// Passes is the number of passes, without dry runs.
	Passes = "Passes"
	// Rejected and Failed are the numbers of passes with these results.
	Rejected = "Rejected"
	Failed   = "Failed"
	// OutOfLine is 1 if the rack is not as its parameters say after the pass (rejected, failed or paused), else 0.
	OutOfLine = "OutOfLine"
	// Changes is the number of changes that the steps made.
	Changes = "Changes"
	// Seconds is the duration of a pass that had something to do or to report.
	Seconds = "Seconds"
)

// LongestPass is the running time in seconds of the longest pass that holds a rack, or 0 if there is none. Each tick of
// the schedule measures it.
const LongestPass = "LongestPass"

// Dimension is the dimension of the metrics by rack.
const Dimension = "Rack"

// Pass is the result of one pass.
type Pass struct {
	Rack       string
	Generation int64
	Execution  string
	// State is the state in the rack's status after the pass.
	State   string
	Changes int
	// Took is the duration, or nil if the pass ended before there was anything to do.
	Took *time.Duration
	// Told reports whether the pass has something to report: the status changes, or the rack is out of line.
	Told bool
}

// Meter writes one line for each pass.
type Meter struct {
	Out io.Writer
	// Namespace is the CloudWatch namespace of the metrics: the stack's name.
	Namespace string
	Now       func() time.Time
}

// Pass writes the line of one pass.
func (m Meter) Pass(p Pass) error {
	line := map[string]any{
		"msg": "pass", Dimension: p.Rack, "rack": p.Rack, "generation": p.Generation, "execution": p.Execution, "state": p.State,
		Passes: 1, Changes: p.Changes, Rejected: is(p.State == "Rejected"), Failed: is(p.State == "Failed"), OutOfLine: is(p.State != "Reconciled"),
	}
	metrics := []metric{{Passes, "Count"}, {Changes, "Count"}, {Rejected, "Count"}, {Failed, "Count"}, {OutOfLine, "Count"}}
	if p.Took != nil {
		line[Seconds] = p.Took.Seconds()
		metrics = append(metrics, metric{Seconds, "Seconds"})
	}
	dimensions := [][]string{{}}
	if p.Told {
		dimensions = [][]string{{Dimension}, {}}
	}
	if err := m.write(line, dimensions, metrics); err != nil {
		return fmt.Errorf("rack %s: metrics: %w", p.Rack, err)
	}
	return nil
}

// Longest writes the line with the running time of the longest pass.
func (m Meter) Longest(pass time.Duration) error {
	line := map[string]any{"msg": "longest pass", LongestPass: pass.Seconds()}
	if err := m.write(line, [][]string{{}}, []metric{{LongestPass, "Seconds"}}); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// write writes a line, with the metadata that makes CloudWatch create metrics for each set of dimensions.
func (m Meter) write(line map[string]any, dimensions [][]string, metrics []metric) error {
	line["_aws"] = map[string]any{
		"Timestamp":         m.Now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{"Namespace": m.Namespace, "Dimensions": dimensions, "Metrics": metrics}},
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = m.Out.Write(append(text, '\n'))
	}
	return err
}

type metric struct {
	Name string
	Unit string
}

func is(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
