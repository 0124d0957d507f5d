// Command cluster is the sandbox's Kubernetes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok's
// node and pod controllers, and kubectl, built from their own modules into one binary. The component is chosen by the
// first argument, or by the name of the binary, so a link named kubectl works as kubectl. All other arguments are
// passed on unchanged.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	_ "time/tzdata"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
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
	"kubectl":                 func() int { return cli.Run(kubectl.NewDefaultKubectlCommand()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, ok := components[name]; !ok && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run, ok := components[name]
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
