package controller

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// compare does one part of the step with a client that is read-only, and without the records of changes: an audit runs the step
// only for a plan that was applied.
func (r *run) compare(ctx context.Context, part string) error {
	controller := &r.plan.Controller
	switch {
	case part == PartCRDs && controller.CRDs.Present:
		installed, _, err := r.installed(ctx)
		if err != nil {
			return err
		}
		if err := r.define(ctx, installed); err != nil {
			return err
		}
		return r.established(ctx, controller.CRDs.Definitions)
	case part == PartRelease && controller.Release.Present:
		objects, err := r.objects(ctx, controller.Release)
		if err != nil {
			return err
		}
		if err := r.apply(ctx, change{release: controller.Release.Name}, objects); err != nil {
			return err
		}
		if _, err := r.prune(ctx, objects); err != nil {
			return err
		}
		return r.rollout(ctx)
	case part == PartRelease:
		_, err := r.prune(ctx, nil)
		return err
	case part == PartServe:
		left, err := r.served(ctx)
		if err != nil || left == "" {
			return err
		}
		return outcome.Wait(poll, "%s: its removal needs the controller", left)
	}
	return nil
}
