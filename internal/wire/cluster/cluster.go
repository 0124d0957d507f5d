// Package cluster makes the steps that have a client of the cluster, from the environment of a function. An audit runs them all with one
// connection, so each takes the Connector that opens the plan's cluster.
package cluster

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/access"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/steps/autoscaler"
	"github.com/sawhorse-io/sawhorse/internal/steps/capacity"
	"github.com/sawhorse-io/sawhorse/internal/steps/controller"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
	"github.com/sawhorse-io/sawhorse/internal/steps/placement"
	"github.com/sawhorse-io/sawhorse/internal/steps/proof"
)

// Dial returns what opens a plan's cluster.
func Dial(env handler.Env) k8s.Connector { return k8s.Dial(env.AWS, eks.NewFromConfig(env.AWS)) }

// Connected returns the constructor of a step that has its own connection to the cluster.
func Connected(build func(handler.Env, k8s.Connector) (outcome.StepFunc, error)) func(handler.Env) (outcome.StepFunc, error) {
	return func(env handler.Env) (outcome.StepFunc, error) { return build(env, Dial(env)) }
}

// Access returns the step access.
func Access(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	text, err := env.Setting("SAWHORSE_PRINCIPALS")
	if err != nil {
		return nil, err
	}
	principals := map[string]access.Principal{}
	if err := json.Unmarshal([]byte(text), &principals); err != nil {
		return nil, fmt.Errorf("function %s: SAWHORSE_PRINCIPALS: %w", env.Function, err)
	}
	step := &access.Step{
		EKS: eks.NewFromConfig(env.AWS), Connect: dial, Principals: principals, Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}

// Autoscaler returns the step autoscaler.
func Autoscaler(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	step := &autoscaler.Step{
		Connect: dial, AutoScaling: autoscaling.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(),
		Checkpoints: env.Store.Checkpoints(), Contests: env.Store, Now: env.Now,
	}
	return step.Run, nil
}

// Controller returns the step controller.
func Controller(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	principal, err := env.Setting("SAWHORSE_PRINCIPAL")
	self := admin.Function{Name: "controller", Principal: principal, EKS: eks.NewFromConfig(env.AWS), Now: env.Now}
	step := &controller.Step{
		Connect: dial, Checkpoints: env.Store.Checkpoints(), Contests: env.Store, Versions: env.Store, Self: self, Now: env.Now,
	}
	return step.Run, err
}

// NodeGroups returns the step nodegroups, with its parts placement and capacity.
func NodeGroups(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
	if err != nil {
		return nil, err
	}
	client, baselines, checkpoints := eks.NewFromConfig(env.AWS), env.Store.Baselines(), env.Store.Checkpoints()
	step := &nodegroups.Step{
		EKS: client, AutoScaling: autoscaling.NewFromConfig(env.AWS), Connect: dial, Baselines: baselines, Checkpoints: checkpoints,
		Contests: env.Store, Written: env.Store,
		Drain: time.Duration(drain) * time.Second, Now: env.Now,
		Placement: (&placement.Step{Connect: dial, Baselines: baselines, Contests: env.Store, Now: env.Now}).Run,
		Capacity:  (&capacity.Step{EKS: client, Connect: dial, Baselines: baselines, Checkpoints: checkpoints}).Run,
	}
	return step.Run, nil
}

// NodePools returns the step nodepools.
func NodePools(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &nodepools.Step{
		Connect: dial, EC2: ec2.NewFromConfig(env.AWS), Checkpoints: env.Store.Checkpoints(), Contests: env.Store,
		Drain: time.Duration(drain) * time.Second, Now: env.Now,
	}
	return step.Run, nil
}

// Proof returns the step proof.
func Proof(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	limit, err := env.Number("SAWHORSE_PROOF_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &proof.Step{
		Connect: dial, EKS: eks.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(), Checkpoints: env.Store.Checkpoints(),
		Limit: time.Duration(limit) * time.Second, Now: env.Now,
	}
	return step.Run, nil
}
