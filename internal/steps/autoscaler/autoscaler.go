// Package autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// poll is how long to wait before the next look at pods that start or end.
const poll = 2 * time.Second

// baseline describes Cluster Autoscaler's Deployment before the first change.
type baseline struct {
	// Deployment is namespace/name.
	Deployment string `json:"deployment"`
	Replicas   int64  `json:"replicas"`
	line
	// Pin is the value of the system label in its nodeSelector; nil if it had none.
	Pin *string `json:"pin,omitempty"`
}

// pinOf returns how a Deployment was pinned before; nil if it was not, or if that is not known.
func (b *baseline) pinOf(d deployment) *string {
	if b == nil || b.Deployment != d.key() {
		return nil
	}
	return b.Pin
}

// Step changes Cluster Autoscaler's Deployment.
type Step struct {
	Connect     k8s.Connector
	AutoScaling autoscaling.DescribeAutoScalingGroupsAPIClient
	Baselines   outcome.Recorder
	Checkpoints outcome.Recorder
	Contests    outcome.Recorder
	Now         func() time.Time
}

func (s *Step) arbiter() outcome.Arbiter { return outcome.Arbiter{Contests: s.Contests, Now: s.Now} }

// Run hands scaling over or back, as the plan says. The step has no parts.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	if p.Autoscaler.State == "" {
		return outcome.Progress{}, nil
	}
	client, err := s.Connect(ctx, p.Cluster)
	if err != nil {
		return outcome.Progress{}, err
	}
	run := &run{Step: s, plan: p, client: client}
	err = k8s.Again(run.converge(ctx), poll)
	if err == nil && p.Autoscaler.State != plan.AutoscalerBaseline {
		// The hand-over is complete: turning off must check the capacity again.
		err = outcome.ForgetIfRecorded(ctx, s.Checkpoints, p.Rack, outcome.CheckpointOff)
	}
	return run.progress.Until(err)
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
	marked := r.marked(all)
	if r.plan.Autoscaler.State == plan.AutoscalerBaseline {
		return r.back(ctx, all, marked)
	}
	named := r.plan.Autoscaler.Deployment
	live, err := refusals.Autoscaler(all, r.plan.Rack, named)
	if err != nil {
		return err // also if there are two because the second came after the first was handed over
	}
	if marked.Unstructured != nil && named != "" && marked.key() != named {
		return r.misnamed(ctx, marked)
	}
	if marked.Unstructured != nil {
		return r.handOver(ctx, marked)
	}
	if live == nil {
		r.progress.Note = "no Cluster Autoscaler found"
		r.progress.Warn("cluster_autoscaler", "No Cluster Autoscaler was found in the cluster (a Deployment whose image is named "+
			"cluster-autoscaler), so there was nothing to hand over; if one runs under another image, stop it, or give the image that "+
			"name in your mirror: both would scale the same nodes.")
		return nil
	}
	return r.handOver(ctx, deployment{live})
}

// handOver makes Cluster Autoscaler scale only the plan's groups and those that EKS does not know. If there are none,
// it scales the Deployment to zero.
func (r *run) handOver(ctx context.Context, live deployment) error {
	unmanaged, err := r.unmanaged(ctx, live)
	if err != nil {
		return err
	}
	args := plan.Args(unmanaged)
	switch state := r.plan.Autoscaler.State; state {
	case plan.AutoscalerOff:
	case plan.AutoscalerGroups:
		args = slices.Concat(r.plan.Autoscaler.Args, args)
	default:
		return fmt.Errorf("autoscaler: unknown state %q; deploy the stack again", state)
	}
	if len(args) == 0 {
		return r.change(ctx, live, func(wanted deployment) { wanted.scale(0) })
	}
	return r.target(ctx, live, args)
}

// marked returns the Deployment that Sawhorse has changed for this rack and not restored; there is at most one. It is
// found by our annotation and not by name or image, because cluster_autoscaler may have changed since.
func (r *run) marked(all []unstructured.Unstructured) deployment {
	for i := range all {
		if d := (deployment{&all[i]}); d.marked(r.plan.Rack) {
			return d
		}
	}
	return deployment{}
}

// misnamed restores a Deployment that was handed over before cluster_autoscaler named another one.
func (r *run) misnamed(ctx context.Context, marked deployment) error {
	r.progress.Happened("cluster_autoscaler", "%s was taken for the Cluster Autoscaler until cluster_autoscaler named %s, and "+
		"is put back as it was found; if it is a Cluster Autoscaler too, stop it: it would scale the same nodes as Karpenter.",
		k8s.Subject(marked.Unstructured), r.plan.Autoscaler.Deployment)
	return r.restore(ctx, marked)
}

// change records the baseline, edits the Deployment and waits for its pods. If others have reverted the change, the
// arbiter decides whether to apply it again.
func (r *run) change(ctx context.Context, live deployment, edit func(deployment)) error {
	wanted := live.copy()
	edit(wanted)
	k8s.SetAnnotation(wanted.Unstructured, ownership.AnnotationAutoscaler, r.plan.Rack)
	if equality.Semantic.DeepEqual(live.Object, wanted.Object) {
		if err := r.arbiter().Holds(ctx, r.plan.Rack, contest(live), wanted.setting()); err != nil {
			return err
		}
		return r.write(ctx, live, wanted)
	}
	ruling, err := r.arbiter().Rule(ctx, r.plan.Rack, contest(live), wanted.setting())
	if err != nil {
		return err
	}
	if ruling.Contested() {
		r.contested(live, wanted, ruling)
	}
	if !ruling.Write {
		return nil
	}
	if !live.marked(r.plan.Rack) {
		made, err := r.made(ctx, live)
		if err == nil && !made {
			err = r.record(ctx, live)
		}
		if err != nil {
			return err
		}
	}
	waiting := r.write(ctx, live, wanted)
	if !outcome.IsNotYet(waiting, outcome.Waiting) {
		return waiting // nothing was written
	}
	return cmp.Or(r.arbiter().Made(ctx, r.plan.Rack, contest(live), wanted.setting(), ruling), waiting)
}

