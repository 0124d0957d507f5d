// Package controller installs Karpenter: one Helm release with its CRDs and one with its controller. Helm runs inside
// the function, and the charts are embedded. If the rack asks for it, the step also installs the NVIDIA device plugin.
package controller

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
)

// poll is how long to wait before the next look at pods that start or end.
const poll = 2 * time.Second

// The parts of the step.
const (
	// PartCRDs is the release of the CRDs.
	PartCRDs = "crds"
	// PartRelease is the release of the controller.
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
	helm     *helm
	progress outcome.Progress
}

func (r *run) bring(ctx context.Context, part string) error {
	var err error
	if r.client, err = r.Connect(ctx, r.plan.Cluster); err != nil {
		return err
	}
	switch {
	case part == PartPlugin:
		return r.plugin(ctx)
	case r.client.IsReadOnly():
		return r.compare(ctx, part)
	}
	if r.helm, err = newHelm(r.client.Config(), r.plan.Rack); err != nil {
		return err
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

func (r *run) crds(ctx context.Context) error {
	release := r.plan.Controller.CRDs
	wanted, err := r.wanted(ctx, release, release.Values)
	if err != nil {
		return err
	}
	last, err := r.last(wanted)
	if err != nil {
		return err
	}
	if err := r.refuseUnmanagedCRDs(ctx, last); err != nil {
		return err
	}
	// An earlier rack of the same name may have left newer ones. Stored objects may need them, and the next plan has them.
	if last != nil && karpenter.Compare(last.Chart.Metadata.Version, release.Version) > 0 {
		if wanted, err = r.wanted(ctx, plan.Release{Name: release.Name, Version: last.Chart.Metadata.Version}, release.Values); err != nil {
			return r.established(ctx, release.Definitions) // those of a later Sawhorse stay as they are
		}
	}
	if err := r.noteCRDs(ctx, wanted.chart.Metadata.Version); err != nil {
		return err
	}
	if err := r.ensure(ctx, last, wanted); err != nil {
		return err
	}
	return r.established(ctx, release.Definitions)
}

// noteCRDs records the newest version whose CRDs the cluster may have, before they are installed: if the call is stopped in
// between, no pass installs older ones.
func (r *run) noteCRDs(ctx context.Context, version string) error {
	_, err := r.note(ctx, func(record *plan.KarpenterRecord) {
		if karpenter.Compare(version, record.CRDs) > 0 {
			record.CRDs = version
		}
	})
	return err
}

// established waits until the API server serves the CRDs.
func (r *run) established(ctx context.Context, names []string) error {
	for _, name := range names {
		crd, err := r.client.Get(ctx, k8s.CustomResourceDefinition, "", name)
		if err != nil {
			return err
		}
		if crd == nil {
			return outcome.Wait(poll, "CustomResourceDefinition/%s: not there yet", name)
		}
		if established, note := k8s.Established(crd); !established {
			return outcome.Wait(poll, "%s: %s", k8s.Subject(crd), note)
		}
	}
	return nil
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
	wanted, err := r.controller(ctx)
	if err != nil {
		return err
	}
	if err := r.install(ctx, wanted); err != nil {
		return err
	}
	if err := r.rollout(ctx); err != nil {
		return err
	}
	return r.inForce(ctx)
}

// wanted renders a release with these values, and fails if the plan wants a version of Karpenter that this function does
// not have. If the plan has another chart of that version, the function uses its own, and a later pass does the
// step again: the plan is a stored one, or other functions are being deployed at the same time.
func (r *run) wanted(ctx context.Context, release plan.Release, values map[string]any) (rendered, error) {
	carried, err := karpenter.Find(release.Version)
	if err != nil {
		return rendered{}, fmt.Errorf("release %s: the plan wants version %q and this function carries %s; the next pass makes a new plan",
			release.Name, release.Version, strings.Join(karpenter.Versions(), ", "))
	}
	r.progress.Unfinished = release.Chart != carried.ChartDigests[release.Name]
	told, err := r.told(ctx, release)
	if err != nil {
		return rendered{}, err
	}
	return renderFor(told, release.Name, release.Version, values)
}

// controller renders the controller's release for the plan.
func (r *run) controller(ctx context.Context) (rendered, error) {
	return r.rendered(ctx, r.plan.Controller.Release)
}

// rendered renders a release of the controller with as many replicas as the system nodes allow.
func (r *run) rendered(ctx context.Context, release plan.Release) (rendered, error) {
	nodes, err := r.client.SystemNodes(ctx)
	if err != nil {
		return rendered{}, err
	}
	return r.wanted(ctx, release, withReplicas(release, r.replicas(nodes)))
}

// withReplicas returns the values of a release with a number of replicas.
func withReplicas(release plan.Release, replicas int) map[string]any {
	values := maps.Clone(release.Values)
	values["replicas"] = replicas
	return values
}

// install installs or upgrades the controller's release to the plan's values.
func (r *run) install(ctx context.Context, wanted rendered) error {
	last, err := r.last(wanted)
	if err != nil {
		return err
	}
	if last == nil {
		found, err := r.client.UnmanagedKarpenter(ctx, r.plan.Rack, r.plan.Controller.CRDs.Definitions)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return reject(found)
		}
	}
	if err := r.ensure(ctx, last, wanted); err != nil {
		return err
	}
	return r.prune(ctx, wanted)
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
func (r *run) replicas(nodes []k8s.SystemNode) int {
	wanted := r.plan.Controller.Release.Replicas
	zones := map[string]bool{}
	for _, node := range nodes {
		if node.Zone != "" {
			zones[node.Zone] = true
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

// last returns a release's newest revision, nil if there is none. It rejects a release that is not ours.
func (r *run) last(wanted rendered) (*release.Release, error) {
	last, err := r.helm.last(wanted)
	if err != nil {
		return nil, err
	}
	if last != nil && !r.helm.ours(last) {
		return nil, reject([]string{"Helm release " + ownership.Namespace + "/" + wanted.name})
	}
	return last, nil
}

// ensure installs a release, or upgrades or repairs its newest revision.
func (r *run) ensure(ctx context.Context, last *release.Release, wanted rendered) error {
	name, version := wanted.name, wanted.chart.Metadata.Version
	if last == nil {
		if err := r.helm.install(ctx, wanted); err != nil {
			return conflicting(err, "karpenter_enabled", "leave karpenter_enabled at false")
		}
		r.progress.Changed("installed", "release %s %s", name, version)
		return nil
	}
	change, err := difference(last, wanted)
	if err != nil {
		return fmt.Errorf("release %s: compare: %w", name, err)
	}
	if change == "" {
		return r.repair(ctx, wanted)
	}
	if err := r.helm.upgrade(ctx, last, wanted); err != nil {
		return conflicting(err, "karpenter_version", "write the version of Karpenter that the rack runs")
	}
	r.progress.Changed(change, "release %s %s", name, version)
	return nil
}

// remove uninstalls the controller, but only after the last NodeClaim and EC2NodeClass is gone: nothing else cleans up
// after them.
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
	whole, err := r.whole()
	if err != nil {
		return err
	}
	last, err := r.helm.last(whole)
	if err != nil {
		return err
	}
	if last != nil && !r.helm.ours(last) {
		return nil // not ours, so it stays
	}
	if last != nil {
		if err := r.helm.uninstall(ownership.ReleaseController); err != nil {
			return err
		}
		r.progress.Changed("uninstalled", "release %s", ownership.ReleaseController)
	}
	if err := r.prune(ctx, rendered{}); err != nil {
		return err
	}
	pods, err := r.client.List(ctx, k8s.Pod, ownership.Namespace, "app.kubernetes.io/instance="+ownership.ReleaseController)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return outcome.Wait(poll, "%s: ending", k8s.Subject(&pods[0]))
	}
	return r.uninstalled(ctx)
}

// whole renders the controller's release for its removal: the objects have the same names for every version and all values.
func (r *run) whole() (rendered, error) {
	return render(ownership.ReleaseController, ownership.KarpenterVersion, withReplicas(r.plan.Controller.Release, 1))
}
