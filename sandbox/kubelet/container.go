package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is longer than any sandbox lives, so no token needs renewal. Tokens are bound to their pod
// and expire with it.
const tokenLife = 30 * 24 * time.Hour

// container returns the container that the process stands for.
func (w *worker) container() *corev1.Container {
	all := w.pod.Spec.Containers
	return &all[max(0, slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == "controller" }))]
}

func (w *worker) folder() string { return filepath.Join(w.Dir, string(w.pod.UID)) }

// environment returns the whole environment of the process: the pod's own variables, and those of every pod on EKS. The
// ports of the probes are chosen by the sandbox, because two pods share one machine here.
func (w *worker) environment(ctx context.Context, metrics, probes int) ([]string, error) {
	node, err := w.client.CoreV1().Nodes().Get(ctx, w.pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("node %s: read: %w", w.pod.Spec.NodeName, err)
	}
	values, err := resolve(w.pod, w.container(), node.Status.Allocatable)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.folder(), 0o700); err != nil {
		return nil, fmt.Errorf("pod %s: make folder: %w", w.pod.Name, err)
	}
	kubeconfig, err := w.kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.identify(ctx); err != nil {
		return nil, err
	}
	if err := w.grantSimulation(ctx); err != nil {
		return nil, err
	}
	environment := []string{"HOSTNAME=" + w.pod.Name, "LEADER_ELECTION_NAMESPACE=" + w.pod.Namespace,
		"AWS_REGION=" + w.Region, "AWS_DEFAULT_REGION=" + w.Region}
	for name, value := range values {
		environment = append(environment, name+"="+value)
	}
	environment = append(environment, w.identity...)
	// If a name occurs twice, the last value counts.
	return append(environment, "KUBECONFIG="+kubeconfig, "AWS_ENDPOINT_URL="+w.Gateway, "AWS_EC2_METADATA_DISABLED=true",
		fmt.Sprintf("METRICS_PORT=%d", metrics), fmt.Sprintf("HEALTH_PROBE_PORT=%d", probes)), nil
}

// kubeconfig writes the file with which the process authenticates as its service account. In a cluster the mounted
// token does that.
func (w *worker) kubeconfig(ctx context.Context) (string, error) {
	path := filepath.Join(w.folder(), "kubeconfig")
	token, err := w.token(ctx, "")
	if err != nil {
		return "", err
	}
	server := rest.CopyConfig(w.Kubernetes)
	if err := rest.LoadTLSFiles(server); err != nil {
		return "", fmt.Errorf("kubeconfig: read authority: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "pod", Namespace: w.pod.Namespace}
	config.CurrentContext = "pod"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("kubeconfig: write: %w", err)
	}
	return path, nil
}

// token requests a token of the pod's service account. Without an audience, the token is for the API server itself.
func (w *worker) token(ctx context.Context, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLife.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.pod.Name, UID: w.pod.UID},
	}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	account := w.pod.Spec.ServiceAccountName
	answer, err := w.client.CoreV1().ServiceAccounts(w.pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("service account %s: request token: %w", account, err)
	}
	return answer.Status.Token, nil
}
