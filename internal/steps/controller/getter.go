package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// getter gives Helm the cluster of a rest.Config, where the helm command would read a kubeconfig. It discovers the
// cluster's kinds only once.
type getter struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
}

func newGetter(config *rest.Config) (*getter, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("helm: discovery: %w", err)
	}
	return &getter{config: config, discovery: memory.NewMemCacheClient(client)}, nil
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewDeferredDiscoveryRESTMapper(g.discovery), nil
}

// ToRawKubeConfigLoader returns a configuration from which Helm reads the default namespace.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	const context = "cluster"
	config := clientcmdapi.NewConfig()
	config.Contexts[context] = &clientcmdapi.Context{Namespace: ownership.Namespace}
	config.CurrentContext = context
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{})
}
