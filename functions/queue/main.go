// Function queue creates, repairs and removes the interruption queue and its EventBridge rule.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/steps/queue"
)

func main() {
	handler.StartStep("queue", func(env handler.Env) (handler.StepFunc, error) {
		step := &queue.Queue{SQS: sqs.NewFromConfig(env.AWS), Rules: eventbridge.NewFromConfig(env.AWS), Deletions: env.Store, Now: env.Now}
		return step.Run, nil
	})
}
