// Package changes plays the longer end-to-end scripts about a rack that is on, and what is around it: make life, or by name as
// make e2e NAME=Pods.
package changes

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-changes")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Several parameters as one change: whole, once, or not at all.
func TestChangeRequest(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.ChangeRequest)
}

// More pools, an override, what is refused of them, and JSON from S3.
func TestPools(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Pools)
}

// A pod that asks for a GPU gets a node of the pool that Karpenter tries first.
func TestFirstPool(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.FirstPool)
}

// Typos in the names of the cluster and of a node group are told as what they are.
func TestWrongNames(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.WrongNames)
}

// Parameters of the rack itself, and what each brings about.
func TestSettings(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Settings)
}

// Pods that fit nowhere, a build, a spot interruption, and a node that nobody needs any more.
func TestPods(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Pods)
}

// What was changed or deleted by hand is put back; what others made is left alone.
func TestHandEdits(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.HandEdits)
	sandbox.Play(t, story.HandEditsInAWS)
}

// A right that is taken from a function's role: the pass that needs it fails and names it, and the next one goes on with it.
func TestLostRight(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.LostRight)
}

// A SPOT system group is refused until it is named, and then gives way to an on-demand copy.
func TestSpotSystemGroup(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.SpotSystemGroup)
}

// What a writer of parameters and an administrator of the cluster do not reach with the roles of nodes and controller.
func TestConfined(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Confined)
}

// Interruptions that somebody else makes up do not reach Karpenter.
func TestForged(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Forged)
}

// An API server that lies ends its own rack's passes, with a sentence each, and nothing else.
func TestLyingCluster(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.LyingCluster)
}

// What a tool sets back is told, and not fought over.
func TestContested(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Contested)
}

// What becomes of the Cluster Autoscaler, and of what it scales.
func TestAutoscaler(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.Autoscaler)
}

// An Auto Scaling group that EKS does not know keeps its scaler. It comes last: Cluster Autoscaler is left with the arguments for that group.
func TestUnmanagedGroups(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.UnmanagedGroups)
}
