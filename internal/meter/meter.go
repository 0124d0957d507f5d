// Package meter writes what passes came to as log lines that CloudWatch makes metrics of (the embedded metric format): no
// call, no right, and the line is the pass's entry in the log too.
package meter

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// The metrics of passes, over all racks; by rack only from passes that have something to tell, because CloudWatch bills a metric
// for each hour in which it has data.
const (
	// Passes counts them, dry runs left out.
	Passes = "Passes"
	// Rejected and Failed count those that ended so.
	Rejected = "Rejected"
	Failed   = "Failed"
	// OutOfLine is 1 where the rack is not as its parameters say after the pass (rejected, failed or paused), else 0.
	OutOfLine = "OutOfLine"
	// Changes is how many changes the steps made.
	Changes = "Changes"
	// Seconds is how long a pass took that had something to do or to tell.
	Seconds = "Seconds"
)

// LongestPass is how long the longest pass has gone on that holds a rack, in seconds; 0 where no pass does. Each tick of the
// schedule measures it.
const LongestPass = "LongestPass"

// Dimension is the one of the metrics by rack.
const Dimension = "Rack"

// Pass is what one pass came to.
type Pass struct {
	Rack       string
	Generation int64
	Execution  string
	// State is the rack's after the pass, as in its status.
	State   string
	Changes int
	// Took is nil where the pass ended before there was anything to do.
	Took *time.Duration
	// Told reports whether the pass has something to tell of its rack: the status says something new, or the rack is out of line.
	Told bool
}

// Meter writes one line for each pass.
type Meter struct {
	Out io.Writer
	// Namespace is CloudWatch's for the metrics: the stack's name.
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

// Longest writes the line that tells how long the longest pass has gone on.
func (m Meter) Longest(pass time.Duration) error {
	line := map[string]any{"msg": "longest pass", LongestPass: pass.Seconds()}
	if err := m.write(line, [][]string{{}}, []metric{{LongestPass, "Seconds"}}); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// write writes a line with what CloudWatch makes metrics of, by each set of dimensions.
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
