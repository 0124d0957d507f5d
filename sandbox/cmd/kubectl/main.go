// Command kubectl is Kubernetes' own. It is not a part of the command cluster, which takes twice as long to start.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand())) }
