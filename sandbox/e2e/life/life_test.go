// Package life plays the longer end-to-end scripts in which Karpenter goes and comes back: make life, or by name as make e2e
// NAME=Order.
package life

import (
	"cmp"
	"os"
	"strconv"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-life")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Karpenter's pods are admitted without credentials. It comes first: once a queue has been deleted, the pass waits for its name, and the
// association is old by then.
func TestCredentialsLate(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.CredentialsLate)
}

// On while AWS is as slow as it gets; LATE names the kinds of lag, if not all.
func TestLagging(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, func(s *story.Teller) { story.Lagging(s, os.Getenv("LATE")) })
}

// A parameter that is not there yet for the pass that its event starts, an access entry that is still there, and policies that EC2 has
// not heard of.
func TestLate(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.LateParameter)
	sandbox.Play(t, story.LingeringEntry)
	sandbox.Play(t, story.PoliciesLate)
}

// Off while a pass is enabling.
func TestInterrupted(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.Interrupted)
}

// On while AWS throttles: the pass slows down, and does not fail.
func TestThrottled(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.Throttled)
}

// On where others hold the names.
func TestCollisions(t *testing.T) {
	sandbox.Play(t, story.OffAgain)
	sandbox.Play(t, story.Collisions)
}

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

// Off and on, ROUNDS times: nothing is left, and nothing grows.
func TestRounds(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS is %q, not a number from 1", os.Getenv("ROUNDS"))
	}
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, func(s *story.Teller) { story.Rounds(s, n) })
}

// What sawhorse doctor finds, and its remedies.
func TestDoctor(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Doctor)
}

// Deleting is no command while Karpenter is on; with Karpenter off it ends the rack.
func TestForgotten(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Forgotten)
}

// On and off in a cluster without aws-auth. From here on there is no way back.
func TestAccessModeAPI(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.AccessModeAPI)
}

// Off when the cluster has been deleted. It comes last: nothing is left of the cluster.
func TestClusterGone(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.ClusterGone)
}
