package k8s

import (
	"context"
	"encoding/json"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Evict evicts a pod, so that PodDisruptionBudgets apply. It returns false if a budget does not permit the eviction
// now. A pod that no longer exists, or was replaced by one of the same name, counts as evicted.
func (c *Client) Evict(ctx context.Context, pod *unstructured.Unstructured) (bool, error) {
	eviction := policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace()},
	}
	if uid := pod.GetUID(); uid != "" {
		eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	}
	err := c.post(ctx, eviction, "api/v1/namespaces", pod.GetNamespace(), "pods", pod.GetName(), "eviction")
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return true, nil
	case apierrors.IsTooManyRequests(err):
		return false, nil
	default:
		return false, fmt.Errorf("%s: evict: %w", Subject(pod), err)
	}
}

// post sends one request without retries. The dynamic client would sleep for the time in Retry-After, which is 10 s for
// a new budget.
func (c *Client) post(ctx context.Context, value any, path ...string) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	client, err := c.plain()
	if err != nil {
		return err
	}
	return client.Post().AbsPath(path...).SetHeader("Content-Type", "application/json").Body(body).MaxRetries(0).Do(ctx).Error()
}

// plain returns a client for requests that are not about one object.
func (c *Client) plain() (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned) // the answer is a Status; client-go's scheme of all kinds takes megabytes
	config := rest.CopyConfig(c.config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}
