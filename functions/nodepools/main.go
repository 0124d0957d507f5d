// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
)

func main() {
	handler.StartStep("nodepools", cluster.Connected(cluster.NodePools))
}
