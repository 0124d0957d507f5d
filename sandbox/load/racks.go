package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
)

// wave is the number of racks that are turned on together. It is limited because SSM accepts three writes a second.
const wave = 10

// many creates clusters and racks of the same names, turns the racks on, changes all of them at once, and runs one hour
// of the schedule. The clusters' API servers are stand-ins (package standin).
func (r *run) many(ctx context.Context, n int) error {
	var racks []string
	for i := range n {
		racks = append(racks, fmt.Sprintf("load-%03d", i))
	}
	fmt.Fprintf(r.out, "\n%d EKS clusters are made, each with its own VPC, roles and node groups\n", n)
	if err := each(ctx, racks, 4, func(ctx context.Context, rack string) error { return seed.AWS(ctx, r.aws, rack) }); err != nil {
		return err
	}
	if err := r.on(ctx, racks); err != nil {
		return err
	}
	if err := r.change(ctx, racks); err != nil {
		return err
	}
	requested, err := r.hour(ctx, append(racks, seed.ClusterName))
	if err == nil && requested > 0 {
		err = fmt.Errorf("load: nothing was due, and audits requested %d passes", requested)
	}
	return err
}

// on turns the racks on, wave by wave.
func (r *run) on(ctx context.Context, racks []string) error {
	history, err := r.measure(ctx, fmt.Sprintf("%d racks are turned on, %d at a time", len(racks), wave), 0, func() error {
		for some := range slices.Chunk(racks, wave) {
			if err := each(ctx, some, 1, r.turnOn); err != nil {
				return err
			}
			if err := r.reconciled(ctx, some); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.planned(ctx, history, racks)
}

func (r *run) turnOn(ctx context.Context, rack string) error {
	for _, name := range []string{"karpenter_auth_mode", "karpenter_enabled"} {
		if err := r.write(ctx, rack, name, "true"); err != nil {
			return err
		}
	}
	return nil
}

// change writes once to each rack, as fast as SSM accepts it.
func (r *run) change(ctx context.Context, racks []string) error {
	history, err := r.measure(ctx, fmt.Sprintf("a change to each of %d racks that are on, at once", len(racks)), 0, func() error {
		return each(ctx, racks, atOnce, func(ctx context.Context, rack string) error { return r.write(ctx, rack, "karpenter_cpu_limit", "777") })
	})
	if err != nil {
		return err
	}
	return r.planned(ctx, history, racks)
}

// hour runs one hour of the schedule: it calls the function resync once for each tick. It skips the time between ticks,
// but waits for each tick's audits, and for the passes that they request, to end.
// It returns the number of those passes.
func (r *run) hour(ctx context.Context, racks []string) (int, error) {
	var started []int
	what := fmt.Sprintf("the schedule's 12 ticks of an hour in which nothing is due: an audit of each of %d racks that are on", len(racks))
	history, err := r.measure(ctx, what, time.Hour, func() error {
		for minute := 0; minute < 60; minute += 5 {
			before, err := r.audits(ctx)
			if err != nil {
				return err
			}
			n, err := r.tick(ctx, minute)
			if err != nil {
				return err
			}
			started = append(started, n)
			if err := r.audited(ctx, before+n); err != nil {
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
	fmt.Fprintf(r.out, "  racks of each of the %d ticks: %v; passes that their audits requested: %d\n", len(started), started, len(history.Iterations))
	return len(history.Iterations), r.reconciled(ctx, racks)
}

// audits returns how many audits have ended.
func (r *run) audits(ctx context.Context) (n int, err error) {
	text, err := r.environment.Run(ctx, `aws logs filter-log-events --log-group-name /aws/lambda/Sawhorse-audit `+
		`--query 'events[].message' --output text | grep -o '"msg":"audit"' | wc -l`)
	if err == nil {
		_, err = fmt.Sscan(text, &n)
	}
	return n, err
}

// audited waits until that many audits have ended, and until the events of the last ones have arrived.
func (r *run) audited(ctx context.Context, n int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		ended, err := r.audits(ctx)
		if err != nil {
			return err
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

// status has the fields of a rack's status that are needed here.
type status struct {
	Rack, State, Goal string
	Failure           any
}

// patience is much longer than a wave takes.
const patience = 15 * time.Minute

// reconciled waits until the racks are on. It returns an error as soon as a rack cannot get there.
func (r *run) reconciled(ctx context.Context, racks []string) error {
	for deadline := time.Now().Add(patience); ; {
		all, err := r.statuses(ctx, racks)
		if err != nil {
			return err
		}
		on := 0
		for _, s := range all {
			if s.State != "Reconciled" {
				return fmt.Errorf("load: rack %s: %+v", s.Rack, s)
			}
			if s.Goal == "karpenter" {
				on++
			}
		}
		if on == len(racks) {
			fmt.Fprintf(r.out, "%s to %s are on\n", racks[0], racks[len(racks)-1])
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("load: of the racks %s, after %s only %d are on", racks, patience, on)
		}
		time.Sleep(3 * time.Second)
	}
}

// planned returns an error if a rack had no pass with steps to take, or is not Reconciled afterwards.
func (r *run) planned(ctx context.Context, history passes.History, racks []string) error {
	for _, rack := range racks {
		if !slices.ContainsFunc(history.Iterations, func(i passes.Iteration) bool { return i.Rack == rack && i.Outcome == "Planned" }) {
			return fmt.Errorf("load: rack %s: no pass had steps to take", rack)
		}
	}
	return r.reconciled(ctx, racks)
}

// statuses returns the statuses that exist. It reads ten at a time, which is SSM's limit.
func (r *run) statuses(ctx context.Context, racks []string) ([]status, error) {
	var all []status
	for some := range slices.Chunk(racks, 10) {
		var names []string
		for _, rack := range some {
			names = append(names, "/sawhorse/racks/"+rack+"/status")
		}
		found, err := r.store.GetParameters(ctx, &ssm.GetParametersInput{Names: names})
		if err != nil {
			return nil, fmt.Errorf("load: statuses: read: %w", err)
		}
		for _, p := range found.Parameters {
			var s status
			if err := json.Unmarshal([]byte(*p.Value), &s); err != nil {
				return nil, fmt.Errorf("load: %s: decode: %w", *p.Name, err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// each calls do for every rack, at most limit at a time.
func each(ctx context.Context, racks []string, limit int, do func(ctx context.Context, rack string) error) error {
	all, allCtx := errgroup.WithContext(ctx)
	all.SetLimit(limit)
	for _, rack := range racks {
		all.Go(func() error { return do(allCtx, rack) })
	}
	return all.Wait()
}
