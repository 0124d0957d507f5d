package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/admission"
	"github.com/sawhorse-io/sawhorse/sandbox/caller"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/images"
	"github.com/sawhorse-io/sawhorse/sandbox/kube"
	"github.com/sawhorse-io/sawhorse/sandbox/kubelet"
	"github.com/sawhorse-io/sawhorse/sandbox/nodegroups"
	"github.com/sawhorse-io/sawhorse/sandbox/process"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
)

// sandbox holds everything that runs: children, servers and loops.
type sandbox struct {
	layout
	report    *progress
	log       *slog.Logger
	processes *process.Group
	servers   []*http.Server
	loops     sync.WaitGroup
	endLoops  context.CancelFunc

	gateway         *url.URL
	front           *url.URL // the API server's address as EKS reports it
	ministack, moto int      // ports
	giveBack        func()   // releases the ports, which stay reserved over restarts
	cluster         *kube.Cluster
	faults          *fault.Injector
	functions       *caller.Functions
	lag             lag
	webhook         *url.URL // the pod identity webhook's
	nodes           *nodegroups.Controller
}

func newSandbox(l layout, report *progress, log *slog.Logger) *sandbox {
	return &sandbox{
		layout: l, report: report, log: log,
		processes: process.NewGroup(l.logs(), grace), endLoops: func() {}, giveBack: func() {},
	}
}

// start starts everything, the cluster and the AWS side concurrently, and seeds it. fail ends the sandbox when a part
// of this process fails later.
func (s *sandbox) start(ctx context.Context, fail context.CancelCauseFunc) error {
	var err error
	if s.lag, err = readLag(); err != nil {
		return err
	}
	s.report.say(s.lag.String())
	if err := s.prepare(fail); err != nil {
		return err
	}
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.startCluster(bothCtx) })
	both.Go(func() error {
		if err := s.startAWS(bothCtx); err != nil {
			return err
		}
		both.Go(func() error { return s.deploy(bothCtx) })
		return s.seedAWS(bothCtx)
	})
	if err := both.Wait(); err != nil {
		return err
	}
	if err := s.startLoops(ctx, fail); err != nil {
		return err
	}
	if err := seed.Cluster(ctx, s.cluster.Admin()); err != nil {
		return err
	}
	s.report.say("the cluster's Deployments are Available")
	return writeEnvironment(s.environment(), s.gateway.String(), s.cluster.Kubeconfig(), s.tools(), s.lag)
}

// prepare chooses the ports, writes the cluster's files and starts the servers of this process.
func (s *sandbox) prepare(fail context.CancelCauseFunc) error {
	gateway, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("gateway: listen: %w", err)
	}
	webhook, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("authenticator: listen: %w", err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("API front: listen: %w", err)
	}
	pods, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("pod identity webhook: listen: %w", err)
	}
	logs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("kubelet: listen: %w", err)
	}
	ports, giveBack, err := process.FreePorts(5)
	if err != nil {
		return err
	}
	s.giveBack = giveBack
	s.gateway = &url.URL{Scheme: "http", Host: gateway.Addr().String()}
	s.front = &url.URL{Scheme: "https", Host: front.Addr().String()}
	s.webhook = &url.URL{Scheme: "https", Host: pods.Addr().String(), Path: "/"}
	s.ministack, s.moto = ports[0], ports[1]
	s.cluster, err = kube.New(kube.Config{
		Binary: s.part("bin/cluster"), Dir: s.data("kube"), Processes: s.processes,
		Authenticator: "http://" + webhook.Addr().String() + "/",
		Ports:         kube.Ports{API: ports[2], Etcd: ports[3], EtcdPeer: ports[4]},
		KubeletPort:   logs.Addr().(*net.TCPAddr).Port,
	})
	if err != nil {
		return err
	}
	s.nodes = nodegroups.New(nodegroups.Config{
		Cluster: seed.ClusterName, Region: region, Client: s.cluster.Client(), Now: time.Now, Log: s.log,
		EKS: eks.NewFromConfig(s.awsConfig(local(s.ministack))),
		EC2: ec2.NewFromConfig(s.awsConfig(local(s.moto))),
	})
	s.prepareFaults()
	if front, err = s.secure(front); err != nil {
		return err
	}
	if pods, err = s.secure(pods); err != nil {
		return err
	}
	if logs, err = s.secure(logs); err != nil {
		return err
	}
	apiserver, err := s.apiFront()
	if err != nil {
		return err
	}
	s.serve("gateway", gateway, s.gatewayHandler(), fail)
	s.serve("authenticator", webhook, s.authenticator(), fail)
	s.serve("API front", front, apiserver, fail)
	s.serve("pod identity webhook", pods, s.identities(), fail)
	s.serve("kubelet", logs, kubelet.Logs(s.logs()), fail)
	return nil
}

