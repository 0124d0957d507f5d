package controller

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s/k8stest"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

var update = flag.Bool("update", false, "copy the charts from Karpenter's module again")

// The embedded charts equal those of the module that go.sum verifies, file by file.
func TestChartsAreTheModules(t *testing.T) {
	source := filepath.Join(k8stest.ModuleDir(t, "github.com/aws/karpenter-provider-aws"), "charts")
	seen := map[string]bool{"NOTICE": true}
	for _, chart := range []string{ownership.ReleaseCRD, ownership.ReleaseController} {
		for _, pattern := range []string{"Chart.yaml", "values.yaml", "templates/*"} {
			files, err := filepath.Glob(filepath.Join(source, chart, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: no %s in the module: %v", chart, pattern, err)
			}
			for _, file := range files {
				name, _ := filepath.Rel(source, file)
				seen[filepath.ToSlash(name)] = true
				compare(t, file, filepath.Join("charts", name))
			}
		}
	}
	_ = fs.WalkDir(charts, "charts", func(path string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() && !seen[strings.TrimPrefix(path, "charts/")] {
			t.Errorf("%s is not in the module", path)
		}
		return nil
	})
}

func compare(t *testing.T, module, ours string) {
	t.Helper()
	want, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(ours), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ours, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(ours); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the module's (run this test with -update): %v", ours, err)
	}
}

// The module's tag is the Karpenter version that Sawhorse installs.
func TestChartsAreOfTheVersion(t *testing.T) {
	dir := k8stest.ModuleDir(t, "github.com/aws/karpenter-provider-aws")
	if !strings.HasSuffix(dir, "@v"+ownership.KarpenterVersion) {
		t.Errorf("the module is %s, ownership.KarpenterVersion is %s", filepath.Base(dir), ownership.KarpenterVersion)
	}
	chart, err := load(ownership.ReleaseController, ownership.KarpenterVersion)
	if err != nil || chart.Metadata.Version != ownership.KarpenterVersion || chart.AppVersion() != ownership.KarpenterVersion {
		t.Errorf("chart %+v, %v", chart.Metadata, err)
	}
	image, _ := chart.Values["controller"].(map[string]any)["image"].(map[string]any)
	if image["repository"] != ownership.ControllerImage {
		t.Errorf("the chart's image is %v, ownership.ControllerImage is %s", image, ownership.ControllerImage)
	}
}

// Plans name the charts that this package embeds, so that the steps are due when a chart changes.
func TestPlansNameTheCharts(t *testing.T) {
	planned := wanted(params.Config{}).Controller
	for _, release := range []plan.Release{planned.CRDs, planned.Release} {
		carried, err := digest(release.Name)
		if err != nil {
			t.Fatal(err)
		}
		if release.Chart != carried {
			t.Errorf("internal/plan/karpenter.go: the digest of chart %s is %q; write %q", release.Name, release.Chart, carried)
		}
	}
}

// wanted returns the plan of a rack with Karpenter and these settings.
func wanted(config params.Config) *plan.Plan {
	config.Rack, config.ClusterName, config.AuthMode, config.Enabled = "demo", "demo", true, true
	made := plan.Build(config, plan.Facts{
		Cluster:     &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE"},
		PodIdentity: true, Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}},
	}, nil)
	if len(made.Problems) > 0 {
		panic(fmt.Sprint(made.Problems))
	}
	return &made.Plan
}

// The chart of another deployment is not in the plan's words: the step applies its own, and is not done.
func TestAPlanWithAnotherChart(t *testing.T) {
	s := begin(t)
	s.plan.Controller.CRDs.Chart = "sha256:another"
	if progress := s.run(PartCRDs, "installed release karpenter-crd 1.10.0"); !progress.Unfinished {
		t.Errorf("%+v", progress)
	}
	s.settle()
	if progress := s.run(PartRelease, "installed release karpenter 1.10.0"); progress.Unfinished {
		t.Errorf("its chart is the plan's: %+v", progress)
	}
}
