// Package e2e runs the end-to-end scripts of `make test` that show what a rack does. Run one script by name, as in
// `make e2e NAME=Burst`. The other packages under sandbox/e2e hold the longer scripts.
package e2e

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
)

var pool = stage.New("../..", "e2e")

func TestMain(m *testing.M) { pool.Main(m) }
