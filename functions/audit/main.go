// Function audit compares a rack with its parameters. For the schedule it changes nothing, and requests a pass if something
// is due. At the beginning of a full pass it also writes the pass's plan and records.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/audit"
)

func main() {
	handler.Start("audit", audit.New)
}
