package architecture

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// longest is the maximum number of lines of a function's main.go: it only connects parts.
const longest = 45

func TestFunctionsOnlyWire(t *testing.T) {
	dirs, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		files, err := os.ReadDir(filepath.Join(root, "functions", d.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 1 || files[0].Name() != "main.go" {
			t.Errorf("functions/%s: it must hold main.go and nothing else", d.Name())
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, "functions", d.Name(), "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > longest {
			t.Errorf("functions/%s/main.go: %d lines, at most %d", d.Name(), lines, longest)
		}
		// Logs and errors have the name under which the function starts.
		if !regexp.MustCompile(`\n\thandler\.Start(Step)?\("` + d.Name() + `", `).Match(text) {
			t.Errorf("functions/%s/main.go: it must start under its own name", d.Name())
		}
	}
}

// The state machine invokes the functions that a plan names. Without this test, a missing one would first fail in production.
func TestEveryFunctionThatAPlanNamesExists(t *testing.T) {
	want := []string{"audit", "report", "resync", "rollout", "validate", plan.ChangeStep.Function}
	for _, c := range []struct {
		config  params.Config
		records plan.Records
	}{
		{params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true}, plan.Records{}},
		{params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true}, plan.Records{WasOn: true}},
	} {
		facts := plan.Facts{
			Cluster: &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo"}, Status: "ACTIVE"}, PodIdentity: true,
			Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}}, Records: c.records,
		}
		made := plan.Build(c.config, facts, nil)
		if len(made.Problems) > 0 || len(made.Plan.Steps) == 0 {
			t.Fatalf("%+v", made)
		}
		for _, s := range made.Plan.Steps {
			want = append(want, s.Function)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	dirs, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, d := range dirs {
		have = append(have, d.Name())
	}
	if !slices.Equal(have, want) {
		t.Errorf("functions/ has %v, plans, the state machine and the schedules name %v", have, want)
	}
}

// Only package handler starts Lambda's runtime, so every function has its environment, log, lease and error names.
func TestOneLambdaStart(t *testing.T) {
	for _, file := range goFiles(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		starts := strings.Contains(string(text), "lambda.Start(") && !strings.HasSuffix(file, "_test.go")
		if want := file == "internal/handler/handler.go"; starts != want {
			t.Errorf("%s: has lambda.Start: %v", file, starts)
		}
	}
}
