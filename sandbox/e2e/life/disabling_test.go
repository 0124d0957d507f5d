package life

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Checks the order in which resources are deleted and created when Karpenter is turned off and on.
func TestOrder(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Order) }

// Turns Karpenter off while nodes run pods that cannot be drained.
func TestDrainOff(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.DrainOff) }

// Turning Karpenter off is rejected if pods would not fit elsewhere or if NodePools exist that Sawhorse did not make.
// force overrides both.
func TestGuards(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Guards) }

// Turns Karpenter off while the nodes do not come that its pods need.
func TestOffWithoutRoom(t *testing.T) {
	pool.Take(t, stage.Long, stage.Spoils).Run(story.Enabled, story.OffWithoutRoom)
}

// Turns Karpenter on again while a node drains.
func TestOnWhileDraining(t *testing.T) { pool.Take(t).Run(story.Enabled, story.OnWhileDraining) }

// Turning Karpenter off terminates instances that have no NodeClaim.
func TestOrphans(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Orphans) }

// Stops the execution while it turns Karpenter off.
func TestStoppedOff(t *testing.T) { pool.Take(t).Run(story.Enabled, story.StoppedOff) }

// Turns Karpenter off while the last step fails, and then does what is left.
func TestLastStepFails(t *testing.T) { pool.Take(t).Run(story.Enabled, story.LastStepFails) }

// Turns Karpenter off while its controller is down.
func TestControllerDown(t *testing.T) { pool.Take(t).Run(story.Enabled, story.ControllerDown) }
