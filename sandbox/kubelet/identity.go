package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/sawhorse-io/sawhorse/sandbox/admission"
	"github.com/sawhorse-io/sawhorse/sandbox/ask"
)

// identify translates the settings from the admission webhook into ones that the pod's process can use on this machine:
// the address of the agent here, and files instead of mounts. A pod without such settings gets none.
func (w *worker) identify(ctx context.Context) error {
	if w.identity != nil {
		return nil
	}
	given := map[string]bool{}
	for _, variable := range w.container().Env {
		given[variable.Name] = true
	}
	switch {
	case given[admission.CredentialsURL]:
		file := filepath.Join(w.folder(), "pod-identity-token")
		w.identity = []string{admission.CredentialsURL + "=" + w.agent.url, admission.TokenFile + "=" + file}
		return write(file, w.agent.admit(w.pod.Namespace, w.pod.Spec.ServiceAccountName))
	case given[admission.WebTokenFile]:
		token, err := w.token(ctx, "sts.amazonaws.com")
		if err != nil {
			return err
		}
		file := filepath.Join(w.folder(), "web-identity-token")
		// The Go SDK exchanges the token for credentials before it reads AWS_ENDPOINT_URL. It reads STS's own variable
		// in time.
		w.identity = []string{admission.WebTokenFile + "=" + file, "AWS_ENDPOINT_URL_STS=" + w.Gateway}
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

// credentials asks MiniStack for the Pod Identity credentials of the service account. There are none without an
// association or the agent add-on.
func (k *kubelet) credentials(ctx context.Context, namespace, account string) (map[string]string, error) {
	query := url.Values{"accessKeyId": {"test"}, "cluster": {k.Cluster}, "namespace": {namespace}, "serviceAccount": {account}}
	answer := map[string]string{}
	if err := ask.JSON(ctx, http.MethodGet, k.MiniStack+"/_sandbox/pod-credentials?"+query.Encode(), nil, &answer); err != nil {
		return nil, fmt.Errorf("pod identity: %w", err)
	}
	return answer, nil
}
