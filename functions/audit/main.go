// Function audit compares a rack with its parameters, without changing anything: for the schedule, which passes over a rack
// in order, and at the beginning of a full pass.
package main

import (
	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/wire/audit"
)

func main() {
	handler.Start("audit", audit.New)
}
