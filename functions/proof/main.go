// Function proof waits for the first nodes of pools, before capacity is handed over to them.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
	"github.com/sawhorse-io/sawhorse/internal/wire/proof"
)

func main() {
	handler.StartStep("proof", cluster.Connected(proof.New))
}
