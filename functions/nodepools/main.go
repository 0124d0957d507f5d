// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodepools"
)

func main() {
	handler.StartStep("nodepools", func(env handler.Env) (outcome.StepFunc, error) {
		return nodepools.New(env, k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)))
	})
}
