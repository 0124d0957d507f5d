// Function autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/autoscaler"
)

func main() {
	handler.StartStep("autoscaler", func(env handler.Env) (outcome.StepFunc, error) {
		return autoscaler.New(env, k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)))
	})
}
