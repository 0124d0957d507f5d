// Function controller installs, upgrades and removes Karpenter's Helm releases.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/steps/controller"
)

func main() {
	handler.StartStep("controller", func(env handler.Env) (handler.StepFunc, error) {
		principal, err := env.Setting("SAWHORSE_PRINCIPAL")
		clusters := eks.NewFromConfig(env.AWS)
		self := admin.Function{Name: "controller", Principal: principal, EKS: clusters, Now: env.Now}
		return controller.New(k8s.Dial(env.AWS, clusters), env.Store, self, env.Now).Run, err
	})
}
