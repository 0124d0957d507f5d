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

// many creates clusters and racks of the same names, turns the racks on, changes all of them at once, looks at the nodes of all, and runs
// one hour of the schedule with that many racks in the table. The clusters' API servers are stand-ins (package standin).
func (r *run) many(ctx context.Context, n, listed int) error {
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
	racks = append(racks, seed.ClusterName)
	if err := r.look(ctx, len(racks)); err != nil {
		return err
	}
	rows, err := r.rows(ctx, max(0, listed-len(racks)))
	if err != nil {
		return err
	}
	return r.hour(ctx, racks, rows)
}

// on turns the racks on, wave by wave.
func (r *run) on(ctx context.Context, racks []string) error {
	what := fmt.Sprintf("%d racks are turned on, %d at a time", len(racks), wave)
	history, err := r.measure(ctx, what, len(switches)*len(racks), func() error { return r.waves(ctx, racks, wave) })
	if err != nil {
		return err
	}
	return r.planned(ctx, history, racks)
}

func (r *run) waves(ctx context.Context, racks []string, size int) error {
	for some := range slices.Chunk(racks, size) {
		if err := each(ctx, some, 1, r.turnOn); err != nil {
			return err
		}
		if err := r.reconciled(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// switches are the parameters that turn a rack on.
var switches = []string{"karpenter_auth_mode", "karpenter_enabled"}

func (r *run) turnOn(ctx context.Context, rack string) error {
	for _, name := range switches {
		if err := r.write(ctx, rack, name, "true"); err != nil {
			return err
		}
	}
	return nil
}

// change writes once to each rack, as fast as SSM accepts it.
func (r *run) change(ctx context.Context, racks []string) error {
	history, err := r.measure(ctx, fmt.Sprintf("a change to each of %d racks that are on, at once", len(racks)), len(racks), func() error {
		return each(ctx, racks, atOnce, func(ctx context.Context, rack string) error { return r.write(ctx, rack, "karpenter_cpu_limit", "777") })
	})
	if err != nil {
		return err
	}
	return r.planned(ctx, history, racks)
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
			if s.State == "" { // its first pass waits, and has not reported yet
				continue
			}
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
