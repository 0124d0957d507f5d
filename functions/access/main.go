// Function access gives Sawhorse's functions access to the cluster, and takes it away.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/access"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
)

func main() {
	handler.StartStep("access", cluster.Connected(access.New))
}
