package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// The ticks of an hour: the default, and one a minute for more racks than someRacks (docs/deploy.md, resyncSlots).
const (
	ticks     = 12
	manyTicks = 60
	someRacks = 200
)

// hour runs one hour of the schedule: it calls the function resync once for each tick. It skips the time between ticks,
// but waits for each tick's audits, and for the passes that they request, to end.
// It returns the number of those passes.
func (r *run) hour(ctx context.Context, racks []string) (int, error) {
	n := ticks
	if len(racks) > someRacks {
		n = manyTicks
	}
	if err := r.schedule(ctx, n); err != nil {
		return 0, err
	}
	var started []int
	began := time.Now()
	what := fmt.Sprintf("the schedule's %d ticks of an hour in which nothing is due: an audit of each of %d racks that are on", n, len(racks))
	history, err := r.measured(ctx, what, len(racks), func() error {
		for i := range n {
			tick := time.Now()
			visited, err := r.tick(ctx, i*60/n)
			if err != nil {
				return err
			}
			started = append(started, visited)
			if err := r.audited(ctx, tick, visited); err != nil {
				return err
			}
			if err := passes.Idle(ctx, r.aws); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	r.line("racks of each tick", "%v", started)
	r.line("passes that audits requested", "%d", len(history.Iterations))
	if err := r.times(ctx, began); err != nil {
		return 0, err
	}
	return len(history.Iterations), r.reconciled(ctx, racks)
}

// schedule divides the hour into ticks, as the deployment's setting resyncSlots does. It also stops the sandbox's own
// ticks, which would fall into the hour that is played.
func (r *run) schedule(ctx context.Context, ticks int) error {
	_, err := r.environment.Run(ctx, fmt.Sprintf(`set -e
name=$(aws scheduler list-schedules --query 'Schedules[0].Name' --output text)
aws scheduler update-schedule --name "$name" --state DISABLED --schedule-expression 'rate(5 minutes)' \
  --flexible-time-window Mode=OFF --target "$(aws scheduler get-schedule --name "$name" --query Target --output json)"
settings=$(aws lambda get-function-configuration --function-name Sawhorse-resync --query Environment --output json)
aws lambda update-function-configuration --function-name Sawhorse-resync \
  --environment "$(echo "$settings" | sed 's/"SAWHORSE_RESYNC_SLOTS": "[0-9]*"/"SAWHORSE_RESYNC_SLOTS": "%d"/')"`, ticks))
	return err
}

// audited waits until that many audits have ended since a time, and until the events of the last ones have arrived.
func (r *run) audited(ctx context.Context, since time.Time, n int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		lines, err := functionlog.Since(ctx, r.environment, "audit", since)
		if err != nil {
			return err
		}
		ended := 0
		for _, line := range lines {
			if strings.Contains(line.Text, `"msg":"audit"`) {
				ended++
			}
		}
		if ended >= n {
			time.Sleep(2 * time.Second)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("load: of %d audits, after %s only %d have ended", n, patience, ended)
		}
	}
}

// tick makes one call of the schedule. It returns the number of racks visited.
func (r *run) tick(ctx context.Context, minute int) (int, error) {
	line := `aws lambda invoke --function-name Sawhorse-resync --payload '{"time":"2026-01-01T00:%02d:00Z"}' /dev/stderr 2>&1 >/dev/null`
	text, err := r.environment.Run(ctx, fmt.Sprintf(line, minute))
	if err != nil {
		return 0, err
	}
	var answer struct{ Racks []string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return 0, fmt.Errorf("load: tick: %s: %w", text, err)
	}
	return len(answer.Racks), nil
}

// times prints how long the calls of audit and resync took since a time.
func (r *run) times(ctx context.Context, since time.Time) error {
	for _, function := range []string{"audit", "resync"} {
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
		if len(all) == 0 {
			return fmt.Errorf("load: the log of %s has no calls", function)
		}
		slices.Sort(all)
		r.line("calls of "+function, "%d; median %.2f s, longest %.2f s", len(all), all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
	}
	return nil
}
