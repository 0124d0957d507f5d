// Package cluster connects steps with the cluster, from the environment of a function.
package cluster

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Dial returns what opens a plan's cluster.
func Dial(env handler.Env) k8s.Connector { return k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)) }

// Connected returns the constructor of a step that has its own connection to the cluster.
func Connected(build func(handler.Env, k8s.Connector) (outcome.StepFunc, error)) func(handler.Env) (outcome.StepFunc, error) {
	return func(env handler.Env) (outcome.StepFunc, error) { return build(env, Dial(env)) }
}
