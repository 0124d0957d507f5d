package observe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// pools reads the rack's NodePools and EC2NodeClasses. Before Karpenter is turned on the cluster has no such kinds, and
// so no such objects.
func (l *looker) pools(ctx context.Context, client *k8s.Client) error {
	for _, kind := range []k8s.Kind{k8s.EC2NodeClass, k8s.NodePool} {
		if err := client.Each(ctx, kind, "", ownership.TagRack+"="+l.o.Rack, func(object *unstructured.Unstructured) error {
			p := doctor.PoolObject{Kind: kind.Name, Name: object.GetName()}
			if ready, why := k8s.Ready(object); !ready {
				p.NotReady = why
			}
			for _, c := range conditions(object) {
				if c.Type == "NodeRegistrationHealthy" && c.Status == metav1.ConditionFalse {
					p.Unhealthy = c.Reason + " " + c.Message
				}
			}
			l.o.Pools = append(l.o.Pools, p)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// starting is how long a node may take to register or to initialize before that counts as a failure. Most take one
// minute; Karpenter itself gives up after 15.
const starting = 5 * time.Minute

// launches reads the NodeClaims that have not become nodes, and the events of those that Karpenter has deleted for lack
// of capacity. Events about objects without a namespace are in the namespace default.
func (l *looker) launches(ctx context.Context, client *k8s.Client) error {
	now := time.Now()
	if err := client.Each(ctx, k8s.NodeClaim, "", "", func(object *unstructured.Unstructured) error {
		if c := failedStep(object, now); c != nil && object.GetDeletionTimestamp() == nil {
			l.o.Launches = append(l.o.Launches, doctor.Launch{
				NodeClaim: object.GetName(), Step: c.Type, Reason: c.Reason, Message: c.Message,
			})
		}
		return nil
	}); err != nil {
		return err
	}
	return client.Each(ctx, k8s.Event, metav1.NamespaceDefault, "", func(object *unstructured.Unstructured) error {
		var e corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &e); err != nil {
			return nil // Only another program's event can be unreadable.
		}
		recent := now.Sub(e.LastTimestamp.Time) < time.Hour
		if recent && e.InvolvedObject.Kind == k8s.NodeClaim.Name && e.Reason == "InsufficientCapacityError" {
			l.o.Launches = append(l.o.Launches, doctor.Launch{
				NodeClaim: e.InvolvedObject.Name, Step: "Launched", Reason: e.Reason, Message: e.Message,
			})
		}
		return nil
	})
}

// failedStep returns the first of a NodeClaim's conditions on the way to a node that has failed; nil if none has.
// Karpenter leaves a failed launch at Unknown, with a reason; the reason AwaitingReconciliation means that it has not
// begun with the NodeClaim.
func failedStep(object *unstructured.Unstructured, now time.Time) *metav1.Condition {
	by := map[string]*metav1.Condition{}
	for _, c := range conditions(object) {
		by[c.Type] = &c
	}
	for _, step := range []string{"Launched", "Registered", "Initialized"} {
		c := by[step]
		if c == nil {
			return nil
		}
		if c.Status == metav1.ConditionTrue {
			continue
		}
		late := now.Sub(c.LastTransitionTime.Time) >= starting
		if late || c.Status == metav1.ConditionFalse || step == "Launched" && c.Reason != "AwaitingReconciliation" {
			return c
		}
		return nil
	}
	return nil
}

func conditions(object *unstructured.Unstructured) []metav1.Condition {
	var has struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &has) // what cannot be read counts as absent
	return has.Status.Conditions
}
