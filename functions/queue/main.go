// Function queue creates, repairs and removes the interruption queue and its EventBridge rule.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/queue"
)

func main() {
	handler.StartStep("queue", queue.New)
}
