package architecture

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// mayImport has the packages of this repository that each package may import: one way, from the commands down to plain
// data. A name that ends in "/..." stands for all packages below that folder; the longest matching name applies. A package
// without a line is an error.
var mayImport = map[string][]string{
	// Plain data.
	"events":               nil,
	"statemachine":         {"events", "internal/outcome", "internal/plan"},
	"internal/metrics":     {"internal/outcome"},
	"internal/ownership":   nil,
	"internal/readonly":    {"internal/canonical"},
	"internal/params":      {"events", "internal/karpenter", "internal/ownership"},
	"internal/outcome":     {"internal/canonical", "internal/params", "internal/plan"},
	"internal/karpenter":   {"internal/ownership"},
	"internal/canonical":   nil,
	"internal/plan":        {"events", "internal/canonical", "internal/karpenter", "internal/ownership", "internal/params"},
	"internal/plan/nodes":  {"events", "internal/canonical", "internal/karpenter", "internal/ownership", "internal/params", "internal/plan"},
	"internal/plan/charts": {"internal/karpenter", "internal/ownership", "internal/plan"},
	"internal/resource":    {"internal/canonical", "internal/outcome", "internal/ownership"},
	"internal/validation":  {"events", "internal/params", "internal/plan", "internal/plan/charts", "internal/plan/nodes"},

	// AWS, the cluster and the table.
	"internal/observe":    {"internal/k8s", "internal/outcome", "internal/ownership", "internal/params", "internal/plan"},
	"internal/k8s":        {"internal/canonical", "internal/outcome", "internal/ownership", "internal/plan", "internal/readonly"},
	"internal/disruption": {"internal/ownership", "internal/params"},
	"internal/drain":      {"internal/k8s", "internal/ownership", "internal/plan"},
	"internal/store": {
		"events", "internal/canonical", "internal/outcome", "internal/ownership", "internal/params", "internal/plan", "internal/resource",
	},
	"internal/register": {"internal/outcome", "internal/ownership", "internal/params", "internal/store"},
	"internal/doctor":   {"internal/ownership", "internal/params", "internal/plan", "internal/plan/nodes", "internal/validation"},
	"internal/doctor/observe": {
		"internal/doctor", "internal/k8s", "internal/observe", "internal/outcome", "internal/ownership", "internal/plan", "internal/store",
	},

	// The steps.
	"internal/steps/...": stepMayUse,
	"internal/steps/access": append([]string{"internal/k8s", "internal/steps/admin", "internal/steps/refusals", "internal/steps/updates"},
		stepMayUse...),
	"internal/steps/admin":      append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/autoscaler": append([]string{"internal/k8s", "internal/steps/refusals"}, stepMayUse...),
	"internal/steps/proof":      append([]string{"internal/k8s", "internal/steps/refusals"}, stepMayUse...),
	"internal/steps/capacity": append([]string{
		"events", "internal/drain", "internal/k8s", "internal/steps/refusals", "internal/steps/updates",
	}, stepMayUse...),
	"internal/steps/controller": append([]string{
		"internal/k8s", "internal/karpenter", "internal/steps/admin", "internal/steps/refusals",
	}, stepMayUse...),
	"internal/steps/nodegroups": append([]string{"internal/drain", "internal/k8s", "internal/steps/updates"}, stepMayUse...),
	"internal/steps/nodepools":  append([]string{"events", "internal/k8s", "internal/steps/refusals"}, stepMayUse...),
	"internal/steps/placement":  append([]string{"internal/k8s"}, stepMayUse...),
	"internal/steps/refusals":   append([]string{"internal/k8s"}, stepMayUse...),

	// What a pass is made of besides its steps. Resync reports a pass that could not report itself.
	"internal/pass/audit":  append([]string{"events", "internal/pass/validate", "internal/readonly", "internal/store"}, stepMayUse...),
	"internal/pass/change": append([]string{"internal/store"}, stepMayUse...),
	"internal/pass/report": append([]string{
		"events", "internal/canonical", "internal/metrics", "internal/store", "statemachine",
	}, stepMayUse...),
	"internal/pass/resync": {
		"events", "internal/canonical", "internal/metrics", "internal/outcome", "internal/ownership", "internal/pass/report", "internal/store",
		"statemachine",
	},
	"internal/pass/rollout": append([]string{
		"events", "internal/disruption", "internal/drain", "internal/k8s", "internal/metrics", "internal/store",
	}, stepMayUse...),
	"internal/pass/validate": append([]string{
		"events", "internal/canonical", "internal/k8s", "internal/observe", "internal/plan/charts", "internal/steps/refusals", "internal/store",
		"internal/validation", "statemachine",
	}, stepMayUse...),
	"statemachine/model": {"internal/pass/resync", "internal/store", "statemachine"}, // its tests

	"internal/handler": {
		"internal/metrics", "internal/outcome", "internal/ownership", "internal/params", "internal/plan", "internal/readonly", "internal/store",
		"statemachine",
	},

	// The construction of a step, or of what begins a pass, from a function's environment: for the function of that name
	// and for the function audit.
	"internal/wire/...":        {"internal/handler", "internal/k8s", "internal/outcome"},
	"internal/wire/controller": {"internal/handler", "internal/k8s", "internal/outcome", "internal/steps/admin"},
	"internal/wire/nodegroups": {
		"internal/handler", "internal/k8s", "internal/outcome", "internal/steps/placement", "internal/steps/capacity",
	},
	"internal/wire/validate": { // internal/pass/report has the bus
		"internal/handler", "internal/k8s", "internal/observe", "internal/plan", "internal/pass/report",
	},
	"internal/wire/audit": {
		"internal/handler", "internal/k8s", "internal/observe", "internal/outcome", "internal/pass/audit", "internal/pass/report",
		"internal/pass/validate", "internal/plan", "internal/steps/capacity",
		"internal/wire/access", "internal/wire/autoscaler", "internal/wire/cluster", "internal/wire/controller",
		"internal/wire/infrastructure", "internal/wire/network", "internal/wire/nodegroups",
		"internal/wire/nodepools", "internal/wire/proof", "internal/wire/queue", "internal/wire/validate",
		// Its test lists the operations of all steps.
		"internal/readonly", "internal/steps/access", "internal/steps/infrastructure", "internal/steps/network",
		"internal/steps/nodegroups", "internal/steps/nodepools", "internal/steps/queue",
	},

	// A function wires the step of its own name; functionsAlsoUse has the exceptions.
	"functions/...": {"internal/handler", "internal/outcome", "internal/store", "internal/wire/cluster"},

	"cmd/...": {
		"events", "internal/canonical", "internal/disruption", "internal/doctor", "internal/doctor/observe", "internal/k8s", "internal/outcome",
		"internal/ownership", "internal/params", "internal/plan", "internal/plan/charts", "internal/plan/nodes", "internal/register",
		"internal/store", "internal/validation", "statemachine",
	},
	"cdk":        {"events", "internal/karpenter", "internal/metrics", "internal/ownership", "internal/params", "statemachine"},
	"cdk/bundle": nil,

	"tools/karpenter":  {"internal/karpenter", "internal/ownership"}, // a module of its own
	"tools/mutants":    nil,
	"tools/prometheus": nil, // a module of its own, with tests only
	"examples":         nil, // another one, which is not built into anything
	"examples/cdk":     nil,

	"internal/architecture": nil,
	"internal/docs":         nil,
	// Fakes and servers for tests; only tests import them.
	"internal/testing/awsfake": {"events"},
	"internal/testing/k8sfake": {"internal/k8s", "internal/plan"},
	"internal/testing/k8stest": {"internal/k8s", "internal/karpenter", "internal/ownership", "internal/plan"},
}

