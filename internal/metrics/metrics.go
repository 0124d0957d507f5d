// Package metrics writes the results of passes as log lines that CloudWatch turns into metrics (the embedded metric
// format). This needs no API call and no permission, and the line is also the pass's log entry.
package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Metrics over all racks. Every pass writes them, without dry runs.
const (
	// Passes is the number of passes, and of audits without work on racks that are rejected or paused: a rack that stays so
	// has data in each hour. For a failed rack, the audit requests a pass.
	Passes = "Passes"
	// Rejected and Failed are the numbers of those with these results.
	Rejected = "Rejected"
	Failed   = "Failed"
)

// Metrics over all racks, of the passes with something to report.
const (
	// Changes is the number of changes that the steps made.
	Changes = "Changes"
	// Seconds is the duration of a pass.
	Seconds = "Seconds"
)

// OutOfLine is the metric by rack: 1 if the rack is not as its parameters say after the pass (rejected, failed or
// paused) or if it is degraded, else 0. Only a pass with something to report and a look at a degraded rack
// write it, because CloudWatch bills a metric for each hour in which it has data, and here for each rack.
const OutOfLine = "OutOfLine"

// DegradedRacks is the number of racks with a pool that is not Ready, with nodes that do not register, or with pods that
// wait for nodes that cannot be launched. WaitingPods is the number of pods of all racks that have waited ten minutes for a
// node. They have data only while there are any.
const (
	DegradedRacks = "DegradedRacks"
	WaitingPods   = "WaitingPods"
)

// Interruptions is the metric by kind of interruption: how many instances EC2 has taken, or advised to leave, between two node checks.
// It has data only if there were any.
const (
	Interruptions = "Interruptions"
	DimensionKind = "Kind"
)

// LongestPass is the running time in seconds of the longest pass that holds a rack, or 0 if there is none. Each tick of
// the schedule measures it, so an alarm counts its values to see whether there are ticks.
const LongestPass = "LongestPass"

// HoldAge is the time in seconds since the last write of the stack's hold. HoldUnclear is 1 if the hold could not be read or
// understood. Each tick of the schedule measures them. They have data only while there is a hold, or one that is unclear.
const (
	HoldAge     = "HoldAge"
	HoldUnclear = "HoldUnclear"
)

// Dimension is the dimension of OutOfLine.
const Dimension = "Rack"

// Pass is the result of one pass.
type Pass struct {
	Rack       string
	Generation int64
	Execution  string
	// State is the state in the rack's status after the pass.
	State   outcome.State
	Changes int
	// Took is the duration, or nil if the pass ended before there was anything to do.
	Took *time.Duration
	// NewStatus means that the status says something new: also that the rack is as its parameters say again, so that
	// OutOfLine returns to 0.
	NewStatus bool
	// Unknown means that there is no rack of that name. Anybody's event can name one, so there are no metrics by rack.
	Unknown bool
}

// reports reports whether a pass has something to report of its rack.
func (p Pass) reports() bool { return !p.Unknown && (p.NewStatus || p.outOfLine()) }

func (p Pass) outOfLine() bool { return p.State != outcome.StateReconciled }

// Writer writes one line for each pass.
type Writer struct {
	Out io.Writer
	// Namespace is the CloudWatch namespace of the metrics: the stack's name.
	Namespace string
	Now       func() time.Time
}

// Pass writes the line of one pass. The line has all values, also of metrics that it does not write: the log tells of
// each rack what the metrics tell of all.
func (w Writer) Pass(p Pass) error {
	line := map[string]any{
		"msg": "pass", Dimension: p.Rack, "rack": p.Rack, "generation": p.Generation, "execution": p.Execution, "state": p.State,
		Passes: 1, Changes: p.Changes, Rejected: is(p.State == outcome.StateRejected), Failed: is(p.State == outcome.StateFailed),
		OutOfLine: is(p.outOfLine()),
	}
	overall := []metric{{Passes, "Count"}, {Rejected, "Count"}, {Failed, "Count"}}
	if p.Took != nil {
		line[Seconds] = p.Took.Seconds()
	}
	var all []directive
	if p.reports() {
		overall = append(overall, metric{Changes, "Count"})
		if p.Took != nil {
			overall = append(overall, metric{Seconds, "Seconds"})
		}
		all = append(all, directive{w.Namespace, [][]string{{Dimension}}, []metric{{OutOfLine, "Count"}}})
	}
	all = append(all, directive{w.Namespace, [][]string{{}}, overall})
	if err := w.write(line, all...); err != nil {
		return fmt.Errorf("rack %s: metrics: %w", p.Rack, err)
	}
	return nil
}

// Degraded writes a line for each degraded rack and for each that has recovered, and one with the number of
// the degraded ones. It writes nothing if there are none.
func (w Writer) Degraded(racks, recovered []string) error {
	for i, rack := range slices.Concat(racks, recovered) {
		line := map[string]any{"msg": "pools", Dimension: rack, "rack": rack, OutOfLine: is(i < len(racks))}
		if err := w.write(line, directive{w.Namespace, [][]string{{Dimension}}, []metric{{OutOfLine, "Count"}}}); err != nil {
			return fmt.Errorf("rack %s: metrics: %w", rack, err)
		}
	}
	if len(racks) == 0 {
		return nil
	}
	return w.overall("degraded racks", metric{DegradedRacks, "Count"}, len(racks))
}

// Waiting writes the line with the number of pods that wait for nodes. It writes nothing if there are none.
func (w Writer) Waiting(pods int) error {
	if pods == 0 {
		return nil
	}
	return w.overall("waiting pods", metric{WaitingPods, "Count"}, pods)
}

// Interrupted writes a line for each kind of interruption.
func (w Writer) Interrupted(kinds map[string]int) error {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		line := map[string]any{"msg": "interruptions", DimensionKind: kind, Interruptions: kinds[kind]}
		if err := w.write(line, directive{w.Namespace, [][]string{{DimensionKind}}, []metric{{Interruptions, "Count"}}}); err != nil {
			return fmt.Errorf("interruptions: metrics: %w", err)
		}
	}
	return nil
}

// Longest writes the line with the running time of the longest pass.
func (w Writer) Longest(pass time.Duration) error {
	return w.overall("longest pass", metric{LongestPass, "Seconds"}, pass.Seconds())
}

// Hold writes the line with the age of the hold.
func (w Writer) Hold(age time.Duration) error {
	return w.overall("hold", metric{HoldAge, "Seconds"}, age.Seconds())
}

// Unclear writes the line of a hold that could not be read or understood, and so holds all racks.
func (w Writer) Unclear() error {
	return w.overall("the hold is not understood", metric{HoldUnclear, "Count"}, 1)
}

// overall writes the line of one metric over all racks.
func (w Writer) overall(msg string, of metric, value any) error {
	err := w.write(map[string]any{"msg": msg, of.Name: value}, directive{w.Namespace, [][]string{{}}, []metric{of}})
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// write writes a line, with the metadata that tells CloudWatch which metrics to create from its values.
func (w Writer) write(line map[string]any, all ...directive) error {
	line["_aws"] = map[string]any{"Timestamp": w.Now().UnixMilli(), "CloudWatchMetrics": all}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = w.Out.Write(append(text, '\n'))
	}
	return err
}

// directive has the metrics of one set of dimensions.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
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
