package life

import (
	"cmp"
	"os"
	"strconv"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Turns Karpenter off and on ROUNDS times. Nothing is left behind, and nothing accumulates.
func TestRounds(t *testing.T) {
	sandbox := pool.Take(t, stage.Long)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS is %q, not a number from 1", os.Getenv("ROUNDS"))
	}
	sandbox.Run(story.Enabled)
	sandbox.Run(func(s *story.Script) { story.Rounds(s, n) })
}

// Tests what sawhorse doctor finds and the remedies it prints.
func TestDoctor(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Doctor) }

// Deleting all parameters changes nothing while Karpenter is on. With Karpenter off it ends the rack.
func TestForgotten(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Forgotten) }

// Turns Karpenter off after the cluster has been deleted.
func TestClusterGone(t *testing.T) { pool.Take(t, stage.Spoils).Run(story.Enabled, story.ClusterGone) }