var stepMayUse = []string{"internal/outcome", "internal/ownership", "internal/params", "internal/plan", "internal/resource"}

// functionsAlsoUse has the packages that a function wires besides its own step.
var functionsAlsoUse = map[string][]string{
	// The status of an execution that ended early.
	"functions/resync": {"internal/pass/report"},
	// Which has the bus.
	"functions/rollout": {"internal/pass/report"},
	// Its look at the queue.
	"functions/validate": {"internal/pass/audit", "internal/wire/queue", "internal/wire/validate"},
}

// testsAlsoUse has the packages that the _test.go files of every package may import.
var testsAlsoUse = []string{
	"events", "internal/k8s", "internal/karpenter", "internal/metrics", "internal/outcome", "internal/ownership", "internal/params",
	"internal/canonical", "internal/pass/resync", "internal/plan", "internal/plan/charts", "internal/plan/nodes", "internal/readonly",
	"internal/resource", "internal/store",
	"internal/testing/awsfake", "internal/testing/k8sfake", "internal/testing/k8stest", "internal/validation", "statemachine",
}

// owners has the only packages that may import an external library, by the beginning of the library's path: libraries that
// are large, or that one package is to wrap. Tests may import them anywhere.
var owners = map[string][]string{
	"github.com/aws/karpenter-provider-aws": {"internal/plan/nodes"},
	"sigs.k8s.io/karpenter":                 {"internal/plan/nodes"},
	"helm.sh/helm":                          {"internal/plan/charts"},
	"github.com/aws/aws-lambda-go":          {"internal/handler"},
	"github.com/aws/aws-cdk-go":             {"cdk", "examples/cdk"},
	"github.com/cdklabs/cdk-nag-go":         {"cdk"},
	"github.com/aws/constructs-go":          {"cdk"},
	"github.com/aws/jsii-runtime-go":        {"cdk", "examples/cdk"},
	"github.com/spf13/cobra":                {"cmd/sawhorse"},
	"github.com/spf13/pflag":                {"cmd/sawhorse"},
}