// made reports whether a Deployment without our annotation has the replicas and targets that Sawhorse has set: then the annotation was
// taken off it, and perhaps the pin.
func (r *run) made(ctx context.Context, live deployment) (bool, error) {
	contest, err := outcome.ReadContest(ctx, r.Contests, r.plan.Rack, contest(live))
	pinned, free := live.copy(), live.copy()
	pinned.setPin(new("true"))
	free.setPin(nil)
	return contest.Wanted == pinned.setting() || contest.Wanted == free.setting(), err
}

// record records the baseline, and replaces an existing one. That one belongs to a Deployment that was restored, or to an
// attempt that stopped before its first change: a Deployment without our annotation and settings is as its owner wants it.
func (r *run) record(ctx context.Context, live deployment) error {
	before := baseline{live.key(), live.replicas(), live.line(), live.pin()}
	return outcome.Record(ctx, r.Baselines.Replace, r.plan.Rack, outcome.BaselineAutoscaler, before)
}

func (r *run) write(ctx context.Context, live, wanted deployment) error {
	written, err := r.client.Update(ctx, k8s.Deployment, live.Unstructured, wanted.Unstructured)
	if err != nil {
		return err
	}
	subject := k8s.Subject(live.Unstructured)
	if written {
		r.progress.Changed(fmt.Sprintf("updated to %d replica(s)", wanted.replicas()), "%s", subject)
		return outcome.Wait(poll, "%s: its change has not been seen yet", subject)
	}
	rollout, err := k8s.RolloutOf(live.Unstructured)
	if err != nil || rollout.Done {
		return err
	}
	if wanted.marked(r.plan.Rack) && wanted.replicas() > 0 && !r.unpinned(live) {
		reason, err := r.client.Unplaced(ctx, live.Unstructured, r.Now())
		if err != nil && !apierrors.IsForbidden(err) { // a stored plan of an earlier release gives no right to list pods
			return err
		}
		if reason != "" {
			return r.unpin(ctx, live, reason)
		}
	}
	return outcome.Wait(poll, "%s: %s", subject, rollout.Note)
}

// unpin lets the pods run where they ran before, because they find no room on the system nodes. They are tried there again after a day.
func (r *run) unpin(ctx context.Context, live deployment, reason string) error {
	before, err := r.recorded(ctx)
	if err != nil {
		return err
	}
	wanted := live.copy()
	wanted.setPin(before.pinOf(live))
	if equality.Semantic.DeepEqual(live.Object, wanted.Object) { // its owner wants it there
		return outcome.Wait(poll, "%s: %s", k8s.Subject(live.Unstructured), reason)
	}
	k8s.SetAnnotation(wanted.Unstructured, ownership.AnnotationUnpinned, outcome.Stamp(r.Now()))
	r.warnUnpinned(live, " ("+reason+")")
	return cmp.Or(r.arbiter().Made(ctx, r.plan.Rack, contest(live), wanted.setting(), outcome.Ruling{}), r.write(ctx, live, wanted))
}

// unpinned reports whether the pods have found no room on the system nodes within the last day.
func (r *run) unpinned(live deployment) bool {
	return outcome.Rests(live.GetAnnotations()[ownership.AnnotationUnpinned], r.Now())
}

func (r *run) warnUnpinned(live deployment, reason string) {
	r.progress.Warn("cluster_autoscaler", "%s does not fit on the system nodes%s and runs where it ran before; give the system node groups "+
		"more or larger nodes, so that it does not depend on nodes that Karpenter may replace.", k8s.Subject(live.Unstructured), reason)
}

// target makes Cluster Autoscaler run on a system node and scale only the groups in these arguments.
func (r *run) target(ctx context.Context, live deployment, args []string) error {
	if live.line().inShell() {
		return shell(live)
	}
	nodes, err := r.client.SystemNodes(ctx)
	if err != nil {
		return err
	}
	if !k8s.AnyAcceptsPods(nodes) {
		return outcome.Wait(poll, "no Ready node carries %s=true yet", ownership.LabelSystemNode)
	}
	unpinned := r.unpinned(live)
	if unpinned {
		r.warnUnpinned(live, "")
	}
	return r.change(ctx, live, func(wanted deployment) {
		wanted.scale(1)
		wanted.setLine(live.line().retarget(args))
		if !unpinned {
			wanted.setPin(new("true"))
			k8s.SetAnnotation(wanted.Unstructured, ownership.AnnotationUnpinned, "")
		}
	})
}

func shell(live deployment) error {
	return outcome.Reject("karpenter_enabled", "%s starts Cluster Autoscaler through a shell line, in which Sawhorse cannot "+
		"change what it scales; give --nodes or --node-group-auto-discovery as arguments of their own.",
		k8s.Subject(live.Unstructured))
}
