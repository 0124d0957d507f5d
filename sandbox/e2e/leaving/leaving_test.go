// Package leaving runs the longer end-to-end scripts about turning Karpenter off repeatedly, doctor, forgetting a rack,
// and a rack whose cluster is gone. Run all of them with `make life`, or one by name, as in `make e2e NAME=Rounds`.
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

// Turns Karpenter off and on ROUNDS times. Nothing is left behind, and nothing accumulates.
func TestRounds(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS is %q, not a number from 1", os.Getenv("ROUNDS"))
	}
	sandbox.Run(t, story.Enabled)
	sandbox.Run(t, func(s *story.Script) { story.Rounds(s, n) })
}

// Tests what sawhorse doctor finds and the remedies it prints.
func TestDoctor(t *testing.T) { sandbox.Run(t, story.Enabled, story.Doctor) }

// Deleting all parameters changes nothing while Karpenter is on. With Karpenter off it ends the rack.
func TestForgotten(t *testing.T) { sandbox.Run(t, story.Enabled, story.Forgotten) }

// Turns Karpenter off after the cluster has been deleted. This test runs last because the cluster is gone afterwards.
func TestClusterGone(t *testing.T) { sandbox.Run(t, story.Enabled, story.ClusterGone) }
