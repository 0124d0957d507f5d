package nodepools

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// settling is how long pods may wait for another node once the drain is over. A node of a group takes some minutes.
const settling = 10 * time.Minute

// displaced waits until the pods that were made since the removal began have a node. That there is room was an estimate:
// only the scheduler knows. After that time, and when forced, the removal goes on without them, and a warning names them.
func (r *run) displaced(ctx context.Context) error {
	if !r.begun.yes() || r.plan.Force.Has(events.ForceRoom) {
		return nil
	}
	var pods []string
	reason := ""
	err := r.client.Each(ctx, k8s.Pod, "", "", func(object *unstructured.Unstructured) error {
		pod, err := k8s.As[corev1.Pod](object)
		if err != nil {
			return err
		}
		if _, message := k8s.Unschedulable(pod); message != "" && pod.Status.Phase == corev1.PodPending &&
			pod.DeletionTimestamp == nil && !pod.CreationTimestamp.Time.Before(r.begun.Start) {
			pods, reason = append(pods, pod.Namespace+"/"+pod.Name), message
		}
		return nil
	})
	if err != nil || len(pods) == 0 {
		return err
	}
	if end := r.begun.Start.Add(r.Drain + grace + settling); r.Now().Before(end) {
		return outcome.Wait(poll, "%d pod(s) have no node since Karpenter's drain: %s (%s); waits for them until %s; "+
			"give the system node groups, or others, more nodes, or send Rack Reconcile Requested with \"force\": [\"room\"]",
			len(pods), some(pods), reason, end.UTC().Format(time.RFC3339))
	}
	r.progress.Happened("karpenter_enabled", "Karpenter's nodes are gone, and %d pod(s) still have no node: %s (%s). "+
		"Give the system node groups, or others, more nodes, or stop those pods.", len(pods), some(pods), reason)
	return nil
}
