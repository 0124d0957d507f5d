package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// again is the minimum time between two deletions of pods. EKS may take longer to learn of an association than the step
// infrastructure waits. If EKS's webhook never adds the credentials, the step's deadline ends the wait.
const again = time.Minute

// admitAgain deletes the controller's pods that were admitted without credentials. A restart keeps a pod's
// specification, so such a pod would use the node's role and fail for ever. The deletion is recorded in the Deployment
// first, so that deletions stay rare even if a call is interrupted. It returns an outcome.NotYet that names the pods, until
// all have credentials.
func (r *run) admitAgain(ctx context.Context, deployment *unstructured.Unstructured) error {
	variable := ownership.WebTokenVariable
	if r.plan.Infrastructure.PodIdentity {
		variable = ownership.PodIdentityVariable
	}
	typed, err := k8s.As[appsv1.Deployment](deployment)
	if err != nil {
		return err
	}
	// EKS's webhook leaves a variable that the template has as it is, so in the pods it would prove nothing.
	if hasVariable(typed.Spec.Template.Spec, variable) {
		return outcome.Wait(poll, "%s: its template sets %s, which is EKS's to set; take it out: kubectl -n %s set env deployment/%s %s-",
			k8s.Subject(deployment), variable, ownership.Namespace, ownership.ReleaseController, variable)
	}
	pods, err := r.client.PodsOf(ctx, deployment)
	if err != nil {
		return err
	}
	var bare []corev1.Pod
	var subjects []string
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !hasVariable(pod.Spec, variable) {
			bare, subjects = append(bare, pod), append(subjects, "Pod/"+pod.Namespace+"/"+pod.Name)
		}
	}
	if len(bare) == 0 {
		return nil
	}
	waiting := outcome.Wait(poll, "%s: admitted without %s, so without credentials", strings.Join(subjects, ", "), variable)
	last, err := time.Parse(time.RFC3339, deployment.GetAnnotations()[ownership.AnnotationPodsDeleted])
	if err == nil && r.Now().Before(last.Add(again)) {
		return waiting
	}
	now := r.Now().UTC().Format(time.RFC3339)
	if err := r.client.Annotate(ctx, k8s.Deployment, deployment, ownership.AnnotationPodsDeleted, now); err != nil {
		return err
	}
	for i := range bare {
		if err := r.client.Delete(ctx, k8s.Pod, &bare[i]); err != nil {
			return err
		}
		r.progress.Changed("deleted", "%s", subjects[i])
	}
	r.progress.Happened("karpenter_enabled", "Pods of Karpenter's controller were admitted before EKS gave them credentials (%s "+
		"is missing), and were deleted so that others take their place: %s; if it happens again, look whether something replaces "+
		"the add-on eks-pod-identity-agent or, for IRSA, the annotation of the service account", variable, strings.Join(subjects, ", "))
	return waiting
}

// container is the name of the controller's container in the chart.
const container = "controller"

// hasVariable reports whether the controller's container has a variable. What other containers have is not its own.
func hasVariable(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return c.Name == container && slices.ContainsFunc(c.Env, func(variable corev1.EnvVar) bool { return variable.Name == name })
	})
}
