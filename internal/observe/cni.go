package observe

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// CNI observes where the pods of the VPC CNI get their credentials. A role that the service account has counts only for
// the pods that EKS's webhook has given its credentials, which it does when a pod is admitted; and what a pod was given
// counts only as long as the service account has the role.
func CNI(ctx context.Context, associations eks.ListPodIdentityAssociationsAPIClient, client *k8s.Client, cluster string) (
	found plan.CNI, err error,
) {
	daemons, err := client.Get(ctx, k8s.DaemonSet, ownership.Namespace, ownership.CNI)
	if err != nil || daemons == nil {
		return found, err
	}
	account, err := client.Get(ctx, k8s.ServiceAccount, ownership.Namespace, ownership.CNI)
	if err != nil {
		return found, err
	}
	sources := map[string]bool{}
	if account != nil {
		sources[ownership.WebTokenVariable] = account.GetAnnotations()[ownership.AnnotationRole] != ""
	}
	if sources[ownership.PodIdentityVariable], err = Associated(ctx, associations, cluster, ownership.CNI); err != nil {
		return found, err
	}
	selector, err := k8s.Selector(daemons)
	if err != nil {
		return found, err
	}
	found.OwnRole = sources[ownership.WebTokenVariable] || sources[ownership.PodIdentityVariable]
	err = client.Each(ctx, k8s.Pod, ownership.Namespace, selector, func(object *unstructured.Unstructured) error {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
			return fmt.Errorf("%s: decode: %w", k8s.Subject(object), err)
		}
		if k8s.Ended(pod.Status.Phase) {
			return nil
		}
		found.Pods++
		if !carries(&pod, sources) {
			found.Lacking++
		}
		return nil
	})
	return found, err
}

// carries reports whether the CNI's container has a variable of a source of credentials that the service account has.
func carries(pod *corev1.Pod, sources map[string]bool) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == ownership.CNI && slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return sources[v.Name] && v.Value != "" })
	})
}

// Associated reports whether a service account in Karpenter's namespace has a Pod Identity association.
func Associated(ctx context.Context, associations eks.ListPodIdentityAssociationsAPIClient, cluster, account string) (bool, error) {
	pages := eks.NewListPodIdentityAssociationsPaginator(associations, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &cluster, Namespace: new(ownership.Namespace), ServiceAccount: &account,
	})
	found := false
	err := EachPage(ctx, pages, func(page *eks.ListPodIdentityAssociationsOutput) {
		found = found || slices.ContainsFunc(page.Associations, func(a types.PodIdentityAssociationSummary) bool {
			return aws.ToString(a.Namespace) == ownership.Namespace && aws.ToString(a.ServiceAccount) == account
		})
	})
	if err != nil {
		return false, fmt.Errorf("pod identity associations of cluster %s: list: %w", cluster, err)
	}
	return found, nil
}
