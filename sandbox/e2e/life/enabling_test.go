package life

import (
	"os"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Karpenter's pods are admitted without credentials. Once a queue has been deleted, the pass waits for its name, and by then
// the association is in effect, so the script needs a new sandbox.
func TestCredentialsLate(t *testing.T) {
	pool.Take(t, stage.Untouched).Run(story.Off, story.CredentialsLate)
}

// Turns Karpenter on in a cluster whose owner has not allowed the rack in.
func TestClusterNotTagged(t *testing.T) { pool.Take(t).Run(story.ResetRack, story.ClusterNotTagged) }

// Turns Karpenter on while AWS is as slow as it gets. LATE limits the test to some kinds of lag.
func TestLagging(t *testing.T) {
	sandbox := pool.Take(t, stage.Long)
	sandbox.Run(story.Off)
	sandbox.Run(func(s *story.Script) { story.Lagging(s, os.Getenv("LATE")) })
}

// Tests three kinds of lag: a parameter that the pass started by its event cannot read yet, a deleted access entry that
// still exists, and policies that have not reached EC2 yet.
func TestLate(t *testing.T) {
	pool.Take(t).Run(story.Enabled, story.LateParameter, story.LingeringEntry, story.PoliciesLate)
}

// The first node does not come, for seven reasons. Nothing is handed over until it does.
func TestProof(t *testing.T) { pool.Take(t, stage.Long, stage.Spoils).Run(story.Off, story.Proof) }

// Spot without its service-linked role is rejected, with the command that creates it.
func TestSpotRole(t *testing.T) { pool.Take(t).Run(story.Off, story.SpotRole) }

// Turns Karpenter off while a pass is turning it on.
func TestInterrupted(t *testing.T) { pool.Take(t).Run(story.Off, story.Interrupted) }

// Turns Karpenter on while AWS throttles. The pass slows down and does not fail.
func TestThrottled(t *testing.T) { pool.Take(t).Run(story.Off, story.Throttled) }

// DynamoDB throttles each function of the passes in turn, and what a pass reads is refused.
func TestThrottledSteps(t *testing.T) {
	pool.Take(t, stage.Long, stage.Untouched).Run(story.Off, story.ThrottledSteps, story.ReadingRefused)
}

// A step's function runs into its timeout.
func TestOutOfTime(t *testing.T) { pool.Take(t).Run(story.Enabled, story.OutOfTime) }

// EKS accepts updates and does not make them. The passes say so in EKS's words.
func TestUpdatesFail(t *testing.T) { pool.Take(t).Run(story.Enabled, story.UpdatesFail) }

// Turns Karpenter on where others own resources of the same names.
func TestCollisions(t *testing.T) { pool.Take(t, stage.Long).Run(story.OffAgain, story.Collisions) }

// Turns Karpenter on with IRSA, without Pod Identity.
func TestCredentials(t *testing.T) { pool.Take(t).Run(story.Off, story.Credentials) }

// Turns Karpenter on and off in a cluster without aws-auth. The access mode API cannot be changed back.
func TestAccessModeAPI(t *testing.T) { pool.Take(t, stage.Spoils).Run(story.Off, story.AccessModeAPI) }
