// Package placement keeps the rack's own Deployments on system nodes with a nodeSelector, while Karpenter moves
// everything else.
package placement

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const (
	// poll is how long to wait before the next look at a rollout.
	poll = 2 * time.Second
	// pinned is the annotation's value for a Deployment that Sawhorse has pinned. restored is its value while the
	// baseline of a restored Deployment is still to be forgotten.
	pinned, restored = "pinned", "restored"
)

// baselineKey names the record of a Deployment's nodeSelector, as JSON.
func baselineKey(deployment *unstructured.Unstructured) string { return "pin/" + k8s.Key(deployment) }

func annotation(deployment *unstructured.Unstructured) string {
	return deployment.GetAnnotations()[ownership.AnnotationPin]
}

func annotate(deployment *unstructured.Unstructured, value string) {
	k8s.SetAnnotation(deployment, ownership.AnnotationPin, value)
}

// Step pins and unpins Deployments.
type Step struct {
	Connect   k8s.Connector
	Baselines outcome.Recorder
	Contests  outcome.Recorder
	Now       func() time.Time
}

func (s *Step) arbiter() outcome.Arbiter { return outcome.Arbiter{Contests: s.Contests, Now: s.Now} }

// Run pins the plan's Deployments, one at a time, and unpins those that Sawhorse has pinned and the plan no longer
// names.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	client, err := s.Connect(ctx, p.Cluster)
	if err != nil {
		return outcome.Progress{}, err
	}
	run := &run{Step: s, plan: p, client: client}
	return run.progress.Until(k8s.Again(run.converge(ctx), poll))
}

// run is one call of the step.
type run struct {
	*Step
	plan     *plan.Plan
	client   *k8s.Client
	progress outcome.Progress
}