// pure has the packages that use no service, no clock and no environment.
var pure = []string{
	"events", "internal/canonical", "internal/disruption", "internal/doctor", "internal/karpenter", "internal/outcome",
	"internal/ownership", "internal/params", "internal/plan", "internal/plan/charts", "internal/plan/nodes", "internal/validation",
}

func TestImports(t *testing.T) {
	for _, p := range repository(t).root {
		allowed, known := rule(p.dir)
		if !known {
			t.Errorf("%s: no line in mayImport says what it may import", p.dir)
			continue
		}
		if step, ok := strings.CutPrefix(p.dir, "functions/"); ok {
			allowed = append(slices.Clone(allowed), "internal/steps/"+step, "internal/pass/"+step, "internal/wire/"+step)
			allowed = append(allowed, functionsAlsoUse[p.dir]...)
		}
		if step, ok := strings.CutPrefix(p.dir, "internal/wire/"); ok {
			allowed = append(slices.Clone(allowed), "internal/steps/"+step, "internal/pass/"+step)
		}
		for _, i := range p.own {
			if !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s, which mayImport does not allow", p.dir, i)
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
	if allowed, ok := mayImport[dir]; ok {
		return allowed, true
	}
	for folder := dir; strings.Contains(folder, "/"); {
		folder = folder[:strings.LastIndex(folder, "/")]
		if allowed, ok := mayImport[folder+"/..."]; ok {
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
	for name := range mayImport {
		if !strings.HasSuffix(name, "/...") && !dirs[name] {
			t.Errorf("mayImport has %s, which does not exist", name)
		}
	}
}

func TestNoImportCycles(t *testing.T) {
	all := map[string][]string{}
	for _, p := range repository(t).root {
		all[p.dir] = p.own
	}
	for dir := range all {
		if slices.Contains(reach(all, dir), dir) {
			t.Errorf("%s imports itself through others", dir)
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

// The size and the cold start of a function depend on every package that it imports, also indirectly.
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
		for _, heavy := range []struct{ dir, only string }{
			{"internal/plan/nodes", "functions/validate"}, {"internal/plan/charts", "functions/validate"},
			{"internal/steps/controller", "functions/controller"},
		} {
			wants := dir == heavy.only || dir == "functions/audit" // which runs all of them
			if slices.Contains(reached, heavy.dir) != wants {
				t.Errorf("%s: reaches %s: %v; only %s and functions/audit may and must", dir, heavy.dir, !wants, heavy.only)
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

func TestPurePackagesUseNoService(t *testing.T) {
	for _, p := range repository(t).root {
		if !slices.Contains(pure, p.dir) {
			continue
		}
		for _, i := range p.outside {
			for _, bad := range []string{
				"os", "net", "net/http", "context", "math/rand", "math/rand/v2", "github.com/aws/aws-sdk-go-v2", "k8s.io/client-go",
			} {
				// The interface Recorder and StepFunc; the validation functions of Kubernetes and Karpenter take a context.
				exception := i == "context" && (p.dir == "internal/outcome" || p.dir == "internal/plan/nodes")
				if (i == bad || strings.HasPrefix(i, bad+"/")) && !exception {
					t.Errorf("%s imports %s", p.dir, i)
				}
			}
		}
	}
}

// The sandbox tests the product from outside, through what a user sees.
func TestSandboxImportsNothingOfTheProduct(t *testing.T) {
	for _, p := range repository(t).sandbox {
		for _, i := range slices.Concat(p.own, p.ownInTests) {
			if !strings.HasPrefix(i, "sandbox/") {
				t.Errorf("%s imports %s", p.dir, i)
			}
		}
	}
}

// Only tests import test servers and fakes.
func TestOnlyTestsUseFakes(t *testing.T) {
	for _, p := range repository(t).root {
		for _, i := range p.own {
			if strings.HasPrefix(i, "internal/testing/") && !strings.HasPrefix(p.dir, "internal/testing/") {
				t.Errorf("%s imports %s outside its tests", p.dir, i)
			}
		}
	}
}
