package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roleAnnotation is how IRSA names a service account's role.
const roleAnnotation = "eks.amazonaws.com/role-arn"

// identify decides, once a pod, where its AWS credentials come from. On EKS a webhook decides it when the pod is made:
// an association or annotation that comes later does not reach the pod. The association wins over the annotation.
func (w *worker) identify(ctx context.Context) error {
	if w.identity != nil {
		return nil
	}
	account, err := w.client.CoreV1().ServiceAccounts(w.pod.Namespace).Get(ctx, w.pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("service account %s: read: %w", w.pod.Spec.ServiceAccountName, err)
	}
	answer, err := w.credentials(ctx, account.Namespace, account.Name)
	if err != nil {
		return err
	}
	role := account.Annotations[roleAnnotation]
	switch {
	case len(answer) > 0:
		file := filepath.Join(w.folder(), "pod-identity-token")
		w.identity = []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=" + w.agent.url, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=" + file}
		return write(file, w.agent.admit(account.Namespace, account.Name))
	case role != "":
		token, err := w.token(ctx, "sts.amazonaws.com")
		if err != nil {
			return err
		}
		file := filepath.Join(w.folder(), "web-identity-token")
		// The Go SDK trades the token for credentials before it reads AWS_ENDPOINT_URL; STS's own variable it reads in time.
		w.identity = []string{"AWS_ROLE_ARN=" + role, "AWS_WEB_IDENTITY_TOKEN_FILE=" + file, "AWS_ENDPOINT_URL_STS=" + w.Gateway}
		return write(file, token)
	}
	w.identity = []string{}
	return nil
}

func write(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("token: write: %w", err)
	}
	return nil
}

// credentials asks MiniStack what Pod Identity gives the service account: nothing without association or agent add-on.
func (k *kubelet) credentials(ctx context.Context, namespace, account string) (map[string]string, error) {
	query := url.Values{"accessKeyId": {"test"}, "cluster": {k.Cluster}, "namespace": {namespace}, "serviceAccount": {account}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.MiniStack+"/_sandbox/pod-credentials?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("pod identity: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("pod identity: ask: %w", err)
	}
	defer response.Body.Close()
	answer := map[string]string{}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("pod identity: ask: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("pod identity: read answer: %w", err)
	}
	return answer, nil
}
