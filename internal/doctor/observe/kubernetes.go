package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// kubernetes reads the cluster's own objects. If the API server cannot be reached or does not know the caller, which the
// first kind shows, it does not wait for the other kinds. A caller that may not read nodes may still read the rest.
func (r *reader) kubernetes(ctx context.Context) {
	var closed error
	r.client, closed = r.Dial(ctx, r.o.Facts.Cluster.Cluster)
	for _, each := range r.inCluster() {
		r.read(each.source, func() error {
			if closed != nil {
				return closed
			}
			err := each.do(ctx)
			if each.source == doctor.Nodes && err != nil && !apierrors.IsForbidden(err) {
				closed = err
			}
			return err
		})
	}
}

// inCluster returns what reads the objects in the cluster, the nodes first.
func (r *reader) inCluster() []source {
	return []source{
		{doctor.Nodes, func(ctx context.Context) error { return read(ctx, r.client, k8s.Node, &r.o.Nodes) }},
		{doctor.Pods, func(ctx context.Context) error { return read(ctx, r.client, k8s.Pod, &r.o.Pods) }},
		{doctor.Deployments, func(ctx context.Context) error { return read(ctx, r.client, k8s.Deployment, &r.o.Deployments) }},
		{doctor.StatefulSets, func(ctx context.Context) error { return read(ctx, r.client, k8s.StatefulSet, &r.o.StatefulSets) }},
		{doctor.DaemonSets, func(ctx context.Context) error { return read(ctx, r.client, k8s.DaemonSet, &r.o.DaemonSets) }},
		{doctor.CNI, func(ctx context.Context) (err error) {
			r.o.CNI, err = observe.CNI(ctx, r.EKS, r.client, r.o.Facts.Cluster.Name)
			return err
		}},
		{doctor.Budgets, func(ctx context.Context) error { return read(ctx, r.client, k8s.PodDisruptionBudget, &r.o.Budgets) }},
		{doctor.NodePools, r.pools},
		{doctor.NodeClaims, r.launches},
		{doctor.PodEvents, r.waiting},
	}
}

// read reads all objects of a kind.
func read[T any](ctx context.Context, client *k8s.Client, kind k8s.Kind, into *[]T) (err error) {
	*into, err = k8s.Typed[T](ctx, client, kind, "", "")
	return err
}

// pools reads the rack's NodePools and EC2NodeClasses. Before Karpenter is turned on the cluster has no such kinds, and
// so no such objects.
func (r *reader) pools(ctx context.Context) error {
	for _, kind := range []k8s.Kind{k8s.EC2NodeClass, k8s.NodePool} {
		objects, err := r.client.Ours(ctx, kind, r.o.Rack)
		if err != nil {
			return err
		}
		for i := range objects {
			_, retires := objects[i].GetLabels()[ownership.Retiring]
			p := doctor.PoolObject{Kind: kind.Name, Name: objects[i].GetName(), Retires: retires}
			if ready, why := k8s.Ready(&objects[i]); !ready {
				p.NotReady = why
			}
			if status, _, why := k8s.Condition(&objects[i], "NodeRegistrationHealthy"); status == "False" {
				p.Unhealthy = why
			}
			r.o.Pools = append(r.o.Pools, p)
		}
	}
	return nil
}

// retires reports whether a pool of the rack is being removed. The pools are read before.
func (r *reader) retires(pool string) bool {
	return slices.ContainsFunc(r.o.Pools, func(p doctor.PoolObject) bool { return p.Name == pool && p.Retires })
}

// starting is how long a node may take to register or to initialize before that counts as a failure. Most take one
// minute; Karpenter itself gives up after 15.
const starting = 5 * time.Minute

// launches reads the NodeClaims that have not become nodes, and the events of those that Karpenter has deleted for lack
// of capacity. Events about objects without a namespace are in the namespace default.
func (r *reader) launches(ctx context.Context) error {
	now := time.Now()
	if err := r.client.Each(ctx, k8s.NodeClaim, "", "", func(object *unstructured.Unstructured) error {
		if words := failure(object, now); words != "" && object.GetDeletionTimestamp() == nil {
			r.o.Launches = append(r.o.Launches, doctor.Launch{NodeClaim: object.GetName(), Words: words})
		}
		return nil
	}); err != nil {
		return err
	}
	return r.client.Each(ctx, k8s.Event, metav1.NamespaceDefault, "", func(object *unstructured.Unstructured) error {
		e, err := k8s.As[corev1.Event](object)
		if err != nil {
			return nil // Only another program's event can be unreadable.
		}
		recent := now.Sub(k8s.LastSeen(e)) < time.Hour
		if recent && e.InvolvedObject.Kind == k8s.NodeClaim.Name && e.Reason == "InsufficientCapacityError" {
			r.o.Launches = append(r.o.Launches, doctor.Launch{NodeClaim: e.InvolvedObject.Name, Words: k8s.Said(e)})
		}
		return nil
	})
}

// longestWait is how long a pod may wait for its node. Most have one within a minute or two.
const longestWait = 5 * time.Minute

// longestReason is the length in bytes to which Karpenter's message about a pod is cut: it names all pools.
const longestReason = 500

// waiting finds among the pods, which have been read before, those that wait for a node, and whose last event of Karpenter's says that it
// launches none. It reads events only if there are such pods.
func (r *reader) waiting(ctx context.Context) error {
	since, last := map[types.UID]time.Time{}, map[types.UID]*corev1.Event{}
	for i := range r.o.Pods {
		pod := &r.o.Pods[i]
		if at, message := k8s.Unschedulable(pod); message != "" && time.Since(at) >= longestWait &&
			pod.DeletionTimestamp == nil && !k8s.OfDaemonSet(pod) {
			since[pod.UID] = at
		}
	}
	if len(since) == 0 {
		return nil
	}
	err := r.client.Where(ctx, k8s.Event, "source=karpenter,involvedObject.kind=Pod", func(object *unstructured.Unstructured) error {
		e, err := k8s.As[corev1.Event](object)
		if err != nil {
			return nil // only another program's event can be unreadable
		}
		of := e.InvolvedObject.UID
		if waits := !since[of].IsZero() && (e.Reason == "FailedScheduling" || e.Reason == "Nominated"); waits &&
			(last[of] == nil || k8s.LastSeen(e).After(k8s.LastSeen(last[of]))) {
			last[of] = e
		}
		return nil
	})
	for of, e := range last {
		if e.Reason == "FailedScheduling" {
			r.o.Waiting = append(r.o.Waiting, doctor.Waiter{Pod: e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name, Since: since[of],
				Reason: outcome.ShortenTo(longestReason, e.Message), Limit: k8s.OverLimit(e.Message, r.retires)})
		}
	}
	return err
}

// failure returns Karpenter's words about the first of a NodeClaim's conditions on the way to a node that has failed; "" if none has.
// Karpenter leaves a failed launch at Unknown, with a reason; the reason AwaitingReconciliation means that it has not begun with the
// NodeClaim.
func failure(claim *unstructured.Unstructured, now time.Time) string {
	for _, step := range []string{"Launched", "Registered", "Initialized"} {
		status, since, words := k8s.Condition(claim, step)
		switch {
		case status == "True":
			continue
		case status == "False", words != "" && now.Sub(since) >= starting,
			step == "Launched" && words != "" && !strings.Contains(words, "AwaitingReconciliation"):
			return words
		}
		return ""
	}
	return ""
}
