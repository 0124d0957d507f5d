// Package admission is EKS's pod identity webhook. When a pod is created, it gives the containers the settings with
// which the AWS SDK gets credentials of the service account's role. The decision is final for the pod's life: a pod
// that is admitted before EKS knows the Pod Identity association, or before the webhook knows the annotation (IRSA),
// has no credentials, however often its containers restart.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
)

// RoleAnnotation is the annotation that names a service account's role (IRSA).
const RoleAnnotation = "eks.amazonaws.com/role-arn"

// Webhook answers AdmissionReviews of pods.
type Webhook struct {
	Client    kubernetes.Interface
	Cluster   string   // the EKS cluster's name: Pod Identity associations belong to a cluster
	Region    string   // the pods' default
	MiniStack *url.URL // it knows the associations, and decides when each takes effect
	Now       func() time.Time
	Log       *slog.Logger
}

// Register registers the webhook at an address with the API server for each new pod. authority is the PEM certificate
// of the webhook's certificate authority. If the webhook does not answer, the pod is admitted unchanged, as on EKS.
func Register(ctx context.Context, client kubernetes.Interface, address string, authority []byte) error {
	const name = "pod-identity-webhook"
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name:         "iam-for-pods.amazonaws.com",
			ClientConfig: registrationv1.WebhookClientConfig{URL: &address, CABundle: authority},
			Rules: []registrationv1.RuleWithOperations{
				{Operations: []registrationv1.OperationType{registrationv1.Create}, Rule: podRule},
			},
			FailurePolicy:           new(registrationv1.Ignore),
			SideEffects:             new(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds:          new(int32(5)),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("MutatingWebhookConfiguration %s: create: %w", name, err)
	}
	return nil
}

var podRule = registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}

// ServeHTTP answers one AdmissionReview.
func (w *Webhook) ServeHTTP(answer http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(answer, req.Body, 8<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(answer, "AdmissionReview: decode", http.StatusBadRequest)
		return
	}
	patch, err := w.patch(req.Context(), review.Request)
	if err != nil {
		w.Log.Error("pod identity webhook", "namespace", review.Request.Namespace, "error", err.Error())
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if patch != nil {
		review.Response.Patch, review.Response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	review.Request = nil
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(review)
}

// patch returns the JSON patch for a pod that gets credentials, nil for any other.
func (w *Webhook) patch(ctx context.Context, request *admissionv1.AdmissionRequest) ([]byte, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return nil, fmt.Errorf("pod: decode: %w", err)
	}
	account, err := w.Client.CoreV1().ServiceAccounts(request.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("service account %s/%s: read: %w", request.Namespace, pod.Spec.ServiceAccountName, err)
	}
	identity, err := w.identity(ctx, account)
	if err != nil || identity == nil {
		return nil, err
	}
	identity.inject(&pod.Spec, w.Region)
	return json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": pod.Spec}})
}

// identity returns the source of the credentials for the account's pods, nil if there is none. The association takes
// precedence over the annotation.
func (w *Webhook) identity(ctx context.Context, account *corev1.ServiceAccount) (*identity, error) {
	var answer struct{ Assigned bool }
	query := url.Values{"accessKeyId": {"test"}, "cluster": {w.Cluster}, "namespace": {account.Namespace}, "serviceAccount": {account.Name}}
	if err := w.ask(ctx, "/_sandbox/pod-identity", query, &answer); err != nil {
		return nil, err
	}
	role := account.Annotations[RoleAnnotation]
	if answer.Assigned {
		return &podIdentity, nil
	}
	if role == "" {
		return nil, nil
	}
	var delay struct{ Seconds float64 }
	query = url.Values{"kind": {"annotation"}, "resource": {account.Namespace + "/" + account.Name}}
	if err := w.ask(ctx, "/_sandbox/lag/delay", query, &delay); err != nil {
		return nil, err
	}
	if w.Now().Sub(written(account)).Seconds() < delay.Seconds {
		return nil, nil
	}
	return webIdentity(role), nil
}

// written returns when the account was last written, to the second.
func written(account *corev1.ServiceAccount) time.Time {
	last := account.CreationTimestamp.Time
	for _, fields := range account.ManagedFields {
		if fields.Time != nil && fields.Time.After(last) {
			last = fields.Time.Time
		}
	}
	return last
}

// ask calls an endpoint of MiniStack that is not part of AWS's API.
func (w *Webhook) ask(ctx context.Context, path string, query url.Values, into any) error {
	target := w.MiniStack.JoinPath(path)
	target.RawQuery = query.Encode()
	if err := ask.JSON(ctx, http.MethodGet, target.String(), nil, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
