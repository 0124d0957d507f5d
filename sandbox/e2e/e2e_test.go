// Package e2e plays the end-to-end scripts of package story on a sandbox. Each can be run by name: make e2e NAME=Burst. Those
// that turn Karpenter off and on again are in package life, which has a sandbox of its own: both mostly wait.
package e2e

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../..", "e2e")

func TestMain(m *testing.M) { sandbox.Main(m) }

func play(t *testing.T, script func(*story.Teller)) {
	t.Helper()
	sandbox.Play(t, script)
}
