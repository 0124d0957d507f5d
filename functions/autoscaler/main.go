// Function autoscaler hands scaling over from Cluster Autoscaler to Karpenter, and back.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/autoscaler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
)

func main() {
	handler.StartStep("autoscaler", cluster.Connected(autoscaler.New))
}
