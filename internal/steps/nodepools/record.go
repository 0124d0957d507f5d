package nodepools

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// removal is the record of a removal that is under way. It holds what the removal itself deletes from the cluster.
type removal struct {
	Start time.Time `json:"start"`
	// Pools are the names of the rack's pools. Their NodePools are deleted first, while instances remain.
	Pools []string `json:"pools"`
}

func (r removal) yes() bool { return !r.Start.IsZero() }

// forcedKey names the record of what Sawhorse ended instead of Karpenter. The warning at the end needs it, because the
// warnings of one call are replaced by those of the next.
const forcedKey = outcome.CheckpointRemoval + "/forced"

type forced struct {
	Instances []string `json:"instances,omitempty"`
	Objects   []string `json:"objects,omitempty"`
	// Remaining are instances that still run because they lack Karpenter's tags.
	Remaining []string `json:"left,omitempty"`
}

func (f forced) size() int { return len(f.Instances) + len(f.Objects) + len(f.Remaining) }

// begin records the start of the removal, before the first change. All later calls count from this time.
func (r *run) begin(ctx context.Context) error {
	if r.begun.yes() {
		return nil
	}
	r.begun = removal{Start: r.Now().UTC().Truncate(time.Second), Pools: r.set.Names()}
	return outcome.Record(ctx, r.Checkpoints.RecordOnce, r.plan.Rack, outcome.CheckpointRemoval, r.begun)
}

// force records what Sawhorse is about to end instead of Karpenter.
func (r *run) force(ctx context.Context, add forced) error {
	if add.size() == 0 {
		return nil
	}
	all, err := recorded[forced](ctx, r, forcedKey)
	if err != nil {
		return err
	}
	before := all.size()
	all = forced{union(all.Instances, add.Instances), union(all.Objects, add.Objects), union(all.Remaining, add.Remaining)}
	if all.size() == before {
		return nil
	}
	return outcome.Record(ctx, r.Checkpoints.Replace, r.plan.Rack, forcedKey, all)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// conclude deletes the records of a removal and warns of what it did instead of Karpenter.
func (r *run) conclude(ctx context.Context) error {
	all, err := recorded[forced](ctx, r, forcedKey)
	if err != nil {
		return err
	}
	if len(all.Instances) > 0 {
		r.progress.Happened("karpenter_enabled",
			"Karpenter had not ended these instances, so Sawhorse terminated them through EC2, and their end "+
				"is confirmed: %s. Pods that were still on them had no time to end. "+
				"Before the next time, look for PodDisruptionBudgets that never allow an eviction.",
			strings.Join(all.Instances, ", "))
	}
	if len(all.Objects) > 0 {
		r.progress.Happened("karpenter_enabled",
			"Karpenter had not let go of %s, so Sawhorse removed its finalizers. Launch templates may be left behind: "+
				"`aws ec2 describe-launch-templates --filters Name=tag:eks:eks-cluster-name,Values=%s` lists them, "+
				"`aws ec2 delete-launch-template` deletes one.",
			strings.Join(all.Objects, ", "), r.plan.Cluster.Name)
	}
	if len(all.Remaining) > 0 {
		r.progress.Happened("karpenter_enabled",
			"These instances of Karpenter's nodes lacked its tags, so Sawhorse did not end them, and they run on: %s. "+
				"Look whose they are: a NodeClaim can name any instance.",
			strings.Join(all.Remaining, ", "))
	}
	if err := r.forget(ctx); err != nil {
		return err
	}
	return outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, outcome.CheckpointOff)
}

// forget deletes the records, if there are any. The removal's own record is deleted last, because the other one belongs
// to it.
func (r *run) forget(ctx context.Context) error {
	for _, key := range []string{forcedKey, outcome.CheckpointRemoval} {
		if err := outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, key); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns a record, which is zero if there is none.
func recorded[T any](ctx context.Context, r *run, key string) (T, error) {
	record, err := outcome.Recorded[T](ctx, r.Checkpoints, r.plan.Rack, key)
	return ptr.Deref(record, *new(T)), err
}
