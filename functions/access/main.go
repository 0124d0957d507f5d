// Function access gives Sawhorse's functions access to the cluster, and takes it away.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/access"
)

func main() {
	handler.StartStep("access", func(env handler.Env) (outcome.StepFunc, error) {
		return access.New(env, k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)))
	})
}
