// Package life plays the scripts in which Karpenter is turned off and on again, on a sandbox of its own.
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

func play(t *testing.T, script func(*story.Teller)) {
	t.Helper()
	sandbox.Play(t, script)
}

// Off while a pass is enabling.
func TestInterrupted(t *testing.T) {
	play(t, story.Off)
	play(t, story.Interrupted)
}

// What comes and goes when, of an off and an on.
func TestOrder(t *testing.T) {
	play(t, story.Enabled)
	play(t, story.Order)
}

// Off and on, ROUNDS times: nothing is left, and nothing grows.
func TestRounds(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS is %q, not a number from 1", os.Getenv("ROUNDS"))
	}
	play(t, story.Enabled)
	play(t, func(s *story.Teller) { story.Rounds(s, n) })
}
