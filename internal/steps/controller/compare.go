package controller

import (
	"context"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// compare does one part of the step with a client that is read-only. Helm's record of a release is a Secret, which such
// a client does not read. So a release is as it should be if its objects are. That misses a record that somebody has
// deleted or changed while the objects stayed as they were; the step itself finds it when it runs for another reason.
func (r *run) compare(ctx context.Context, part string) error {
	switch {
	case part == PartCRDs && r.plan.Controller.CRDs.Present:
		wanted, err := r.wanted(ctx, r.plan.Controller.CRDs, r.plan.Controller.CRDs.Values)
		if err != nil {
			return err
		}
		if err := r.repair(ctx, wanted); err != nil {
			return err
		}
		return r.established(ctx, r.plan.Controller.CRDs.Definitions)
	case part == PartRelease && r.plan.Controller.Release.Present:
		wanted, err := r.controller(ctx)
		if err != nil {
			return err
		}
		if err := r.repair(ctx, wanted); err != nil {
			return err
		}
		if err := r.prune(ctx, wanted); err != nil {
			return err
		}
		return r.rollout(ctx)
	case part == PartRelease:
		return r.removed(ctx)
	case part == PartServe:
		left, err := r.served(ctx)
		if err != nil || left == "" {
			return err
		}
		return outcome.Wait(poll, "%s: its removal needs the controller", left)
	}
	return nil
}

// removed returns an error if an object of the controller's release is left.
func (r *run) removed(ctx context.Context) error {
	whole, err := r.whole()
	if err != nil {
		return err
	}
	objects, err := whole.objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		live, err := r.client.GetLike(ctx, object)
		if err != nil {
			return err
		}
		if live != nil && k8s.Owned(live, r.plan.Rack) == nil {
			return fmt.Errorf("%s: it is left of release %s: %w", k8s.Subject(live), ownership.ReleaseController, readonly.ErrWouldWrite)
		}
	}
	return r.prune(ctx, rendered{})
}
