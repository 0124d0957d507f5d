// Package disabling plays the longer end-to-end scripts in which Karpenter is turned off: make life, or
// by name as make e2e NAME=Order.
package disabling

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-disabling")

func TestMain(m *testing.M) { sandbox.Main(m) }

// What comes and goes when, of an off and an on.
func TestOrder(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Order)
}

// Off while nodes carry pods that no drain moves.
func TestDrainOff(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.DrainOff)
}

// Off is refused where pods would have no place, or others a NodePool; force goes on.
func TestGuards(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Guards)
}

// On again while a node drains.
func TestOnWhileDraining(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.OnWhileDraining)
}

// Off ends instances that no NodeClaim knows.
func TestOrphans(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Orphans)
}

// Off, stopped on the way.
func TestStoppedOff(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.StoppedOff)
}

// Off while the controller is down.
func TestControllerDown(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.ControllerDown)
}
