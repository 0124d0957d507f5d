// Package controller installs Karpenter: its CRDs and the objects of its controller, which the plan has. If a Helm release has
// them, it is taken over. If the rack asks for it, the step also installs the NVIDIA device plugin.
package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
)

// poll is how long to wait before the next look at pods that start or end.
const poll = 2 * time.Second

// The parts of the step.
const (
	// PartCRDs is the CRDs.
	PartCRDs = "crds"
	// PartRelease is the controller.
	PartRelease = "release"
	// PartPlugin is the DaemonSet of the NVIDIA device plugin.
	PartPlugin = "plugin"
	// PartServe keeps the controller working during a removal, while it has something to remove.
	PartServe = "serve"
)

// Step installs, upgrades, repairs and removes Karpenter, and the device plugin.
type Step struct {
	Connect     k8s.Connector
	Checkpoints outcome.Recorder
	Contests    outcome.Recorder
	Versions    Versions
	// Self is the function that runs the step.
	Self admin.Function
	Now  func() time.Time
}

// Run does one part of the step.
func (s *Step) Run(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	run := &run{Step: s, plan: p}
	err := run.bring(ctx, part)
	return run.progress.Until(s.Self.Refused(ctx, p.Cluster, err))
}

// run is one call of the step.
type run struct {
	*Step
	plan     *plan.Plan
	client   *k8s.Client
	progress outcome.Progress
}

func (r *run) bring(ctx context.Context, part string) error {
	var err error
	if r.client, err = r.Connect(ctx, r.plan.Cluster); err != nil {
		return err
	}
	r.client = r.client.Arbitrated(r.plan.Rack, outcome.Arbiter{Contests: r.Contests, Now: r.Now})
	switch {
	case part == PartPlugin:
		return r.plugin(ctx)
	case r.client.IsReadOnly():
		return r.compare(ctx, part)
	}
	switch {
	case part == PartCRDs && r.plan.Controller.CRDs.Present:
		return r.crds(ctx)
	case part == PartRelease && r.plan.Controller.Release.Present:
		// An abandoned removal may have left a record that it looked for the controller.
		if err := r.forget(ctx); err != nil {
			return err
		}
		return r.release(ctx)
	case part == PartRelease:
		return r.remove(ctx)
	case part == PartServe:
		return r.serve(ctx)
	case part == PartCRDs:
		return nil // the CRDs are never removed
	}
	return fmt.Errorf("controller: unknown part %q; deploy the stack again", part)
}

// release installs, upgrades or repairs the controller and waits until it works.
func (r *run) release(ctx context.Context) error {
	at, err := r.attempt(ctx)
	if err != nil {
		return err
	}
	changing, err := r.changing(ctx, at)
	if err != nil {
		return err
	}
	if changing {
		return r.change(ctx, at)
	}
	if err := r.install(ctx, r.plan.Controller.Release); err != nil {
		return err
	}
	if err := r.rollout(ctx); err != nil {
		return err
	}
	return r.inForce(ctx)
}

// rollout returns an outcome.NotYet until the controller's pods are Ready.
func (r *run) rollout(ctx context.Context) error {
	deployment, err := r.client.Get(ctx, k8s.Deployment, ownership.Namespace, ownership.ReleaseController)
	if err != nil {
		return err
	}
	if deployment == nil {
		return fmt.Errorf("release %s: its Deployment is gone right after it was applied; find out what deletes it",
			ownership.ReleaseController)
	}
	if err := r.admitAgain(ctx, deployment); err != nil {
		return err
	}
	rollout, err := k8s.RolloutOf(deployment)
	if err != nil || rollout.Done {
		return err
	}
	troubles, err := r.client.PodTroubles(ctx, deployment)
	if err != nil {
		return err
	}
	return outcome.Wait(poll, "%s", strings.Join(append([]string{k8s.Subject(deployment) + ": " + rollout.Note}, troubles...), "; "))
}

// replicas returns the plan's replicas if the system nodes span as many zones, otherwise 1. The chart spreads the pods
// over zones and hosts with a hard constraint, so a second pod in the same zone would stay pending for ever.
func (r *run) replicas(nodes []corev1.Node) int {
	wanted := r.plan.Controller.Release.Replicas
	zones := map[string]bool{}
	for _, node := range nodes {
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	if wanted == 1 || len(zones) >= wanted {
		return wanted
	}
	r.progress.Warn("high_availability", "Karpenter's controller runs as one replica although high_availability is true, because "+
		"the system nodes (%s=true) stand in %d zone(s); let a system node group span two zones and the next pass makes it two, or "+
		"write false.",
		ownership.LabelSystemNode, len(zones))
	return 1
}

// remove removes the controller, but only after the last NodeClaim and EC2NodeClass is gone: nothing else cleans up after them.
// Its account and its rights go after its last pod, which gives up its lease with them.
func (r *run) remove(ctx context.Context) error {
	left, err := r.served(ctx)
	if err != nil {
		return err
	}
	if left != "" {
		return outcome.Wait(poll, "%s still exists: the controller stays until it is gone", left)
	}
	if err := r.forget(ctx); err != nil {
		return err
	}
	live, err := r.client.Get(ctx, k8s.Deployment, ownership.Namespace, ownership.ReleaseController)
	if err != nil || live != nil && k8s.Owned(live, r.plan.Rack) != nil {
		return err // one that is not ours stays
	}
	takes, err := r.takesOver(ctx, ownership.ReleaseController, live != nil && k8s.Released(live, ownership.ReleaseController))
	if err != nil {
		return err
	}
	if live != nil && live.GetDeletionTimestamp() == nil {
		if err := r.client.Delete(ctx, k8s.Deployment, live); err != nil {
			return err
		}
		r.progress.Changed("uninstalled", "release %s", ownership.ReleaseController)
	}
	pods, err := r.client.List(ctx, k8s.Pod, ownership.Namespace, ofController)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return outcome.Wait(poll, "%s: ending", k8s.Subject(&pods[0]))
	}
	if _, err := r.prune(ctx, nil); err != nil {
		return err
	}
	if takes {
		if err := r.takenOver(ctx, ownership.ReleaseController); err != nil {
			return err
		}
	}
	return r.uninstalled(ctx)
}
