// Package kube starts the sandbox's Kubernetes. It generates certificates and kubeconfigs, then starts etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok as child processes of one binary, and creates the
// RBAC rules that stand for EKS's access policies.
package kube

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/sawhorse-io/sawhorse/sandbox/process"
)

// clusterName is the name of cluster and context in the kubeconfigs.
const clusterName = "sandbox"

// Issuer is the issuer in service account tokens. It has the form of EKS's issuers, so that IAM's OIDC providers and
// trust policies look as they do on EKS. Nothing ever fetches it.
const Issuer = "https://oidc.eks.us-east-1.amazonaws.com/id/5A3D8083000000000000000000000DE0"

// Config has the settings of a cluster.
type Config struct {
	Binary        string // the cluster binary
	Dir           string // folder for data, certificates and kubeconfigs; empty or absent
	Authenticator string // URL of the token review webhook
	Ports         Ports
	KubeletPort   int // where the API server finds the kubelet of every node, on the loopback address
	Processes     *process.Group
}

// Ports are the cluster's ports on the loopback address.
type Ports struct{ API, Etcd, EtcdPeer int }

// Cluster is a cluster whose files have been written and whose processes Start starts.
type Cluster struct {
	config     Config
	admin      *rest.Config
	client     kubernetes.Interface
	restarting atomic.Bool
}

// New generates the certificates and writes the files. It starts nothing.
func New(config Config) (*Cluster, error) {
	c := &Cluster{config: config}
	if err := c.writeFiles(); err != nil {
		return nil, fmt.Errorf("cluster: write files: %w", err)
	}
	var err error
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return nil, fmt.Errorf("cluster: make client: %w", err)
	}
	return c, nil
}

// Endpoint returns the API server's URL.
func (c *Cluster) Endpoint() string { return fmt.Sprintf("https://127.0.0.1:%d", c.config.Ports.API) }

// etcd returns etcd's URL.
func (c *Cluster) etcd() string { return fmt.Sprintf("http://127.0.0.1:%d", c.config.Ports.Etcd) }

// CA returns the PEM certificate of the authority that signed the API server's certificate.
func (c *Cluster) CA() []byte { return c.admin.CAData }

// Certificate returns the API server's certificate, for a proxy in front of it.
func (c *Cluster) Certificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(c.file("server.crt"), c.file("server.key"))
}

// Admin returns a client configuration with all permissions.
func (c *Cluster) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// Client returns a client with all permissions.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.file("admin.kubeconfig") }

func (c *Cluster) file(name string) string { return filepath.Join(c.config.Dir, name) }

// users are the kubeconfigs' users, as the API server's token file has them: name, UID, group. kwok acts for every node and pod, so it is
// an administrator.
var users = map[string]string{
	"admin":              "sandbox-admin,admin,system:masters",
	"kwok":               "kwok,kwok,system:masters",
	"controller-manager": "system:kube-controller-manager,manager",
	"scheduler":          "system:kube-scheduler,scheduler",
}

// writeFiles writes files that only their owner may read. All keys and tokens are generated at the start and deleted with the sandbox's
// data. The certificates are valid for a year.
func (c *Cluster) writeFiles() error {
	server, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(10, 100, 0, 1)}, []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	})
	if err != nil {
		return err
	}
	_, ca := pem.Decode(server) // what follows the server's own certificate
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	webhook, err := webhookConfig(c.config.Authenticator)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": ca, "server.crt": server, "server.key": key, "accounts.key": accounts, "webhook.kubeconfig": webhook,
	}
	for file, user := range users {
		config := clientConfig(c.Endpoint(), ca, rand.Text())
		if files[file+".kubeconfig"], err = kubeconfig(config, file); err != nil {
			return err
		}
		if file == "admin" {
			c.admin = config
		}
		files["tokens.csv"] = fmt.Appendln(files["tokens.csv"], config.BearerToken+","+user)
	}
	if err := os.MkdirAll(c.config.Dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Start starts the control plane and kwok. It returns when the API server is ready and the RBAC rules for the access
// policies exist.
func (c *Cluster) Start(ctx context.Context) error {
	for _, spec := range c.stores() {
		if err := c.config.Processes.Start(spec); err != nil {
			return err
		}
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	for _, spec := range c.controllers() {
		if err := c.config.Processes.Start(spec); err != nil {
			return err
		}
	}
	return grantAccessPolicies(ctx, c.client)
}

// Restarting reports whether the API server is being restarted. It accepts requests before it is ready, and rejects
// those for which it has not read the permissions yet. On EKS the load balancer keeps callers away until then.
func (c *Cluster) Restarting() bool { return c.restarting.Load() }

// RestartAPIServer restarts the API server, and returns when it is ready.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.restarting.Store(true)
	defer c.restarting.Store(false)
	if err := c.config.Processes.Restart("kube-apiserver"); err != nil {
		return err
	}
	return c.ready(ctx)
}

// ready waits until the API server reports that it is ready.
func (c *Cluster) ready(ctx context.Context) error {
	return process.Until(ctx, "kube-apiserver: wait until ready", func() error {
		_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).DoRaw(ctx)
		return err
	})
}
