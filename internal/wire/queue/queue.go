// Package queue makes the step queue from the environment of a function.
package queue

import (
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
)

// New returns the step.
func New(env handler.Env) (outcome.StepFunc, error) {
	step := &queue.Step{
		SQS: sqs.NewFromConfig(env.AWS), Rules: eventbridge.NewFromConfig(env.AWS), Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}
