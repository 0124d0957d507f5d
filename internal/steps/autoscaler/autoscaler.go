// Package autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// poll is how soon to look again at pods that start or end.
const poll = 2 * time.Second

// baseline is the Cluster Autoscaler as it was found before the first change.
type baseline struct {
	// Deployment is namespace/name.
	Deployment string `json:"deployment"`
	Replicas   int64  `json:"replicas"`
	line
	// Pin is the value of the system label in its nodeSelector, if it had one.
	Pin *string `json:"pin,omitempty"`
}

// Step changes the Cluster Autoscaler's Deployment.
type Step struct {
	connect   k8s.Connector
	baselines steps.Baselines
	arbiter   steps.Arbiter
	scaling   AutoScaling
}

// Records are what the step keeps of a rack.
type Records interface {
	steps.Baselines
	steps.Contests
}

// New makes the step; connect opens the plan's cluster, scaling is where Auto Scaling groups are looked up, now is the clock.
func New(connect k8s.Connector, records Records, scaling AutoScaling, now func() time.Time) *Step {
	return &Step{connect: connect, baselines: records, arbiter: steps.Arbiter{Contests: records, Now: now}, scaling: scaling}
}

// Run brings the section autoscaler about. It has no parts.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (steps.Progress, error) {
	if p.Autoscaler.State == "" {
		return steps.Progress{}, nil
	}
	client, err := s.connect(ctx, p.Cluster)
	if err != nil {
		return steps.Progress{}, err
	}
	run := &run{Step: s, plan: p, client: client}
	progress, err := run.converge(ctx)
	if k8s.IsConflict(err) {
		return run.progress.NotYet(poll, "%v", err) // somebody wrote it between our reading and writing
	}
	if err == nil && progress.Wait == 0 && p.Autoscaler.State != plan.AutoscalerBaseline {
		err = steps.ForgetKept(ctx, s.baselines, p.Rack, steps.OffKey) // the hand-over stands: turning off asks first again
	}
	return progress, err
}

// run is one call of the step.
type run struct {
	*Step
	plan     *plan.Plan
	client   *k8s.Client
	progress steps.Progress
}

func (r *run) converge(ctx context.Context) (steps.Progress, error) {
	all, err := r.client.List(ctx, k8s.Deployment, "", "")
	if err != nil {
		return r.progress, err
	}
	marked := r.marked(all)
	if r.plan.Autoscaler.State == plan.AutoscalerBaseline {
		return r.back(ctx, all, marked)
	}
	named := r.plan.Autoscaler.Deployment
	if marked.Unstructured != nil && marked.key() == named && k8s.AutoscalerContainer(marked.Unstructured) < 0 {
		return r.handOver(ctx, marked) // taken for one by its name alone, by an earlier version: it stays so, as turning off puts it back
	}
	live, err := k8s.Autoscaler(all, named)
	if err != nil {
		return r.progress, err // two of them, too, where the second came after the first was handed over
	}
	if marked.Unstructured != nil && named != "" && marked.key() != named {
		return r.misnamed(ctx, marked)
	}
	if marked.Unstructured != nil {
		return r.handOver(ctx, marked)
	}
	if live == nil {
		r.progress.Note = "no Cluster Autoscaler found"
		r.progress.Warn("cluster_autoscaler", "No Cluster Autoscaler was found in the cluster (a Deployment whose image is named cluster-autoscaler), so there was nothing to hand over; "+
			"if one runs under another image, stop it, or give the image that name in your mirror: both would scale the same nodes.")
		return r.progress, nil
	}
	return r.handOver(ctx, deployment{live})
}

// handOver leaves it the groups of the plan and those that EKS does not know; without any, it is stopped.
func (r *run) handOver(ctx context.Context, live deployment) (steps.Progress, error) {
	unmanaged, err := r.unmanaged(ctx, live)
	if err != nil {
		return r.progress, err
	}
	groups := unmanaged
	switch state := r.plan.Autoscaler.State; state {
	case plan.AutoscalerOff:
	case plan.AutoscalerGroups:
		groups = slices.Concat(r.plan.Autoscaler.Groups, unmanaged)
	default:
		return r.progress, fmt.Errorf("autoscaler: unknown state %q", state)
	}
	if len(groups) == 0 {
		return r.change(ctx, live, func(wanted deployment) { wanted.scale(0) })
	}
	return r.target(ctx, live, groups)
}

