package k8s

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Ready reads the Ready condition of a NodePool, an EC2NodeClass or a NodeOverlay. If it is false, the text has the messages of all
// conditions that are not True. A condition for an earlier generation of the object does not count.
func Ready(object *unstructured.Unstructured) (bool, string) {
	return condition(object, "Ready")
}

// Established reports whether a CustomResourceDefinition can be used.
func Established(object *unstructured.Unstructured) (bool, string) {
	return condition(object, "Established")
}

func condition(object *unstructured.Unstructured, kind string) (bool, string) {
	var missing []string
	for _, c := range conditions(object) {
		name, _ := c["type"].(string)
		observed, known := c["observedGeneration"].(int64)
		stale := known && observed < object.GetGeneration()
		switch {
		case name == kind && c["status"] == "True" && !stale:
			return true, ""
		case c["status"] != "True":
			missing = append(missing, describe(c))
		}
	}
	if len(missing) == 0 {
		return false, "its controller has not looked at it yet"
	}
	return false, strings.Join(missing, "; ")
}

// conditions returns the conditions in an object's status, as the API server sent them.
func conditions(object *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	all := make([]map[string]any, len(list))
	for i := range list {
		all[i], _ = list[i].(map[string]any)
	}
	return all
}

func describe(condition map[string]any) string {
	text := fmt.Sprintf("%v=%v", condition["type"], condition["status"])
	for _, key := range []string{"reason", "message"} {
		if word, _ := condition[key].(string); word != "" {
			text += " " + word
		}
	}
	return text
}

// Condition returns the status of a condition of an object, the time at which it got that status, and the condition as a
// text. Everything is empty if the object does not have the condition.
func Condition(object *unstructured.Unstructured, kind string) (status string, since time.Time, text string) {
	for _, c := range conditions(object) {
		if c["type"] != kind {
			continue
		}
		status, _ = c["status"].(string)
		changed, _ := c["lastTransitionTime"].(string)
		since, _ = time.Parse(time.RFC3339, changed)
		return status, since, describe(c)
	}
	return "", time.Time{}, ""
}

// Unauthorized reports whether EC2 denied Karpenter a dry run of what an EC2NodeClass needs. Karpenter 1.10 has the
// reasons in pkg/controllers/nodeclass/validation.go: CreateFleetAuthCheckFailed, CreateLaunchTemplateAuthCheckFailed
// and RunInstancesAuthCheckFailed.
func Unauthorized(object *unstructured.Unstructured) bool {
	for _, c := range conditions(object) {
		reason, _ := c["reason"].(string)
		if c["type"] == "ValidationSucceeded" && c["status"] == "False" && strings.HasSuffix(reason, "AuthCheckFailed") {
			return true
		}
	}
	return false
}

// Rollout says how far the rollout of a Deployment has come.
type Rollout struct {
	Done bool
	// Stuck is true if the Deployment has exceeded its progressDeadlineSeconds.
	Stuck bool
	// Note says what is missing.
	Note string
}

// RolloutOf reads the rollout of a Deployment. A paused Deployment counts as done, because it makes no progress until
// it is unpaused.
func RolloutOf(object *unstructured.Unstructured) (Rollout, error) {
	deployment, err := As[appsv1.Deployment](object)
	if err != nil {
		return Rollout{}, err
	}
	want, status := int32(1), deployment.Status
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	var rollout Rollout
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			rollout.Stuck = true
		}
	}
	switch {
	case deployment.Spec.Paused:
		rollout.Done = true
	case status.ObservedGeneration < deployment.Generation:
		rollout.Note = "its change has not been seen yet"
		rollout.Stuck = false
	case status.UpdatedReplicas < want:
		rollout.Note = fmt.Sprintf("%d of %d new pods made", status.UpdatedReplicas, want)
	case status.Replicas > status.UpdatedReplicas:
		rollout.Note = fmt.Sprintf("%d old pods still there", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < want:
		rollout.Note = fmt.Sprintf("%d of %d pods ready", status.AvailableReplicas, want)
	case status.Replicas > want:
		rollout.Note = fmt.Sprintf("%d pods too many", status.Replicas-want)
	default:
		rollout.Done, rollout.Stuck = true, false
	}
	return rollout, nil
}

// As returns a typed copy of an object for reading. To write, use the object that was read, because it may have fields that the type
// lacks.
func As[T any](object *unstructured.Unstructured) (*T, error) {
	copied := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, copied); err != nil {
		return nil, fmt.Errorf("%s: decode: %w", Subject(object), err)
	}
	return copied, nil
}

// Leader says when the pods of a controller last elected their leader, and when that leader was last alive. Both are the
// zero time if there is none.
type Leader struct {
	Acquired, Renewed time.Time
}

// LeaderOf reads the Lease by which the pods of a controller elect their leader.
func (c *Client) LeaderOf(ctx context.Context, namespace, name string) (Leader, error) {
	object, err := c.Get(ctx, Lease, namespace, name)
	if err != nil || object == nil {
		return Leader{}, err
	}
	lease, err := As[coordinationv1.Lease](object)
	if err != nil {
		return Leader{}, err
	}
	var leader Leader
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return leader, nil // the last leader has stepped down
	}
	if lease.Spec.AcquireTime != nil {
		leader.Acquired = lease.Spec.AcquireTime.Time
	}
	if lease.Spec.RenewTime != nil {
		leader.Renewed = lease.Spec.RenewTime.Time
	}
	return leader, nil
}
