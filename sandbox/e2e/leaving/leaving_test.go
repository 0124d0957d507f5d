// Package leaving plays the longer end-to-end scripts of a rack that is left: off and on again and again, looked at by doctor, forgotten,
// without its cluster. make life, or by name as make e2e NAME=Rounds.
package leaving

import (
	"cmp"
	"os"
	"strconv"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-leaving")

func TestMain(m *testing.M) { sandbox.Main(m) }

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

// Off when the cluster has been deleted. It comes last: nothing is left of the cluster.
func TestClusterGone(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	sandbox.Play(t, story.ClusterGone)
}
