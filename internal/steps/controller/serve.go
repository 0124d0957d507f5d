package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

const (
	// patience is how long a removal waits for a controller that does not get ready. It counts from the first look, over
	// all passes: the removal itself has an end without a controller, and must come to it.
	patience = 5 * time.Minute
	// serveKey is under which that first look is kept.
	serveKey = "controller/serve"
)

// serve sees to it that a controller works while nodes are drained and EC2NodeClasses cleaned up: it puts back what was
// scaled down or deleted of the release, and the release itself. Where there is nothing for a controller to do, it leaves
// things as they are.
func (r *run) serve(ctx context.Context) (steps.Progress, error) {
	left, err := r.served(ctx)
	if err != nil {
		return r.progress, err
	}
	if left == "" {
		return r.progress, r.forget(ctx)
	}
	note, trouble := r.revive(ctx)
	if trouble == nil && note == "" {
		return r.progress, r.forget(ctx)
	}
	// An error would end the pass, and one that comes each time would end them all before the fallback: it is waited out, too.
	if trouble != nil {
		note = trouble.Error()
	}
	since, err := r.since(ctx)
	if err != nil {
		return r.progress, err
	}
	if hopeless := errors.As(trouble, new(*steps.Rejected)); !hopeless && r.now().Before(since.Add(patience)) {
		return r.progress.NotYet(poll, "%s", note)
	}
	r.progress.Happened("karpenter_enabled", "Karpenter's controller does not get ready (%s). The removal goes on without it: what has not ended two minutes after the drain window, Sawhorse ends through EC2.", note)
	return r.progress, nil
}

// revive brings the controller up, and says what its pods still lack. A release that is deployed is repaired, whatever values it
// was deployed with: this is not the time for another revision.
func (r *run) revive(ctx context.Context) (string, error) {
	wanted, err := r.controller(ctx)
	if err != nil {
		return "", err
	}
	last, err := r.helm.last(wanted)
	if err != nil {
		return "", err
	}
	if last != nil && r.helm.ours(last) && last.Info.Status == common.StatusDeployed {
		err = repair(ctx, r.client, wanted, &r.progress)
	} else {
		err = r.install(ctx, wanted)
	}
	if err != nil {
		return "", err
	}
	return r.rollout(ctx)
}

// since is when a removal first found the controller not ready.
func (r *run) since(ctx context.Context) (time.Time, error) {
	if err := r.baselines.Keep(ctx, r.plan.Rack, serveKey, []byte(r.now().UTC().Format(time.RFC3339))); err != nil {
		return time.Time{}, err
	}
	kept, _, err := r.baselines.Get(ctx, r.plan.Rack, serveKey)
	if err != nil {
		return time.Time{}, err
	}
	since, err := time.Parse(time.RFC3339, string(kept))
	if err != nil {
		return time.Time{}, fmt.Errorf("rack %s: record %s: %w", r.plan.Rack, serveKey, err)
	}
	return since, nil
}

// forget ends the record of that, if there is one.
func (r *run) forget(ctx context.Context) error {
	if _, ok, err := r.baselines.Get(ctx, r.plan.Rack, serveKey); err != nil || !ok {
		return err
	}
	return r.baselines.Forget(ctx, r.plan.Rack, serveKey)
}

// served names one of the rack's objects that only a controller can finish; empty where there is none.
func (r *run) served(ctx context.Context) (string, error) {
	fleet, err := r.client.Fleet(ctx, r.plan.Rack)
	if err != nil {
		return "", err
	}
	claims, err := r.client.Claims(ctx, fleet)
	if err != nil {
		return "", err
	}
	for _, list := range [][]unstructured.Unstructured{claims, fleet.Classes} {
		if len(list) > 0 {
			return k8s.Subject(&list[0]), nil
		}
	}
	return "", nil
}
