// Function infrastructure creates and removes Karpenter's roles, the controller's credentials and the nodes' access
// entry.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/infrastructure"
)

func main() {
	handler.StartStep("infrastructure", infrastructure.New)
}
