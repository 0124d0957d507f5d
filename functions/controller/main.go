// Function controller installs, upgrades and removes Karpenter's CRDs and its controller.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
	"github.com/sawhorse-io/sawhorse/internal/wire/controller"
)

func main() {
	handler.StartStep("controller", cluster.Connected(controller.New))
}
