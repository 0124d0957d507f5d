// Package meter writes what passes came to as log lines that CloudWatch makes metrics of (the embedded metric format): no
// call, no right, and the line is the pass's entry in the log too.
package meter

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// The metrics, each by rack and over all racks.
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
	line["_aws"] = map[string]any{
		"Timestamp": m.Now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": m.Namespace, "Dimensions": [][]string{{Dimension}, {}}, "Metrics": metrics,
		}},
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = m.Out.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("rack %s: metrics: %w", p.Rack, err)
	}
	return nil
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