func (r *run) converge(ctx context.Context) error {
	all, err := r.client.List(ctx, k8s.Deployment, "", "")
	if err != nil {
		return err
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range all {
		deployment := &all[i]
		found[k8s.Key(deployment)] = deployment
		if annotation(deployment) != "" && !slices.Contains(r.plan.Nodegroups.Pinned, k8s.Key(deployment)) {
			if err := r.unpin(ctx, deployment, ""); err != nil {
				return err
			}
		}
	}
	for _, name := range r.plan.Nodegroups.Pinned {
		deployment := found[name]
		if deployment == nil {
			continue // not every rack has every Deployment
		}
		if err := r.pin(ctx, deployment); err != nil {
			return err
		}
	}
	return nil
}

// waitFor returns the wait for a Deployment.
func waitFor(live *unstructured.Unstructured, note string) error {
	return outcome.Wait(poll, "%s: %s", k8s.Subject(live), note)
}

// pin pins one Deployment to the system nodes.
func (r *run) pin(ctx context.Context, live *unstructured.Unstructured) error {
	rollout, err := k8s.RolloutOf(live)
	if err != nil {
		return err
	}
	on := k8s.NodeSelector(live)[ownership.LabelSystemNode] == "true"
	switch {
	case on && annotation(live) == "":
		return nil // pinned by its owner
	case on:
		if err := r.arbiter().Holds(ctx, r.plan.Rack, baselineKey(live), pinned); err != nil || rollout.Done {
			return err
		}
		return r.watch(ctx, live, rollout)
	case r.isUnfit(live):
		r.warnUnfit(live, "")
		return nil
	case !rollout.Done:
		r.progress.Unfinished = true
		r.progress.Warn("karpenter_enabled", "%s was not pinned to the system nodes, because its pods are not all ready as it is (%s); "+
			"repair its pods, and a later pass pins it.", k8s.Subject(live), rollout.Note)
		return nil
	}
	nodes, err := r.client.SystemNodes(ctx)
	if err != nil {
		return err
	}
	if !k8s.AnyAcceptsPods(nodes) {
		return waitFor(live, "no Ready node carries "+ownership.LabelSystemNode+"=true yet")
	}
	return r.set(ctx, live)
}

// set records the nodeSelector and pins the Deployment. If others have removed the placement, the arbiter decides
// whether to set it again.
func (r *run) set(ctx context.Context, live *unstructured.Unstructured) error {
	ruling, err := r.arbiter().Rule(ctx, r.plan.Rack, baselineKey(live), pinned)
	if err != nil {
		return err
	}
	if ruling.Contested() {
		by := k8s.SetBy(live, k8s.SystemNodePath...)
		r.progress.Contest("system_deployments", ruling, k8s.Subject(live), by,
			"its pods on system nodes (nodeSelector "+ownership.LabelSystemNode+"=true)")
	}
	if !ruling.Write {
		return nil
	}
	if err := outcome.Record(ctx, r.Baselines.RecordOnce, r.plan.Rack, baselineKey(live), k8s.NodeSelector(live)); err != nil {
		return err
	}
	wanted := live.DeepCopy()
	k8s.SetSystemNode(wanted, new("true"))
	annotate(wanted, pinned)
	if _, err := r.client.Update(ctx, k8s.Deployment, live, wanted); err != nil {
		return err
	}
	r.progress.Changed("pinned to system nodes", "%s", k8s.Subject(live))
	return cmp.Or(r.arbiter().Made(ctx, r.plan.Rack, baselineKey(live), pinned, ruling), waitFor(live, "its change has not been seen yet"))
}

// settling is how long after the placement pods that do not get ready count as that of the placement, and not as something of their
// owner's later. Kubernetes takes ten minutes to call a rollout stuck, unless the owner wants another time.
const settling = time.Hour

// watch waits for the rollout of a pinned Deployment, and undoes a placement that keeps its pods from running. For what its owner's pods
// lack later it does not wait.
func (r *run) watch(ctx context.Context, live *unstructured.Unstructured, rollout k8s.Rollout) error {
	reason, err := r.client.Unplaced(ctx, live, r.Now())
	if err != nil {
		return err
	}
	if reason == "" {
		placed, err := outcome.ReadContest(ctx, r.Contests, r.plan.Rack, baselineKey(live))
		if err != nil || r.Now().Sub(placed.Written) >= settling {
			return err
		}
		if !rollout.Stuck {
			return waitFor(live, rollout.Note)
		}
		reason = rollout.Note
	}
	if err := r.unpin(ctx, live, unfit+outcome.Stamp(r.Now())); err != nil {
		return err
	}
	r.warnUnfit(live, " ("+reason+")")
	return nil
}

// unfit begins the annotation's value for a Deployment that did not fit. It is tried again after a day: each try starts a pod in vain.
const unfit = "unfit-"

func (r *run) isUnfit(deployment *unstructured.Unstructured) bool {
	stamp, is := strings.CutPrefix(annotation(deployment), unfit)
	return is && outcome.Rests(stamp, r.Now())
}

func (r *run) warnUnfit(live *unstructured.Unstructured, reason string) {
	r.progress.Warn("karpenter_enabled",
		"%s does not fit on the system nodes%s and runs where it ran before; give the system node groups more or larger nodes.",
		k8s.Subject(live), reason)
}

// unpin restores the system label in the nodeSelector, keeps all other labels, and leaves the annotation with the given
// value.
func (r *run) unpin(ctx context.Context, live *unstructured.Unstructured, left string) error {
	if err := r.arbiter().Withdraw(ctx, r.plan.Rack, baselineKey(live)); err != nil {
		return err
	}
	before, err := outcome.Recorded[map[string]string](ctx, r.Baselines, r.plan.Rack, baselineKey(live))
	if err != nil {
		return err
	}
	if annotation(live) == pinned {
		unpinned := live.DeepCopy()
		var was *string
		if value, ok := ptr.Deref(before, nil)[ownership.LabelSystemNode]; ok {
			was = &value
		}
		k8s.SetSystemNode(unpinned, was)
		annotate(unpinned, restored)
		if _, err := r.client.Update(ctx, k8s.Deployment, live, unpinned); err != nil {
			return err
		}
		r.progress.Changed("unpinned", "%s", k8s.Subject(live))
		live = unpinned
	}
	// The annotation is changed last: from it the next call of an interrupted step knows that there is a baseline.
	if err := r.Baselines.Forget(ctx, r.plan.Rack, baselineKey(live)); err != nil {
		return err
	}
	unmarked := live.DeepCopy()
	annotate(unmarked, left)
	_, err = r.client.Update(ctx, k8s.Deployment, live, unmarked)
	return err
}
