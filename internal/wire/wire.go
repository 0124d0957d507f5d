// Package wire makes the parts of a pass from the environment of a function: here those that need no client of the cluster, in
// package cluster the steps that have one, and in package passes what makes plans. The three are apart for the size of the functions,
// whose zips have about 4, 7 and 28 MB. Inside of a package, the linker leaves out what a function does not call.
package wire

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/steps/infrastructure"
	"github.com/sawhorse-io/sawhorse/internal/steps/network"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
)

// Infrastructure returns the step infrastructure.
func Infrastructure(env handler.Env) (outcome.StepFunc, error) {
	controller, err := env.Setting("SAWHORSE_CONTROLLER_BOUNDARY")
	if err != nil {
		return nil, err
	}
	nodes, err := env.Setting("SAWHORSE_NODE_BOUNDARY")
	if err != nil {
		return nil, err
	}
	delay, err := env.Number("SAWHORSE_POD_IDENTITY_DELAY_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &infrastructure.Step{
		IAM: iam.NewFromConfig(env.AWS), EKS: eks.NewFromConfig(env.AWS), ControllerBoundary: controller, NodeBoundary: nodes,
		Delay: time.Duration(delay) * time.Second, Deletions: env.Store, Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}

// Network returns the step network.
func Network(env handler.Env) (outcome.StepFunc, error) {
	return (&network.Step{EC2: ec2.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(), Written: env.Store, Now: env.Now}).Run, nil
}

// Queue returns the step queue.
func Queue(env handler.Env) (outcome.StepFunc, error) {
	step := &queue.Step{
		SQS: sqs.NewFromConfig(env.AWS), Rules: eventbridge.NewFromConfig(env.AWS), Deletions: env.Store, Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}

// Bus returns the events and the metrics of passes.
func Bus(env handler.Env) (report.Bus, error) {
	writer, err := env.Metrics()
	return report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}, err
}
