// Function queue creates, repairs and removes the interruption queue and its EventBridge rule.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/wire/queue"
)

func main() {
	handler.StartStep("queue", func(env handler.Env) (outcome.StepFunc, error) { return queue.New(env) })
}
