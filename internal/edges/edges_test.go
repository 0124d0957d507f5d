package edges

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The edges between our own packages: one way, from what runs down to what is only data. A name that ends in "/..." is all
// packages below that folder; the longest name that fits a package is its line. A folder without a line is an error.
var edges = map[string][]string{
	"events":                nil,
	"statemachine":          nil,
	"statemachine/model":    {"internal/rack", "internal/steps/resync", "statemachine"}, // its tests
	"internal/meter":        nil,
	"internal/names":        nil,
	"internal/params":       {"internal/names"},
	"internal/plan":         {"internal/names", "internal/params"},
	"internal/plan/nodes":   {"internal/names", "internal/params", "internal/plan"},
	"internal/k8s":          {"internal/names", "internal/plan", "internal/steps"},
	"internal/steps":        {"internal/params"},
	"internal/rack":         {"internal/names", "internal/params", "internal/plan", "internal/steps"},
	"internal/register":     {"internal/names", "internal/params", "internal/rack"},
	"internal/steps/...":    stepMayUse,
	"internal/steps/access": append([]string{"internal/k8s", "internal/steps/admin"}, stepMayUse...),
	"internal/steps/admin":  append([]string{"internal/k8s"}, stepMayUse...),

	"internal/steps/autoscaler": append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/change":     append([]string{"internal/rack"}, stepMayUse...),
	"internal/steps/controller": append([]string{"internal/k8s", "internal/steps/admin"}, stepMayUse...),
	"internal/steps/nodegroups": append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/nodepools":  append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/pins":       append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/report":     append([]string{"events", "internal/meter", "internal/rack"}, stepMayUse...),
	"internal/steps/room":       append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/resync":     {"events", "internal/meter", "internal/names", "internal/rack", "internal/steps/report"}, // which tells of a pass that could not
	"internal/steps/validate":   append([]string{"events", "internal/judge", "internal/k8s", "internal/observe", "internal/rack"}, stepMayUse...),
	"internal/observe":          {"internal/plan"},
	"internal/judge":            {"internal/params", "internal/plan", "internal/plan/nodes"},
	"internal/doctor":           {"internal/judge", "internal/names", "internal/params", "internal/plan"},
	"internal/doctor/observe": {
		"internal/doctor", "internal/k8s", "internal/names", "internal/observe", "internal/params", "internal/plan", "internal/rack", "internal/steps",
	},

	"internal/handler": {"internal/meter", "internal/names", "internal/params", "internal/plan", "internal/rack", "internal/steps"},

	// A function wires the step of its own name; functionsAlsoUse has the exceptions.
	"functions/...": {"internal/handler", "internal/k8s", "internal/rack"},

	"cmd/...":    {"events", "internal/doctor", "internal/doctor/observe", "internal/k8s", "internal/names", "internal/params", "internal/plan", "internal/judge", "internal/plan/nodes", "internal/rack", "internal/register"},
	"cdk":        {"events", "internal/meter", "internal/names", "internal/params", "statemachine"},
	"cdk/bundle": nil,

	"internal/docs":  nil,
	"internal/edges": nil,
	// Fakes and servers for tests; nothing but tests imports them.
	"internal/awsfake":     {"internal/steps"},
	"internal/k8s/k8sfake": {"internal/k8s", "internal/plan"},
	"internal/k8s/k8stest": {"internal/k8s", "internal/names", "internal/plan"},
}

var stepMayUse = []string{"internal/names", "internal/params", "internal/plan", "internal/steps"}

// functionsAlsoUse are the packages that a function wires beside its own step.
var functionsAlsoUse = map[string][]string{
	"functions/controller": {"internal/steps/admin"},
	"functions/nodegroups": {"internal/steps/pins", "internal/steps/room"},
	"functions/resync":     {"internal/steps/report"},                                          // the status of an execution that ended early
	"functions/validate":   {"internal/plan", "internal/steps/report", "internal/steps/queue"}, // what the deployment allows, its Bus, its look at the queue
}

// testsAlsoUse is for the _test.go files of every package.
var testsAlsoUse = []string{
	"events", "internal/awsfake", "internal/judge", "internal/k8s", "internal/k8s/k8sfake", "internal/k8s/k8stest", "internal/meter", "internal/names", "internal/params", "internal/plan", "internal/plan/nodes",
	"internal/rack", "internal/steps", "statemachine",
}

// owners are the only packages that may import an outside library, by the beginning of its path: each is heavy, or a seam
// that is to be in one place. Tests of others may.
var owners = map[string][]string{
	"github.com/aws/karpenter-provider-aws": {"internal/plan/nodes"},
	"sigs.k8s.io/karpenter":                 {"internal/plan/nodes"},
	"helm.sh/helm":                          {"internal/steps/controller"},
	"github.com/aws/aws-lambda-go":          {"internal/handler"},
	"github.com/aws/aws-cdk-go":             {"cdk"},
	"github.com/cdklabs/cdk-nag-go":         {"cdk"},
	"github.com/aws/constructs-go":          {"cdk"},
	"github.com/aws/jsii-runtime-go":        {"cdk"},
	"github.com/spf13/cobra":                {"cmd/sawhorse"},
	"github.com/spf13/pflag":                {"cmd/sawhorse"},
}

