// Function network puts Karpenter's discovery tag on subnets and security groups.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/network"
)

func main() {
	handler.StartStep("network", network.New)
}
