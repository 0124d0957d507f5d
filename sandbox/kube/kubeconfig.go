package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// clientConfig is a user's configuration for the API server. The rate limits are far higher than the sandbox needs,
// because client-go's defaults are made for a shared cluster and would slow down the start.
func clientConfig(endpoint string, ca []byte, token string) *rest.Config {
	return &rest.Config{
		Host:            endpoint,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             500,
		Burst:           1000,
	}
}

// kubeconfig returns a client configuration as a file for kubectl and for the control plane's own components.
func kubeconfig(config *rest.Config, user string) ([]byte, error) {
	file := api.NewConfig()
	file.Clusters[clusterName] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[user] = &api.AuthInfo{Token: config.BearerToken}
	file.Contexts[clusterName] = &api.Context{Cluster: clusterName, AuthInfo: user}
	file.CurrentContext = clusterName
	text, err := clientcmd.Write(*file)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: encode: %w", user, err)
	}
	return text, nil
}

// webhookConfig returns the file that tells the API server where bearer tokens are reviewed.
func webhookConfig(url string) ([]byte, error) {
	file := api.NewConfig()
	file.Clusters["authenticator"] = &api.Cluster{Server: url}
	file.AuthInfos["apiserver"] = &api.AuthInfo{}
	file.Contexts["webhook"] = &api.Context{Cluster: "authenticator", AuthInfo: "apiserver"}
	file.CurrentContext = "webhook"
	text, err := clientcmd.Write(*file)
	if err != nil {
		return nil, fmt.Errorf("webhook configuration: encode: %w", err)
	}
	return text, nil
}
