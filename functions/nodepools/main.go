// Function nodepools applies NodePools and EC2NodeClasses, or drains and deletes them.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
	"github.com/sawhorse-io/sawhorse/internal/wire/nodepools"
)

func main() {
	handler.StartStep("nodepools", cluster.Connected(nodepools.New))
}
