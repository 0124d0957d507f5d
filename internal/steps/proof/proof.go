// Package proof shows that the pools which take over can launch nodes, before anything is handed over to them. A NodePool
// that is Ready has launched nothing: quotas, service-linked roles, grants of keys and the network show only with a node.
package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// poll is how long to wait before the next look at nodes that start.
const poll = 3 * time.Second

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
}

// Step asks for first nodes.
type Step struct {
	EKS         EKS
	Connect     k8s.Connector
	Baselines   outcome.Recorder
	Checkpoints outcome.Recorder
	// Limit is how long a pool may take for its first node.
	Limit time.Duration
	Now   func() time.Time
}

// Run waits for a node of each pool that takes over. On the way off it removes what an interrupted proof has left.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	client, err := s.Connect(ctx, p.Cluster)
	if err != nil {
		return outcome.Progress{}, err
	}
	run := &run{Step: s, plan: p, client: client}
	do := run.prove
	if p.Goal != plan.GoalKarpenter {
		do = run.end
	}
	err = do(ctx)
	return run.progress.Until(err)
}

// run is one call of the step.
type run struct {
	*Step
	plan     *plan.Plan
	client   *k8s.Client
	attempt  attempt
	progress outcome.Progress
}

func (r *run) prove(ctx context.Context) error {
	todo, err := r.todo(ctx)
	if err != nil {
		return err
	}
	if len(todo) == 0 {
		return r.end(ctx)
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	var waiting []string
	for _, manifest := range todo {
		why, err := r.lacks(ctx, manifest, pods[nameOf(manifest)])
		if err != nil {
			return err
		}
		if why != "" {
			waiting = append(waiting, fmt.Sprintf("pool %s has no first node yet: %s", nameOf(manifest), why))
		}
	}
	switch why := strings.Join(waiting, "; "); {
	case why == "":
		return r.end(ctx)
	case r.Now().Before(r.attempt.Start.Add(r.Limit)):
		return outcome.Wait(poll, "%s", why)
	default:
		return r.giveUp(ctx, why)
	}
}

// todo returns the pods of the pools that have not taken over yet. What is handed over once is proven: the pools are not
// asked again.
func (r *run) todo(ctx context.Context) (todo []plan.Object, err error) {
	for _, pod := range r.plan.Proof.Pods {
		var due bool
		if nameOf(pod) == ownership.BuildPool {
			due, err = r.builds(ctx)
		} else {
			due, err = r.autoscales(ctx)
		}
		if err != nil {
			return nil, err
		}
		if due {
			todo = append(todo, pod)
		}
	}
	return todo, nil
}

// autoscales reports whether a Cluster Autoscaler scales that was not handed over from, or that has kept one of these Auto Scaling groups.
func (r *run) autoscales(ctx context.Context, kept ...string) (bool, error) {
	all, err := r.client.List(ctx, k8s.Deployment, "", "")
	if err != nil {
		return false, err
	}
	live, err := refusals.Autoscaler(all, r.plan.Rack, r.plan.Autoscaler.Deployment)
	if err != nil || live == nil {
		return false, err
	}
	deployment, err := k8s.As[appsv1.Deployment](live)
	if err != nil || ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		return false, err
	}
	if live.GetAnnotations()[ownership.AnnotationAutoscaler] != r.plan.Rack {
		return true, nil
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, argument := range slices.Concat(container.Command, container.Args) { // --nodes=MIN:MAX:GROUP
			if slices.ContainsFunc(kept, func(group string) bool { return strings.HasSuffix(argument, ":"+group) }) {
				return true, nil
			}
		}
	}
	return false, nil
}

// builds reports whether a build group has nodes, or may get some from Cluster Autoscaler, and is not being emptied.
func (r *run) builds(ctx context.Context) (bool, error) {
	var zero []string
	for _, group := range r.plan.Nodegroups.Build {
		out, err := r.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &r.plan.Cluster.Name, NodegroupName: &group})
		if errors.As(err, new(*types.ResourceNotFoundException)) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("node group %s: describe: %w", group, err)
		}
		record, err := outcome.Recorded[outcome.Emptied](ctx, r.Baselines, r.plan.Rack, outcome.BaselineSize(group))
		if err != nil {
			return false, err
		}
		c := out.Nodegroup.ScalingConfig
		switch emptied := record.Before(aws.ToTime(out.Nodegroup.CreatedAt)) != nil; {
		case emptied || c == nil:
		case aws.ToInt32(c.MinSize)+aws.ToInt32(c.DesiredSize) > 0:
			return true, nil
		case out.Nodegroup.Resources != nil:
			for _, group := range out.Nodegroup.Resources.AutoScalingGroups {
				zero = append(zero, aws.ToString(group.Name))
			}
		}
	}
	if len(zero) == 0 {
		return false, nil
	}
	return r.autoscales(ctx, zero...)
}

// lacks returns what a pool lacks of a first node; "" if it has one. A pod that was preempted or deleted is created again.
func (r *run) lacks(ctx context.Context, manifest plan.Object, pod *corev1.Pod) (string, error) {
	pool := nameOf(manifest)
	nodes, err := r.nodes(ctx, pool)
	if err != nil {
		return "", err
	}
	gone := pod == nil || pod.DeletionTimestamp != nil
	switch {
	case gone && len(nodes) > 0 && !slices.Contains(r.attempt.Requested, pool):
		return "", nil
	case pod == nil:
		return "a pod asks for it", r.createPod(ctx, manifest)
	case gone:
		return "the pod that asks for it is being deleted, and is created again", nil
	case k8s.Ended(pod.Status.Phase):
		return "the pod that asks for it has ended, and is created again", r.delete(ctx, pod)
	case slices.Contains(nodes, pod.Spec.NodeName) && isTrue(pod.Status.Conditions, corev1.PodReadyToStartContainers):
		return "", nil
	}
	return r.words(ctx, pool, pod)
}

// nodes returns the pool's nodes that are registered and Ready.
func (r *run) nodes(ctx context.Context, pool string) (names []string, err error) {
	selector := ownership.LabelPool + "=" + pool + "," + ownership.LabelRegistered + "=true"
	err = r.client.Each(ctx, k8s.Node, "", selector, func(object *unstructured.Unstructured) error {
		if status, _, _ := k8s.Condition(object, "Ready"); status == "True" && object.GetDeletionTimestamp() == nil {
			names = append(names, object.GetName())
		}
		return nil
	})
	return names, err
}

// pods returns the pods of the proof by name.
func (r *run) pods(ctx context.Context) (map[string]*corev1.Pod, error) {
	pods := map[string]*corev1.Pod{}
	return pods, r.client.Each(ctx, k8s.Pod, ownership.ProofNamespace, "", func(object *unstructured.Unstructured) error {
		pod, err := k8s.As[corev1.Pod](object)
		if err == nil {
			pods[pod.Name] = pod
		}
		return err
	})
}

func isTrue(conditions []corev1.PodCondition, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

func nameOf(manifest plan.Object) string {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	return name
}