// pure are the packages that know no service, no clock and no environment.
var pure = []string{"events", "internal/names", "internal/params", "internal/plan", "internal/plan/nodes", "internal/judge", "internal/doctor", "internal/steps"}

func TestEdges(t *testing.T) {
	for _, p := range repository(t).root {
		allowed, known := rule(p.dir)
		if !known {
			t.Errorf("%s: no line in edges says what it may import", p.dir)
			continue
		}
		if step, ok := strings.CutPrefix(p.dir, "functions/"); ok {
			allowed = append(slices.Clone(allowed), "internal/steps/"+step)
			allowed = append(allowed, functionsAlsoUse[p.dir]...)
		}
		for _, i := range p.own {
			if !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s, which no line in edges allows", p.dir, i)
			}
		}
		for _, i := range p.ownInTests {
			if i != p.dir && !slices.Contains(allowed, i) && !slices.Contains(testsAlsoUse, i) {
				t.Errorf("%s: its tests import %s, which testsAlsoUse does not have", p.dir, i)
			}
		}
	}
}

func rule(dir string) ([]string, bool) {
	if allowed, ok := edges[dir]; ok {
		return allowed, true
	}
	for folder := dir; strings.Contains(folder, "/"); {
		folder = folder[:strings.LastIndex(folder, "/")]
		if allowed, ok := edges[folder+"/..."]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func TestEveryLineIsNeeded(t *testing.T) {
	dirs := map[string]bool{}
	for _, p := range repository(t).root {
		dirs[p.dir] = true
	}
	for name := range edges {
		if !strings.HasSuffix(name, "/...") && !dirs[name] {
			t.Errorf("edges has %s, which does not exist", name)
		}
	}
}

func TestNoCircles(t *testing.T) {
	all := map[string][]string{}
	for _, p := range repository(t).root {
		all[p.dir] = p.own
	}
	for dir := range all {
		if slices.Contains(reach(all, dir), dir) {
			t.Errorf("%s imports itself on some way", dir)
		}
	}
}

func TestHeavyLibrariesHaveOneOwner(t *testing.T) {
	for _, p := range repository(t).root {
		for _, i := range p.outside {
			for library, dirs := range owners {
				if (i == library || strings.HasPrefix(i, library+"/")) && !slices.Contains(dirs, p.dir) && !strings.HasPrefix(p.dir, "cdk/") {
					t.Errorf("%s imports %s, which only %v may", p.dir, i, dirs)
				}
			}
		}
	}
}

// A function's size and its start depend on all that it reaches.
func TestWhatFunctionsReach(t *testing.T) {
	all := map[string][]string{}
	for _, p := range repository(t).root {
		all[p.dir] = p.own
	}
	for dir := range all {
		if !strings.HasPrefix(dir, "functions/") {
			continue
		}
		reached := reach(all, dir)
		for _, heavy := range []struct{ dir, only string }{{"internal/plan/nodes", "functions/validate"}, {"internal/steps/controller", "functions/controller"}} {
			if slices.Contains(reached, heavy.dir) != (dir == heavy.only) {
				t.Errorf("%s: reaches %s: %v; only %s may and must", dir, heavy.dir, dir != heavy.only, heavy.only)
			}
		}
	}
}

func reach(all map[string][]string, dir string) []string {
	found := map[string]bool{}
	for todo := slices.Clone(all[dir]); len(todo) > 0; todo = todo[1:] {
		if next := todo[0]; !found[next] {
			found[next] = true
			todo = append(todo, all[next]...)
		}
	}
	return slices.Collect(maps.Keys(found))
}

func TestPurePackagesKnowNoService(t *testing.T) {
	for _, p := range repository(t).root {
		if !slices.Contains(pure, p.dir) {
			continue
		}
		for _, i := range p.outside {
			for _, bad := range []string{"os", "net", "net/http", "context", "math/rand", "math/rand/v2", "github.com/aws/aws-sdk-go-v2", "k8s.io/client-go"} {
				// The interface Baselines; what Kubernetes and Karpenter want to be asked with.
				exception := i == "context" && (p.dir == "internal/steps" || p.dir == "internal/plan/nodes")
				if (i == bad || strings.HasPrefix(i, bad+"/")) && !exception {
					t.Errorf("%s imports %s", p.dir, i)
				}
			}
		}
	}
}

// The sandbox is the outside witness: it sees what a stranger sees.
func TestSandboxImportsNothingOfTheProduct(t *testing.T) {
	for _, p := range repository(t).sandbox {
		for _, i := range slices.Concat(p.own, p.ownInTests) {
			if !strings.HasPrefix(i, "sandbox/") {
				t.Errorf("%s imports %s", p.dir, i)
			}
		}
	}
}

// Test servers and fakes are for tests.
func TestOnlyTestsUseFakes(t *testing.T) {
	for _, p := range repository(t).root {
		for _, i := range p.own {
			if i == "internal/awsfake" || i == "internal/k8s/k8sfake" || i == "internal/k8s/k8stest" {
				t.Errorf("%s imports %s outside its tests", p.dir, i)
			}
		}
	}
}
