// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
)

func main() {
	handler.StartStep("nodepools", func(env handler.Env) (handler.StepFunc, error) {
		drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
		if err != nil {
			return nil, err
		}
		step := &nodepools.Step{
			Connect: k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)), EC2: ec2.NewFromConfig(env.AWS), Baselines: env.Store,
			Drain: time.Duration(drain) * time.Second, Now: env.Now,
		}
		return step.Run, nil
	})
}
