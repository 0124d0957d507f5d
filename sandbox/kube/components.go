package kube

import (
	"fmt"

	"github.com/sawhorse-io/sawhorse/sandbox/process"
)

// stores returns etcd and the API server. The API server retries until etcd answers, so both start at once.
func (c *Cluster) stores() []process.Spec {
	etcd := c.etcd()
	return []process.Spec{
		c.component("etcd",
			"--data-dir="+c.file("etcd"),
			"--listen-client-url="+etcd,
			fmt.Sprintf("--listen-peer-url=http://127.0.0.1:%d", c.config.Ports.EtcdPeer)),
		c.component("kube-apiserver",
			"--etcd-servers="+etcd,
			"--bind-address=127.0.0.1",
			// A loopback address cannot be an endpoint of the kubernetes Service. Nothing in the
			// sandbox uses that Service.
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none",
			fmt.Sprintf("--secure-port=%d", c.config.Ports.API),
			"--tls-cert-file="+c.file("server.crt"),
			"--tls-private-key-file="+c.file("server.key"),
			"--token-auth-file="+c.file("tokens.csv"),
			"--service-account-issuer="+Issuer,
			"--api-audiences="+Issuer+",https://kubernetes.default.svc",
			"--service-account-key-file="+c.file("accounts.key"),
			"--service-account-signing-key-file="+c.file("accounts.key"),
			"--service-cluster-ip-range=10.100.0.0/16",
			"--authorization-mode=Node,RBAC",
			"--kubelet-preferred-address-types=InternalIP",          // nothing resolves the names of nodes
			"--enable-admission-plugins=ExtendedResourceToleration", // as EKS does
			"--authentication-token-webhook-config-file="+c.file("webhook.kubeconfig"),
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl=1s", // so that a changed access entry takes effect at the next try
			"--allow-privileged=true"),
	}
}

// controllers returns the processes that need a ready API server. They serve nothing themselves: no port, no
// certificate, no leader election.
func (c *Cluster) controllers() []process.Spec {
	manager, scheduler := "--kubeconfig="+c.file("controller-manager.kubeconfig"), "--kubeconfig="+c.file("scheduler.kubeconfig")
	return []process.Spec{
		c.component("kube-controller-manager", manager,
			"--secure-port=0", "--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+c.file("accounts.key"),
			"--root-ca-file="+c.file("ca.crt")),
		c.component("kube-scheduler", scheduler,
			"--secure-port=0", "--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000"),
		c.component("kwok", "--kubeconfig="+c.file("kwok.kubeconfig"), fmt.Sprintf("--kubelet-port=%d", c.config.KubeletPort)),
	}
}

func (c *Cluster) component(name string, args ...string) process.Spec {
	return process.Spec{Name: name, Path: c.config.Binary, Args: append([]string{name}, args...), Dir: c.config.Dir}
}
