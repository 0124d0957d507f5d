// Function controller installs, upgrades and removes Karpenter's Helm releases.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/controller"
)

func main() {
	handler.StartStep("controller", func(env handler.Env) (handler.StepFunc, error) {
		return controller.New(k8s.Dial(env.AWS), env.Store, env.Now).Run, nil
	})
}
