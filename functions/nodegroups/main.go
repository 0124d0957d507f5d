// Function nodegroups labels the system node groups, replaces those with SPOT capacity, scales the build node groups to
// zero and back, provides capacity for the pods of Karpenter's nodes, and pins system Deployments.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodegroups"
)

func main() {
	handler.StartStep("nodegroups", func(env handler.Env) (outcome.StepFunc, error) {
		return nodegroups.New(env, k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)))
	})
}
