// Package drifts compares what Sawhorse predicts about nodes with what Karpenter does to them. It takes half an hour,
// so only `make e2e NAME=Drifts` runs it.
package drifts

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var pool = stage.New("../../..", "e2e-drifts")

func TestMain(m *testing.M) { pool.Main(m) }

// Makes one change for each kind of field, and compares the predicted effect on the nodes with what Karpenter does to
// each of them.
func TestDrifts(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Drifts) }
