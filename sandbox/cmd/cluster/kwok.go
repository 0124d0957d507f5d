package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/client"

	"github.com/sawhorse-io/sawhorse/sandbox/stages"
)

// runKwok simulates the kubelet of every node annotated kwok.x-k8s.io/node=fake, until it is told to stop.
func runKwok() int {
	flags := flag.NewFlagSet("kwok", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	kubeletPort := flags.Int("kubelet-port", 0, "where the kubelets of all nodes listen")
	_ = flags.Parse(os.Args[1:])

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := kwokConfig(*kubeconfig, *kubeletPort)
	if err != nil {
		return fail("kwok", err)
	}
	controller, err := controllers.NewController(config)
	if err != nil {
		return fail("kwok", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fail("kwok", err)
	}
	<-ctx.Done()
	return 0
}

func kwokConfig(kubeconfig string, kubeletPort int) (controllers.Config, error) {
	var none controllers.Config
	lifeCycles, err := stages.All()
	if err != nil {
		return none, err
	}
	clients, err := client.NewClientset("", kubeconfig)
	if err != nil {
		return none, err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return none, err
	}
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return none, err
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return none, err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return none, err
	}
	typed, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return none, err
	}
	typedKwok, err := versioned.NewForConfig(restConfig)
	if err != nil {
		return none, err
	}
	return controllers.Config{
		Clock:                             clock.RealClock{},
		DynamicClient:                     dynamicClient,
		RESTClient:                        restClient,
		RESTMapper:                        mapper,
		ImpersonatingDynamicClient:        clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:          clients.ToImpersonatingTypedClient(),
		TypedClient:                       typed,
		TypedKwokClient:                   typedKwok,
		ManageNodesWithAnnotationSelector: "kwok.x-k8s.io/node=fake",
		CIDR:                              "10.244.0.1/16",
		NodeIP:                            "127.0.0.1",
		NodePort:                          kubeletPort,
		PodPlayStageParallelism:           4,
		NodePlayStageParallelism:          4,
		LocalStages:                       lifeCycles,
		NodeLeaseDurationSeconds:          40,
		NodeLeaseParallelism:              4,
		PodsOnNodeSyncParallelism:         4,
		ID:                                "sandbox",
	}, nil
}
