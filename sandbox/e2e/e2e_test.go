// Package e2e plays the end-to-end scripts of package story that show what a rack does: those of make test, with package failures.
// Each can be run by name: make e2e NAME=Burst. The longer ones are in packages changes and life.
package e2e

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
)

var sandbox = stage.New("../..", "e2e")

func TestMain(m *testing.M) { sandbox.Main(m) }
