// Package enabling plays the longer end-to-end scripts in which Karpenter is turned on, and what is in the way: make life, or
// by name as make e2e NAME=Late.
package enabling

import (
	"os"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-enabling")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Karpenter's pods are admitted without credentials. It comes first: once a queue has been deleted, the pass waits for its name, and the
// association is old by then.
func TestCredentialsLate(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.CredentialsLate)
}

// On in a cluster whose owner has not let the rack in.
func TestUnasked(t *testing.T) {
	sandbox.Play(t, story.Anew)
	sandbox.Play(t, story.Unasked)
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

// On with IRSA, where there is no Pod Identity.
func TestCredentials(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.Credentials)
}

// On and off in a cluster without aws-auth. From here on there is no way back.
func TestAccessModeAPI(t *testing.T) {
	sandbox.Play(t, story.Off)
	sandbox.Play(t, story.AccessModeAPI)
}
