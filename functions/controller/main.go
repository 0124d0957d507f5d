// Function controller installs, upgrades and removes Karpenter's Helm releases.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/controller"
)

func main() {
	handler.StartStep("controller", func(env handler.Env) (outcome.StepFunc, error) {
		return controller.New(env, k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)))
	})
}
