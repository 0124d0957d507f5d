package validate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// keep claims the cluster and saves the plan and the rack's records.
func (v *Validate) keep(ctx context.Context, run store.Run, f finding) error {
	owner, err := v.Store.LockCluster(ctx, f.Plan.Cluster.ARN, run.Rack)
	if err != nil {
		return err
	}
	if owner != run.Rack {
		return fmt.Errorf("cluster %s: rack %s has just locked it; the next pass reports what to do", f.Plan.Cluster.Name, owner)
	}
	// The records come first. If the plan were saved while its steps still count as applied, and the pass stopped
	// there, later passes would repair towards a plan that was never in force.
	if err := v.Store.SaveRecords(ctx, run.Rack, f.accepted()); err != nil {
		return err
	}
	return v.Store.SavePlan(ctx, &f.Plan)
}

// accepted returns the rack's records as they are once the plan is in force.
func (f finding) accepted() plan.Records {
	records := f.records
	records.Goal, records.Params, records.Checked = f.Plan.Goal, f.Effective, f.Objects
	if f.Config.Enabled {
		records.WasOn = true
		records.Karpenter = f.records.Accept(f.Plan.Controller.Release.Version)
		if failed := records.Karpenter.RolledBack; failed != nil && failed.Version != f.Config.KarpenterVersion {
			records.Karpenter.RolledBack = nil
		}
		records.HadBuildRole = records.HadBuildRole || f.Plan.Infrastructure.BuildNodes != nil
		records.CNIIndependent = f.Plan.Infrastructure.CNIIndependent
		records.Credentials = "irsa"
		if f.Plan.Infrastructure.PodIdentity {
			records.Credentials = "podidentity"
		}
	}
	records.Applied = maps.Clone(records.Applied)
	for _, step := range f.due {
		delete(records.Applied, step.Name)
	}
	if !slices.ContainsFunc(f.Plan.Steps, func(s plan.Step) bool { return s.Name == plan.FreezeStep }) {
		delete(records.Applied, plan.FreezeStep) // it ends with the NodePools
	}
	records.Warnings = maps.Clone(records.Warnings)
	maps.DeleteFunc(records.Warnings, func(step string, _ []params.Problem) bool {
		return !slices.ContainsFunc(f.Plan.Steps, func(s plan.Step) bool { return s.Name == step })
	})
	return records
}

// kept reports whether keep would change nothing.
func (v *Validate) kept(ctx context.Context, name string, f finding) (bool, error) {
	last, err := v.Store.Plan(ctx, name)
	if err != nil || last == nil {
		return false, err
	}
	claimant, err := v.Store.ClusterLock(ctx, f.Plan.Cluster.ARN)
	if err != nil || claimant != name {
		return false, err
	}
	now, before := f.accepted(), f.records
	now.ClusterLock, before.ClusterLock = "", "" // observed, not recorded
	if len(now.Warnings) != len(before.Warnings) || !same(now, before) {
		return false, nil
	}
	return same(inForce(*last), inForce(f.Plan)), nil
}

// inForce returns a plan without the fields that belong to the pass that made it.
func inForce(p plan.Plan) plan.Plan {
	p.Generation, p.Force, p.Effects = 0, false, nil
	return p
}

// same reports whether two values have the same JSON, because one was read from the table and the other was made now.
func same(a, b any) bool { return bytes.Equal(canonical.JSON(a), canonical.JSON(b)) }