// marked is the Deployment that we have changed for this rack and not put back; there is one at most. By its mark and not by
// name or image: cluster_autoscaler may have been changed since.
func (r *run) marked(all []unstructured.Unstructured) deployment {
	for i := range all {
		if d := (deployment{&all[i]}); d.marked(r.plan.Rack) {
			return d
		}
	}
	return deployment{}
}

// misnamed puts a Deployment back that was handed over from before cluster_autoscaler named another one.
func (r *run) misnamed(ctx context.Context, marked deployment) (steps.Progress, error) {
	r.progress.Happened("cluster_autoscaler", "%s was taken for the Cluster Autoscaler until cluster_autoscaler named %s, and is put back as it was found; if it is a Cluster Autoscaler too, stop it: it would scale the same nodes as Karpenter.",
		k8s.Subject(marked.Unstructured), r.plan.Autoscaler.Deployment)
	return r.restore(ctx, marked)
}

// change keeps the baseline, edits the Deployment and waits for its pods. What others have set back is made again as the arbiter rules.
func (r *run) change(ctx context.Context, live deployment, edit func(deployment)) (steps.Progress, error) {
	wanted := live.copy()
	edit(wanted)
	wanted.mark(r.plan.Rack)
	if equality.Semantic.DeepEqual(live.Object, wanted.Object) {
		if err := r.arbiter.Holds(ctx, r.plan.Rack, contest(live), wanted.setting()); err != nil {
			return r.progress, err
		}
		return r.write(ctx, live, wanted)
	}
	ruling, err := r.arbiter.Rule(ctx, r.plan.Rack, contest(live), wanted.setting())
	if err != nil {
		return r.progress, err
	}
	if ruling.Contested() {
		r.contested(live, wanted, ruling)
	}
	if !ruling.Write {
		return r.progress, nil
	}
	if !live.marked(r.plan.Rack) {
		if err := r.keep(ctx, live); err != nil {
			return r.progress, err
		}
	}
	progress, err := r.write(ctx, live, wanted)
	if err != nil {
		return progress, err
	}
	return progress, r.arbiter.Made(ctx, r.plan.Rack, contest(live), wanted.setting(), ruling)
}

// keep records the baseline. One that is there belongs to a Deployment that has been put back, or to a first try that was
// stopped before it changed anything: without our mark, a Deployment is as its owner wants it.
func (r *run) keep(ctx context.Context, live deployment) error {
	value, err := json.Marshal(baseline{live.key(), live.replicas(), live.line(), live.pin()})
	if err != nil {
		return fmt.Errorf("%s: baseline: %w", k8s.Subject(live.Unstructured), err)
	}
	if err := r.baselines.Forget(ctx, r.plan.Rack, steps.AutoscalerKey); err != nil {
		return err
	}
	return r.baselines.Keep(ctx, r.plan.Rack, steps.AutoscalerKey, value)
}

func (r *run) write(ctx context.Context, live, wanted deployment) (steps.Progress, error) {
	written, err := r.client.Update(ctx, k8s.Deployment, live.Unstructured, wanted.Unstructured)
	if err != nil {
		return r.progress, err
	}
	subject := k8s.Subject(live.Unstructured)
	if written {
		r.progress.Changed(fmt.Sprintf("updated to %d replica(s)", wanted.replicas()), "%s", subject)
		return r.progress.NotYet(poll, "%s: its change has not been seen yet", subject)
	}
	rollout, err := k8s.RolloutOf(live.Unstructured)
	if err != nil || rollout.Done {
		return r.progress, err
	}
	return r.progress.NotYet(poll, "%s: %s", subject, rollout.Note)
}

// target leaves it to scale these groups only, from a system node.
func (r *run) target(ctx context.Context, live deployment, groups []plan.AutoscaledGroup) (steps.Progress, error) {
	if live.line().inShell() {
		return r.progress, shell(live)
	}
	nodesUp, err := r.client.SystemNodes(ctx)
	if err != nil {
		return r.progress, err
	}
	if !k8s.AnyReady(nodesUp) {
		return r.progress.NotYet(poll, "no Ready node carries %s=true yet", names.LabelSystemNode)
	}
	return r.change(ctx, live, func(wanted deployment) {
		wanted.scale(1)
		wanted.setLine(live.line().retarget(nodes(groups)))
		wanted.setPin(new("true"))
	})
}

func shell(live deployment) error {
	return steps.Reject("karpenter_enabled", "%s starts Cluster Autoscaler through a shell line, in which Sawhorse cannot change what it scales; give --nodes or --node-group-auto-discovery as arguments of their own.",
		k8s.Subject(live.Unstructured))
}
