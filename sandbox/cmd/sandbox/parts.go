package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sawhorse-io/sawhorse/sandbox/admission"
	"github.com/sawhorse-io/sawhorse/sandbox/apifront"
	"github.com/sawhorse-io/sawhorse/sandbox/authenticator"
	"github.com/sawhorse-io/sawhorse/sandbox/gateway"
	"github.com/sawhorse-io/sawhorse/sandbox/kube"
	"github.com/sawhorse-io/sawhorse/sandbox/kubelet"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
	"github.com/sawhorse-io/sawhorse/sandbox/standin"
)

// karpenter is the path of the real controller. The sandbox works without it, but then no Karpenter pod becomes Ready.
func (s *sandbox) karpenter() string { return s.part("bin/karpenter") }

// repository is the repository of the controller's images in Karpenter's chart.
const repository = "public.ecr.aws/karpenter/controller"

// images returns the controller's images that can be pulled. Those of other versions than the default are there if
// `make upgrades` has built them. 1.15.0 stands for 1.15.1 too: a module that 1.15.1 is made of cannot be had.
func (s *sandbox) images() map[string]string {
	return map[string]string{
		repository + ":1.8.6":  s.part("bin/karpenter-1.8.6"),
		repository + ":1.10.0": s.karpenter(),
		repository + ":1.12.1": s.part("bin/karpenter-1.12.1"),
		repository + ":1.14.3": s.part("bin/karpenter-1.14.3"),
		repository + ":1.15.0": s.part("bin/karpenter-1.15.0"),
		repository + ":1.15.1": s.part("bin/karpenter-1.15.0"),
	}
}

func (s *sandbox) gatewayHandler() http.Handler {
	return gateway.New(gateway.Config{
		MiniStack: local(s.ministack), Moto: local(s.moto), Account: account, Region: region,
		Cluster: func(name string) gateway.Cluster {
			endpoint := s.front
			if name != seed.ClusterName {
				endpoint = endpoint.JoinPath(standin.Prefix, name)
			}
			return gateway.Cluster{Endpoint: endpoint.String(), CA: s.cluster.CA(), OIDCIssuer: kube.Issuer}
		},
		Instances: s.nodes,
		Prices:    sync.OnceValues(s.prices),
		// In moto's own folder, so that another version of moto starts with an empty one.
		Catalogue: s.part("venv/moto-catalogue"),
		Faults:    s.faults, Function: s.functions.Of,
		Age: s.cluster.Age, Reserved: s.cluster.Reserved,
	})
}

// prices returns the prices that the controller was built with.
func (s *sandbox) prices() (map[string]float64, error) {
	text, err := exec.Command(s.karpenter(), "prices").Output()
	if err != nil {
		return nil, fmt.Errorf("karpenter: print prices: %w", err)
	}
	var prices map[string]float64
	if err := json.Unmarshal(text, &prices); err != nil {
		return nil, fmt.Errorf("karpenter: decode prices: %w", err)
	}
	return prices, nil
}

func (s *sandbox) authenticator() http.Handler {
	return s.authenticatorOf(seed.ClusterName, func(ctx context.Context) (map[string]string, error) {
		found, err := s.cluster.Client().CoreV1().ConfigMaps("kube-system").Get(ctx, "aws-auth", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return found.Data, nil
	})
}

// authenticatorOf returns a cluster's authenticator.
func (s *sandbox) authenticatorOf(cluster string, awsAuth func(context.Context) (map[string]string, error)) *authenticator.Authenticator {
	return authenticator.New(authenticator.Config{
		Cluster: cluster, MiniStack: local(s.ministack), Hosts: []string{s.gateway.Host}, Now: time.Now, Log: s.log, AWSAuth: awsAuth,
	})
}

// standIns returns the API servers of all clusters except the one that the sandbox runs.
func (s *sandbox) standIns() http.Handler {
	return standin.New(standin.Config{
		Objects: seed.StandIn, Now: time.Now,
		Review: func(ctx context.Context, cluster, token string,
			awsAuth func() map[string]string) (authentication.TokenReviewStatus, error) {
			data := func(context.Context) (map[string]string, error) { return awsAuth(), nil }
			return s.authenticatorOf(cluster, data).Review(ctx, token)
		},
		Front: func(next http.Handler) http.Handler { return apifront.Counted(next, s.functions.Of, s.faults) },
	})
}

// identities returns the webhook that gives pods their AWS credentials.
func (s *sandbox) identities() http.Handler {
	return &admission.Webhook{
		Client: s.cluster.Client(), Cluster: seed.ClusterName, Region: region, MiniStack: local(s.ministack), Now: time.Now, Log: s.log,
	}
}

// startKubelet runs the pods of the Karpenter Deployment until the context ends.
func (s *sandbox) startKubelet(ctx context.Context, fail context.CancelCauseFunc) error {
	if _, err := os.Stat(s.karpenter()); err != nil {
		s.log.Warn("there is no Karpenter to run", "error", err.Error())
		return nil
	}
	if err := os.MkdirAll(s.data("kubelet"), 0o700); err != nil {
		return fmt.Errorf("kubelet: create folder: %w", err)
	}
	s.loops.Go(func() {
		err := kubelet.Run(ctx, kubelet.Config{
			Kubernetes: s.cluster.Admin(), Cluster: seed.ClusterName, Region: region,
			Gateway: s.gateway.String(), MiniStack: local(s.ministack).String(),
			Images: s.images(), Dir: s.data("kubelet"), Logs: s.logs(), Log: s.log,
		})
		if err != nil && ctx.Err() == nil {
			fail(err)
		}
	})
	return nil
}
