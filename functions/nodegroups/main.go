// Function nodegroups labels the system node groups, replaces those with SPOT capacity, scales the build node groups to
// zero and back, provides capacity for the pods of Karpenter's nodes, and pins system Deployments.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodegroups"
)

func main() {
	handler.StartStep("nodegroups", cluster.Connected(nodegroups.New))
}
