// Function validate begins an iteration: it reads the rack's parameters and makes the plan, or says why it cannot.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/passes"
)

func main() {
	handler.Start("validate", passes.Validate)
}
