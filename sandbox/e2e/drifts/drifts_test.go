// Package drifts holds what Sawhorse says of nodes against what Karpenter makes of them. It takes half an hour, so that it is part of no other
// command than make e2e NAME=Drifts.
package drifts

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-drifts")

func TestMain(m *testing.M) { sandbox.Main(m) }

// One change for each kind of field: what is said to become of the nodes, and what Karpenter makes of each of them.
func TestDrifts(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Drifts)
}
