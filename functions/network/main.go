// Function network puts Karpenter's discovery tag on subnets and security groups.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/steps/network"
)

func main() {
	handler.StartStep("network", func(env handler.Env) (handler.StepFunc, error) {
		step := &network.Network{EC2: ec2.NewFromConfig(env.AWS), Baselines: env.Store}
		return step.Run, nil
	})
}
