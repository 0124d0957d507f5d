// Package deployment runs the end-to-end scripts for the stack itself: its upgrade and removal.
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

// Deploys another release over this one with two racks, and goes back. The other release asks for more memory for Karpenter's
// controller, and has another default in a field of the pools for which Karpenter replaces nodes.
func TestReleases(t *testing.T) {
	sandbox := pool.Take(t, stage.Spoils)
	command := exec.Command("../../release.sh", "next", "internal/plan/chart.go", `s/"memory": "256Mi"/"memory": "257Mi"/`,
		"internal/plan/nodes/pools.go", `s/"httpPutResponseHopLimit": int64(1)/"httpPutResponseHopLimit": int64(2)/`)
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		t.Fatalf("sandbox/release.sh: %v", err)
	}
	sandbox.Run(story.Enabled)
	sandbox.Run(func(s *story.Script) { story.Releases(s, strings.TrimSpace(string(folder))) })
}

// Deploys the stack with a restored table.
func TestRestored(t *testing.T) { pool.Take(t, stage.Spoils).Run(story.Enabled, story.Restored) }

// Removes the stack while Karpenter is on, deploys it again, and removes it for good.
func TestRemoving(t *testing.T) { pool.Take(t, stage.Spoils).Run(story.Enabled, story.Removing) }

// Deploys the stack with a path and a boundary of the organization's.
func TestOrganization(t *testing.T) {
	pool.Take(t, stage.Untouched, stage.Spoils).Run(story.Organization)
}
