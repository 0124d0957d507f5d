package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

const (
	// patience is how long a removal waits for a controller that does not become ready. It counts from the first look,
	// across passes. A removal can end without a controller, so the wait must not last for ever.
	patience = 5 * time.Minute
	// serveKey names the record of that first look.
	serveKey = "controller/serve"
)

// serve keeps a controller working while nodes drain and EC2NodeClasses are cleaned up. It restores
// objects that were scaled down or deleted. If a controller has nothing left to do, it changes nothing.
func (r *run) serve(ctx context.Context) error {
	left, err := r.served(ctx)
	if err != nil {
		return err
	}
	if left == "" {
		return r.forget(ctx)
	}
	trouble := r.revive(ctx)
	switch {
	case trouble == nil:
		return r.forget(ctx)
	case errors.As(trouble, new(unrecorded)):
		return trouble
	}
	// An error would end the pass, and an error in every pass would keep the removal from its fallback. So it is waited
	// out like a controller that is not ready.
	since, err := r.since(ctx)
	if err != nil {
		return err
	}
	if hopeless := errors.As(trouble, new(*outcome.Rejected)); !hopeless && r.Now().Before(since.Add(patience)) {
		return outcome.Wait(poll, "%v", trouble)
	}
	r.progress.Happened("karpenter_enabled", "Karpenter's controller does not get ready (%v). The removal goes on without it: "+
		"what has not ended two minutes after the drain window, Sawhorse ends through EC2. Look at the controller's log for the "+
		"cause.", trouble)
	return nil
}

// revive restores the controller, and returns an outcome.NotYet until its pods are Ready.
func (r *run) revive(ctx context.Context) error {
	if err := r.install(ctx, r.plan.Controller.Release); err != nil {
		return err
	}
	return r.rollout(ctx)
}

// since returns when the removal first found the controller not ready.
func (r *run) since(ctx context.Context) (time.Time, error) {
	if err := r.Checkpoints.RecordOnce(ctx, r.plan.Rack, serveKey, []byte(r.Now().UTC().Format(time.RFC3339))); err != nil {
		return time.Time{}, err
	}
	kept, _, err := r.Checkpoints.Get(ctx, r.plan.Rack, serveKey)
	if err != nil {
		return time.Time{}, err
	}
	since, err := time.Parse(time.RFC3339, string(kept))
	if err != nil {
		return time.Time{}, fmt.Errorf("rack %s: record %s: %w", r.plan.Rack, serveKey, err)
	}
	return since, nil
}

// forget deletes the record of the first look, if there is one.
func (r *run) forget(ctx context.Context) error {
	return outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, serveKey)
}

// served returns one of the rack's objects that only a controller can finish; empty if there is none.
func (r *run) served(ctx context.Context) (string, error) {
	set, err := r.client.PoolSet(ctx, r.plan.Rack)
	if err != nil {
		return "", err
	}
	claims, err := r.client.Claims(ctx, set)
	if err != nil {
		return "", err
	}
	for _, list := range [][]unstructured.Unstructured{claims, set.Classes} {
		if len(list) > 0 {
			return k8s.Subject(&list[0]), nil
		}
	}
	return "", nil
}
