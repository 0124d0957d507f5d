package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// keep claims the cluster and saves the plan and the rack's records.
func (v *Validate) keep(ctx context.Context, run store.Run, f finding) error {
	owner, err := v.store.LockCluster(ctx, f.Plan.Cluster.ARN, run.Rack)
	if err != nil {
		return err
	}
	if owner != run.Rack {
		return fmt.Errorf("cluster %s: rack %s has claimed it in this moment; the next pass tells what to do", f.Plan.Cluster.Name, owner)
	}
	// In this order: a plan that is kept while its steps count as applied would never have been in force, and be repaired towards.
	if err := v.store.SaveRecords(ctx, run.Rack, f.accepted()); err != nil {
		return err
	}
	return v.store.SavePlan(ctx, &f.Plan)
}

// accepted returns the rack's records with the plan in force.
func (f finding) accepted() plan.Records {
	records := f.records
	records.Goal, records.Params, records.Checked = f.Plan.Goal, f.Effective, f.Objects
	if f.Config.Enabled {
		records.WasOn = true
		records.Credentials = "irsa"
		if f.Plan.Infrastructure.PodIdentity {
			records.Credentials = "podidentity"
		}
	}
	records.Applied = maps.Clone(records.Applied)
	for _, step := range f.due {
		delete(records.Applied, step.Name)
	}
	records.Warnings = maps.Clone(records.Warnings)
	maps.DeleteFunc(records.Warnings, func(step string, _ []params.Problem) bool {
		return !slices.ContainsFunc(f.Plan.Steps, func(s plan.Step) bool { return s.Name == step })
	})
	return records
}

// kept reports whether keep would change nothing.
func (v *Validate) kept(ctx context.Context, name string, f finding) (bool, error) {
	last, err := v.store.Plan(ctx, name)
	if err != nil || last == nil {
		return false, err
	}
	claimant, err := v.store.ClusterLock(ctx, f.Plan.Cluster.ARN)
	if err != nil || claimant != name {
		return false, err
	}
	now, before := f.accepted(), f.records
	now.ClusterLock, before.ClusterLock = "", "" // an observation
	if len(now.Warnings) != len(before.Warnings) || !same(now, before) {
		return false, nil
	}
	return same(inForce(*last), inForce(f.Plan)), nil
}

// inForce returns a plan without what belongs to the pass that made it.
func inForce(p plan.Plan) plan.Plan {
	p.Generation, p.Force, p.Effects = 0, false, nil
	return p
}

// same compares values that were read from the table with values that were made now, by their JSON.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		panic("validate: compare: " + err.Error()) // plain data always marshals
	}
	y, err := json.Marshal(b)
	if err != nil {
		panic("validate: compare: " + err.Error())
	}
	return bytes.Equal(x, y)
}
