// Package life runs the longer end-to-end scripts: Karpenter is turned on and off, settings change, nodes come and go. Run all
// of them with `make life`, or one by name, as in `make e2e NAME=Pods`.
package life

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
)

var pool = stage.New("../../..", "e2e-life")

func TestMain(m *testing.M) { pool.Main(m) }
