package life

import (
	"path/filepath"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// The script to copy for a new one.
func TestExample(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Example) }

// Several parameters are changed as a whole, or not at all.
func TestChanges(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Changes) }

// A change that cannot be written is given up and put back, and holds up nothing.
func TestChangeGivenUp(t *testing.T) {
	pool.Take(t, stage.Long).Run(story.Enabled, story.ChangeGivenUp)
}

// Tests additional pools, overrides, the pool settings that are rejected, and JSON from S3.
func TestPools(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Pools) }

// A pool that is taken away is emptied as its disruption budgets allow, and goes with its last node.
func TestRetired(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Retired) }

// A change, and their age, replace twenty nodes two at a time; expiry knows no budget.
func TestRotation(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Rotation) }

// One alias pins the AMI of all pools, and is refused where an image is missing.
func TestAliases(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Aliases) }

// Nodes follow a newer AMI as far as their alias does, and Kubernetes moves past one that has no image for it.
func TestNewImages(t *testing.T) {
	pool.Take(t, stage.Long, stage.Spoils).Run(story.Enabled, story.NewImages)
}

// Pods move from a pool to one that is written beside it, and back.
func TestBlueGreen(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.BlueGreen) }

// A node group is emptied node by node, and stops at a pod that cannot move. Off brings its size back.
func TestMigrated(t *testing.T) {
	pool.Take(t, stage.Long, stage.Spoils).Run(story.Enabled, story.Migrated)
}

// A file of settings is compared with the rack, and applied as one change.
func TestFiles(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Files) }

// Each setting makes a snapshot, to which one may go back.
func TestHistory(t *testing.T) { pool.Take(t).Run(story.Enabled, story.History) }

// The examples that can be run here, with their own tools.
func TestExamples(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	pool.Take(t, stage.Long).Run(story.Enabled, story.Examples(root))
}

// A node stays for one reason after the other, and the command says which. A static pool goes by force only.
func TestWhy(t *testing.T) { pool.Take(t, stage.Long, stage.Spoils).Run(story.Enabled, story.Why) }

// Pods keep the nodes of pools that are taken away, and the status says why. One node is in a capacity reservation.
func TestKept(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Kept) }

// A pod runs on a GPU, and four share one.
func TestGPUs(t *testing.T) { pool.Take(t).Run(story.Enabled, story.GPUs) }

// Tests the parameters of the rack itself and the effect of each.
func TestSettings(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Settings) }

// The freeze and the pause take effect while other parameters are wrong, and the status names what is in force.
func TestBrakes(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Brakes) }

// What is set and unset within seconds, while AWS's replicas show the state before, is never left behind. Its replicas stay
// behind for 90 s, in which passes write again what these contradict.
func TestSetAndUnset(t *testing.T) {
	pool.Take(t, stage.Spoils).Run(story.Enabled, story.SetAndUnset)
}

// The status tells how far the nodes have followed a change and which pools are not Ready, and an event tells of the end.
func TestRollout(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Rollout) }

// Karpenter replaces nodes in windows only, and NodeOverlays come and go.
func TestWindows(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Windows) }

// Tests unschedulable pods, a build, a spot interruption, and a node that is no longer needed.
func TestPods(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Pods) }

// Pods that have waited for a node are in the status, with the reason, and an exhausted rack is Degraded.
func TestWaiting(t *testing.T) {
	pool.Take(t, stage.Long, stage.Spoils).Run(story.Enabled, story.Waiting)
}

// Settings that were changed or deleted by hand are restored. Objects of others are left alone.
func TestHandEdits(t *testing.T) {
	pool.Take(t).Run(story.Enabled, story.HandEdits, story.HandEditsInAWS)
}

// The schedule's audit of a rack in order is one call and writes nothing. A manual change starts a pass of the steps
// concerned.
func TestAudited(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Audited) }

// Lambda calls an audit that fails again, and then keeps the call.
func TestUndelivered(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Undelivered) }

// When a function's role loses a permission, the pass that needs it fails and names it. Once the permission is back,
// the next pass continues.
func TestLostRight(t *testing.T) { pool.Take(t).Run(story.Enabled, story.LostRight) }

// A discovered SPOT system group is rejected until system_node_groups names it. It is then replaced
// by an ON_DEMAND copy.
func TestSpotSystemGroup(t *testing.T) { pool.Take(t).Run(story.Enabled, story.SpotSystemGroup) }

// Checks what a user who may write parameters, and a cluster administrator, cannot reach with the roles of the nodes
// and the controller.
func TestConfined(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Confined) }

// ForgedInterruption interruption messages do not reach Karpenter.
func TestForgedInterruption(t *testing.T) { pool.Take(t).Run(story.Enabled, story.ForgedInterruption) }

// A field that another tool keeps setting back is reported as contested. Sawhorse stops setting it.
func TestContested(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Contested) }

// Tests what happens to Cluster Autoscaler and to the groups it scales.
func TestAutoscaler(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.Autoscaler) }

// An Auto Scaling group outside EKS stays under Cluster Autoscaler.
func TestUnmanagedGroups(t *testing.T) {
	pool.Take(t, stage.Long).Run(story.Enabled, story.UnmanagedGroups)
}

// Nodes have the CNI's policy only while it needs it, and build nodes a role of their own if they are to.
func TestNodeRoles(t *testing.T) { pool.Take(t, stage.Long).Run(story.Enabled, story.NodeRoles) }

// The stack's hold stops all racks but one; passes and audits say what would be due, and what is let go converges.
func TestHeld(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Held) }
