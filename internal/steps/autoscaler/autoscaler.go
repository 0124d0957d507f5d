// Package autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

const (
	// poll is how soon to look again at pods that start or end.
	poll = 2 * time.Second
	// baselineKey is under which the Cluster Autoscaler's baseline is kept.
	baselineKey = "autoscaler"
)

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
}

// New makes the step; connect opens the plan's cluster.
func New(connect k8s.Connector, baselines steps.Baselines) *Step {
	return &Step{connect: connect, baselines: baselines}
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
	live, err := r.find(ctx)
	if err != nil {
		return r.progress, err
	}
	state := r.plan.Autoscaler.State
	if live.Unstructured == nil {
		if state == plan.AutoscalerBaseline {
			return r.progress, r.baselines.Forget(ctx, r.plan.Rack, baselineKey)
		}
		r.progress.Note = "no Cluster Autoscaler found"
		r.progress.Warn("karpenter_enabled", "No Cluster Autoscaler was found in the cluster (a Deployment whose image is named cluster-autoscaler), so there was nothing to hand over; "+
			"if one runs as something else, stop it: both would scale the same nodes.")
		return r.progress, nil
	}
	switch state {
	case plan.AutoscalerOff:
		return r.change(ctx, live, func(wanted deployment) error { wanted.scale(0); return nil })
	case plan.AutoscalerGroups:
		return r.groups(ctx, live)
	case plan.AutoscalerBaseline:
		return r.restore(ctx, live)
	}
	return r.progress, fmt.Errorf("autoscaler: unknown state %q", state)
}

// find is the Cluster Autoscaler; none is no error. Where there are several, the one that we have changed already counts;
// on the way back, those that we have not changed are none of our business.
func (r *run) find(ctx context.Context) (deployment, error) {
	all, err := r.client.Autoscalers(ctx)
	if err != nil {
		return deployment{}, err
	}
	var found []string
	for i := range all {
		if d := (deployment{&all[i]}); d.marked(r.plan.Rack) {
			return d, nil
		}
		found = append(found, all[i].GetNamespace()+"/"+all[i].GetName())
	}
	switch {
	case len(all) == 1:
		return deployment{&all[0]}, nil
	case len(all) > 1 && r.plan.Autoscaler.State != plan.AutoscalerBaseline:
		return deployment{}, steps.Reject("karpenter_enabled", "The cluster runs %d Cluster Autoscalers (%s), and Sawhorse hands over from one; delete the ones that are not needed, or leave karpenter_enabled at false.",
			len(all), strings.Join(found, ", "))
	}
	return deployment{}, nil
}

// change keeps the baseline, edits the Deployment and waits for its pods.
func (r *run) change(ctx context.Context, live deployment, edit func(deployment) error) (steps.Progress, error) {
	wanted := live.copy()
	if err := edit(wanted); err != nil {
		return r.progress, err
	}
	wanted.mark(r.plan.Rack)
	if !live.marked(r.plan.Rack) {
		if err := r.keep(ctx, live); err != nil {
			return r.progress, err
		}
	}
	return r.write(ctx, live, wanted)
}

func (r *run) keep(ctx context.Context, live deployment) error {
	value, err := json.Marshal(baseline{live.key(), live.replicas(), live.line(), live.pin()})
	if err != nil {
		return fmt.Errorf("%s: baseline: %w", k8s.Subject(live.Unstructured), err)
	}
	return r.baselines.Keep(ctx, r.plan.Rack, baselineKey, value)
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

// groups leaves it to scale the additional groups only, from a system node.
func (r *run) groups(ctx context.Context, live deployment) (steps.Progress, error) {
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
	return r.change(ctx, live, func(wanted deployment) error {
		wanted.scale(1)
		wanted.setLine(live.line().retarget(nodes(r.plan.Autoscaler.Groups)))
		wanted.setPin(new("true"))
		return nil
	})
}

func shell(live deployment) error {
	return steps.Reject("karpenter_enabled", "%s starts Cluster Autoscaler through a shell line, in which Sawhorse cannot change what it scales; give --nodes or --node-group-auto-discovery as arguments of their own.",
		k8s.Subject(live.Unstructured))
}
