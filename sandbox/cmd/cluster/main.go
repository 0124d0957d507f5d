// Command cluster is the sandbox's Kubernetes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok's
// node and pod controllers, built from their own modules into one binary. The first argument chooses the component. All other
// arguments are passed on unchanged.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	_ "time/tzdata"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func() int{
	"etcd":                    runEtcd,
	"kwok":                    runKwok,
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
}

func main() {
	if len(os.Args) > 1 {
		os.Args = os.Args[1:]
	}
	run, ok := components[os.Args[0]]
	if !ok {
		var names []string
		for n := range components {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "usage: cluster %s ...\n", strings.Join(names, "|"))
		os.Exit(2)
	}
	os.Exit(run())
}

// fail reports why a component could not start.
func fail(component string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", component, err)
	return 1
}