func (s *sandbox) serve(name string, listener net.Listener, handler http.Handler, fail context.CancelCauseFunc) {
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("%s: serve: %w", name, err))
		}
	}()
}

func (s *sandbox) startCluster(ctx context.Context) error {
	if err := s.cluster.Start(ctx); err != nil {
		return err
	}
	s.report.say("Kubernetes answers")
	return nil
}

// startLimit is how long the emulators may take to start.
const startLimit = 5 * time.Minute

func (s *sandbox) startAWS(ctx context.Context) error {
	if err := images.Write(s.amis(), time.Now()); err != nil {
		return err
	}
	if err := s.processes.Start(s.layout.ministack(s.ministack, s.gateway.String(), s.lag)); err != nil {
		return err
	}
	if err := s.processes.Start(s.layout.moto(s.moto)); err != nil {
		return err
	}
	if err := s.processes.Start(s.layout.commands()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("it does not start within %s", startLimit))
	defer cancel()
	err := process.Until(ctx, "aws: wait until its socket is there", func() error {
		_, err := os.Stat(filepath.Join(s.tools(), socket))
		return err
	})
	if err != nil {
		return err
	}
	if err := answers(ctx, "ministack", s.ministack, "/_ministack/health"); err != nil {
		return err
	}
	if err := answers(ctx, "moto", s.moto, "/moto-api/data.json"); err != nil {
		return err
	}
	if err := s.seedMoto(ctx); err != nil {
		return err
	}
	s.report.say("AWS answers")
	return nil
}

func (s *sandbox) seedAWS(ctx context.Context) error {
	if err := seed.AWS(ctx, s.awsConfig(s.gateway), seed.ClusterName); err != nil {
		return err
	}
	s.report.say("the account has its EKS cluster")
	return nil
}

// awsConfig returns the configuration for this process's AWS calls. The loops bypass the gateway, so that its counts
// contain only the calls of others.
func (s *sandbox) awsConfig(endpoint *url.URL) aws.Config {
	return aws.Config{
		Region:       region,
		BaseEndpoint: aws.String(endpoint.String()),
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	}
}

// nodeInterval is the interval at which the node groups are reconciled. Each time costs several calls of MiniStack.
const nodeInterval = 1500 * time.Millisecond

func (s *sandbox) startLoops(ctx context.Context, fail context.CancelCauseFunc) error {
	ctx, s.endLoops = context.WithCancel(ctx)
	s.loops.Go(func() { s.nodes.Run(ctx, nodeInterval) })
	if err := admission.Register(ctx, s.cluster.Client(), s.webhook.String(), s.cluster.CA()); err != nil {
		return err
	}
	return s.startKubelet(ctx, fail)
}

// stop ends everything: the loops, then the children, then the servers that the children call.
func (s *sandbox) stop() {
	s.endLoops()
	s.loops.Wait()
	s.processes.Stop()
	s.giveBack()
	for _, server := range s.servers {
		_ = server.Close()
	}
}
