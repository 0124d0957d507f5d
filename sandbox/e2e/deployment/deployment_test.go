// Package deployment runs the end-to-end scripts for the stack itself: acceptance on an account, upgrade and removal.
// Run all of them with `make deployment`, or one by name, as in `make e2e NAME=Upgrade`.
package deployment

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var pool = stage.New("../../..", "e2e-deployment")

func TestMain(m *testing.M) { pool.Main(m) }

// Tests the acceptance script that is meant for a real account. It needs a rack that does not exist yet and a
// cluster without Karpenter.
func TestAcceptance(t *testing.T) {
	pool.Take(t, stage.Untouched, stage.Spoils).Run(func(s *story.Script) { story.Acceptance(s, "../../../tools/acceptance.sh") })
}

// Upgrades the stack of an earlier commit while passes run.
func TestUpgrade(t *testing.T) {
	sandbox := pool.Take(t, stage.Spoils)
	command := exec.Command("../../earlier.sh")
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		t.Fatalf("sandbox/earlier.sh: %v", err)
	}
	sandbox.Run(story.Off)
	sandbox.Run(func(s *story.Script) { story.Upgrade(s, strings.TrimSpace(string(folder))) })
}

// Removes the stack while Karpenter is on, deploys it again, and removes it for good.
func TestRemoving(t *testing.T) { pool.Take(t, stage.Spoils).Run(story.Enabled, story.Removing) }

// Deploys the stack with a path and a boundary of the organization's.
func TestOrganization(t *testing.T) {
	pool.Take(t, stage.Untouched, stage.Spoils).Run(story.Organization)
}
