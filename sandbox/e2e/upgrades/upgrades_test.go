// Package upgrades runs the end-to-end scripts with several versions of Karpenter. Run all of them with `make upgrades`,
// which builds the other versions' controllers, or one by name, as in `make e2e NAME=Versions`.
package upgrades

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

const root = "../../.."

var pool = stage.New(root, "e2e-upgrades")

func TestMain(m *testing.M) { pool.Main(m) }

// cached returns the absolute path of something that make upgrades has made.
func cached(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, ".cache", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v (make upgrades makes it)", err)
	}
	return path
}

// Moves a cluster from a Karpenter 1.8.6 that Helm has installed to Sawhorse.
func TestMigrating(t *testing.T) {
	cached(t, "bin/karpenter-1.8.6")
	cached(t, "bin/helm")
	charts := cached(t, "charts-1.8.6")
	pool.Take(t, stage.Untouched, stage.Spoils).Run(func(s *story.Script) { story.Migrating(s, charts) })
}

// Takes over a Karpenter that Helm has installed: by a person, and by the release of Sawhorse before this one.
func TestTakenOver(t *testing.T) {
	cached(t, "bin/helm")
	charts, err := filepath.Abs(filepath.Join(root, "internal/karpenter/catalogue/1.10.0"))
	if err != nil {
		t.Fatal(err)
	}
	pool.Take(t).Run(story.Enabled, func(s *story.Script) { story.TakenOver(s, charts) })
}

// Changes the version of Karpenter up and down while pods run on its nodes.
func TestVersions(t *testing.T) {
	sandbox := pool.Take(t)
	for _, version := range []string{"1.12.1", "1.14.3", "1.15.0"} {
		cached(t, "bin/karpenter-"+version)
	}
	sandbox.Run(story.Enabled)
	sandbox.Run(story.Versions)
}

// Replaces the nodes of a pool because of a change and of their age under the newest version, as life does under the default.
func TestRotationNewest(t *testing.T) {
	sandbox := pool.Take(t)
	cached(t, "bin/karpenter-1.15.0")
	sandbox.Run(story.Enabled, story.RotationNewest)
}

// Has a pool of each kind under the default version and the newest.
func TestKinds(t *testing.T) {
	sandbox := pool.Take(t)
	cached(t, "bin/karpenter-1.15.0")
	sandbox.Run(story.Enabled, func(s *story.Script) { story.Kinds(s, "1.10.0", "1.15.1") })
}

// Runs pods on GPUs, whole and shared, under the newest version, as life does under the default.
func TestGPUsNewest(t *testing.T) {
	sandbox := pool.Take(t)
	cached(t, "bin/karpenter-1.15.0")
	sandbox.Run(story.Enabled, story.GPUsNewest)
}

// Holds the rules and dashboards of observability/ against the controller of each version. VERSIONS limits the test to some of
// them, and UPDATE=yes writes what the controllers count.
func TestMetrics(t *testing.T) {
	sandbox := pool.Take(t)
	versions := []string{"1.10.0", "1.12.1", "1.14.3", "1.15.1"}
	if some := os.Getenv("VERSIONS"); some != "" {
		versions = strings.Split(some, ",")
	}
	folder, err := filepath.Abs(filepath.Join(root, "observability"))
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Run(story.Enabled, func(s *story.Script) { story.Metrics(s, folder, os.Getenv("UPDATE") == "yes", versions...) })
}

// Writes versions of Karpenter that do not work. The version before comes back each time.
func TestWithdrawn(t *testing.T) {
	sandbox := pool.Take(t)
	cached(t, "bin/karpenter-1.14.3")
	cached(t, "bin/karpenter-1.15.0")
	sandbox.Run(story.Enabled)
	sandbox.Run(story.Withdrawn)
}

// Deploys a Sawhorse with another default version over this one. A rack keeps the version that it runs.
func TestNewDefault(t *testing.T) {
	sandbox := pool.Take(t, stage.Spoils)
	cached(t, "bin/karpenter-1.15.0")
	command := exec.Command("../../release.sh", "1.15.1", "internal/ownership/names.go",
		`s/KarpenterVersion = ".*"/KarpenterVersion = "1.15.1"/`)
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		t.Fatalf("sandbox/release.sh: %v", err)
	}
	sandbox.Run(story.Enabled)
	sandbox.Run(func(s *story.Script) { story.NewDefault(s, strings.TrimSpace(string(folder))) })
}
