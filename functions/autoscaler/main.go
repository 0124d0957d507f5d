// Function autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/autoscaler"
)

func main() {
	handler.StartStep("autoscaler", func(env handler.Env) (handler.StepFunc, error) {
		return autoscaler.New(k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)), env.Store, autoscaling.NewFromConfig(env.AWS), env.Now).Run, nil
	})
}
