package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// ticks is the number of ticks in an hour of the schedule (docs/deploy.md, resyncSlots).
const ticks = 60

// hour runs one hour of the schedule, with rows in the table besides the racks: it calls the function resync once for each
// tick. It skips the rest of the minute between two ticks, but waits for each tick's audits to end. So the buckets of the rates
// have less time to fill than on AWS.
func (r *run) hour(ctx context.Context, racks, rows []string) error {
	if err := r.stopSchedule(ctx); err != nil {
		return err
	}
	var audits []int
	began := time.Now()
	what := fmt.Sprintf("the schedule's %d ticks of an hour in which nothing is due: an audit of each of %d racks in the table; "+
		"%d of them are on, and are audited in the place of the others", ticks, len(racks)+len(rows), len(racks))
	_, err := r.measured(ctx, what, phase{audits: len(racks) + len(rows)}, func() error {
		for i := range ticks {
			n, err := r.tick(ctx, i, racks)
			if err != nil {
				return err
			}
			audits = append(audits, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.line("audits of each tick", "%v", audits)
	r.line("the largest tick", "%d audits", slices.Max(audits))
	for function, calls := range map[string]int{"audit": len(racks) + len(rows), "resync": ticks} {
		if err := r.times(ctx, began, function, calls); err != nil {
			return err
		}
	}
	return r.reconciled(ctx, racks)
}

// stopSchedule stops the sandbox's own ticks, which would fall into the hour that is played.
func (r *run) stopSchedule(ctx context.Context) error {
	_, err := r.environment.Run(ctx, `set -e
name=$(aws scheduler list-schedules --query 'Schedules[0].Name' --output text)
aws scheduler update-schedule --name "$name" --state DISABLED --schedule-expression 'rate(5 minutes)' \
  --flexible-time-window Mode=OFF --target "$(aws scheduler get-schedule --name "$name" --query Target --output json)"`)
	return err
}

// tick makes one call of the schedule, and has another rack audited for each row that was due. It returns the number of
// audits.
func (r *run) tick(ctx context.Context, minute int, racks []string) (int, error) {
	began := time.Now()
	line := `aws lambda invoke --function-name Sawhorse-resync:live --payload '{"time":"2026-01-01T00:%02d:00Z"}' /dev/stderr 2>&1 >/dev/null`
	text, err := r.environment.Run(ctx, fmt.Sprintf(line, minute))
	if err != nil {
		return 0, err
	}
	var answer struct{ Racks []string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return 0, fmt.Errorf("load: tick: %s: %w", text, err)
	}
	due := func(rack string) bool { return slices.Contains(answer.Racks, rack) }
	others := slices.DeleteFunc(slices.Clone(racks), due)
	stood := 0
	for _, name := range answer.Racks {
		if slices.Contains(racks, name) {
			continue
		}
		if stood == len(others) {
			return 0, fmt.Errorf("load: a tick has %d racks, and %d are on; set LOAD_RACKS to more", len(answer.Racks), len(racks))
		}
		if err := r.audit(ctx, others[stood]); err != nil {
			return 0, err
		}
		stood++
	}
	if err := r.audited(ctx, began, len(answer.Racks)); err != nil {
		return 0, err
	}
	return len(answer.Racks), nil
}

// audited waits until that many audits of racks that are on have ended since a time. None may find something due: it would
// request a pass.
func (r *run) audited(ctx context.Context, since time.Time, n int) error {
	for deadline := time.Now().Add(patience); n > 0; {
		time.Sleep(2 * time.Second)
		lines, err := functionlog.Since(ctx, r.environment, "audit", since)
		if err != nil {
			return err
		}
		ended := 0
		for _, line := range lines {
			var audit struct {
				Msg, Skipped string
				Due          []string
			}
			if json.Unmarshal([]byte(line.Text), &audit) != nil || audit.Msg != "audit" || audit.Skipped != "" {
				continue // Lambda's own lines are no JSON
			}
			if len(audit.Due) > 0 {
				return fmt.Errorf("load: nothing is due, and an audit says %s", line.Text)
			}
			ended++
		}
		if ended >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("load: of %d audits, after %s only %d have ended", n, patience, ended)
		}
	}
	return nil
}

// times prints how long the calls of a function took since a time. Of more calls it takes the longest: the audits of rows
// end at once.
func (r *run) times(ctx context.Context, since time.Time, function string, calls int) error {
	lines, err := functionlog.Since(ctx, r.environment, function, since)
	if err != nil {
		return err
	}
	var all []time.Duration
	for _, line := range lines {
		if call, is := line.Call(); is {
			all = append(all, call.Took)
		}
	}
	if len(all) < calls {
		return fmt.Errorf("load: the log of %s has %d calls of %d", function, len(all), calls)
	}
	slices.Sort(all)
	all = all[len(all)-calls:]
	var sum time.Duration
	for _, took := range all {
		sum += took
	}
	r.line("calls of "+function, "%d; mean %.2f s, median %.2f s, longest %.2f s", len(all), sum.Seconds()/float64(len(all)),
		all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
	return nil
}
