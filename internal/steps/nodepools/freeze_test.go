package nodepools

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// budgeted returns a NodePool of the rack with budgets of so many nodes.
func budgeted(name, cpu string, nodes ...any) object {
	made := pool(name, "demo", cpu)
	disruption := object{"consolidateAfter": "30s"}
	var budgets []any
	for _, n := range nodes {
		budgets = append(budgets, object{"nodes": n})
	}
	if budgets != nil {
		disruption["budgets"] = budgets
	}
	made["spec"].(object)["disruption"] = disruption
	return made
}

// freeze runs the part of the step and returns what it changed.
func (s *scene) freeze() (progress outcome.Progress, changed string) {
	s.Helper()
	progress, err := s.step.Run(context.Background(), s.plan, partFreeze)
	if err != nil {
		s.Fatal(err)
	}
	for _, change := range progress.Changes {
		changed += change.Subject + " "
	}
	return progress, changed
}

// has checks the budgets of a live NodePool, its CPU limit and its weight.
func (s *scene) has(name, want string) {
	s.Helper()
	spec, _, _ := unstructured.NestedMap(s.Get(pool(name, "demo", "")).Object, "spec")
	var nodes []any
	for _, budget := range budgets(object{"spec": spec}) {
		nodes = append(nodes, budget.(map[string]any)["nodes"])
	}
	if got := fmt.Sprintf("%v %v %v", nodes, spec["limits"].(map[string]any)["cpu"], spec["weight"]); got != want {
		s.Errorf("NodePool %s has %s, want %s", name, got, want)
	}
}

// A freeze reaches the NodePools that exist, and is taken off them. Nothing else of the plan is applied, and what others
// have set stays.
func TestFreeze(t *testing.T) {
	classes := []object{class("build", "demo"), class("new", "demo"), class("theirs", "demo"), class("workload", "demo")}
	live, build := budgeted("workload", "100", "10%"), budgeted("build", "8")
	s := begin(t, append(classes[:1:1], classes[3], build, live)...)
	s.waits("", "created EC2NodeClass/build", "created EC2NodeClass/workload", "created NodePool/build", "created NodePool/workload")
	s.ready(live)
	s.Change(live, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "weight")
	})
	s.ready(live)
	theirs := pool("theirs", "", "1")
	s.Create(theirs)
	before := s.Get(theirs).GetResourceVersion()

	s.plan.NodePools.Objects = append(classes, build, budgeted("new", "8"), budgeted("theirs", "8"), budgeted("workload", "200", "10%"))
	s.plan.NodePools.Frozen = true
	progress, changed := s.freeze()
	if changed != "NodePool/build NodePool/workload " || progress.Wait == 0 || len(progress.Incidents) > 0 {
		t.Errorf("changed %q, %+v", changed, progress)
	}
	s.has("workload", "[10% 0] 100 7")
	s.has("build", "[10% 0] 8 <nil>")
	if s.Get(class("new", "demo")) != nil || s.Get(pool("new", "demo", "1")) != nil || s.Get(theirs).GetResourceVersion() != before {
		t.Error("something else was applied")
	}
	t.Log("it waits only once for a pool that may have become unfit")
	if progress, changed := s.freeze(); changed != "" || progress.Wait != 0 {
		t.Errorf("changed %q, %+v", changed, progress)
	}

	t.Log("the plan finds nothing to change of a frozen pool, and the freeze is taken off without a trace, by the plan or alone")
	s.Remove(theirs)
	s.plan.NodePools.Objects = append(classes[:1:1], classes[3], build, budgeted("workload", "200", "10%"))
	for _, part := range []string{partFreeze, ""} {
		s.plan.NodePools.Frozen = true
		if part == "" {
			s.freeze()
		}
		s.run(map[string][]string{partFreeze: {"updated NodePool/workload"}}[part]...) // its CPU limit
		s.has("workload", "[10% 0] 200 7")
		s.plan.NodePools.Frozen = false
		if _, err := s.step.Run(context.Background(), s.plan, part); err != nil {
			t.Fatal(err)
		}
		s.has("workload", "[10%] 200 7")
		s.has("build", "[10%] 8 <nil>")
	}
}

// Once a freeze is over, budgets that a tool sets again and again are the tool's.
func TestBudgetsThatOthersSetAfterAFreeze(t *testing.T) {
	live := budgeted("workload", "100", "10%")
	s := begin(t, live)
	s.run("created NodePool/workload")
	for _, frozen := range []bool{true, false} {
		s.plan.NodePools.Frozen = frozen
		s.freeze()
	}
	for _, want := range []string{"[10%] 100 <nil>", "[50%] 100 <nil>"} {
		s.Change(live, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(o.Object, []any{object{"nodes": "50%"}}, "spec", "disruption", "budgets")
		})
		progress, _ := s.freeze()
		s.has("workload", want)
		if len(progress.Warnings)+len(progress.Incidents) != 1 {
			t.Errorf("%+v", progress)
		}
	}
	s.plan.NodePools.Frozen = true
	s.freeze()
	s.has("workload", "[10% 0] 100 <nil>")
}

// A pool that the plan does not have any more keeps its nodes until it is removed: the freeze lies over it too, and goes with the
// plan's, also from a pool without budgets of its own. Otherwise Karpenter would never replace its nodes.
func TestFreezeOfAPoolThatIsToBeRemoved(t *testing.T) {
	removed, closed, silent := budgeted("removed", "100", "20%"), budgeted("closed", "100", "0"), budgeted("silent", "100")
	s := begin(t, removed, closed, silent)
	s.run("created NodePool/removed", "created NodePool/closed", "created NodePool/silent")
	s.plan.NodePools.Frozen = true
	s.freeze() // and the parameters take the pools out
	s.plan.NodePools.Objects, s.plan.NodePools.Frozen = []object{class("workload", "demo"), budgeted("workload", "100", "10%")}, true
	for range 2 {
		s.freeze()
		s.has("removed", "[20% 0] 100 <nil>")
		s.has("closed", "[0 0] 100 <nil>")
		s.has("silent", "[10% 0] 100 <nil>")
	}
	s.plan.NodePools.Frozen = false
	for range 2 {
		s.freeze()
		s.has("removed", "[20%] 100 <nil>")
		s.has("closed", "[0] 100 <nil>")
		s.has("silent", "[10%] 100 <nil>")
	}
}

// Somebody writes a NodePool between the read and the write of the step: the step tries again, and sets nothing back.
func TestFreezeOfAPoolThatIsWritten(t *testing.T) {
	live := budgeted("workload", "100", "10%")
	s := begin(t, live)
	s.run("created NodePool/workload")
	steady, config, written := s.step.Connect, s.As(ownership.Group("nodepools")), false
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return before{next, func() {
			if !written {
				written = true
				s.Change(live, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, "300", "spec", "limits", "cpu")
				})
			}
		}}
	})
	s.step.Connect = func(context.Context, plan.Cluster) (*k8s.Client, error) { return k8s.New("test", config) }
	s.plan.NodePools.Frozen = true
	progress, changed := s.freeze()
	if !written || changed != "" || progress.Wait == 0 || !strings.Contains(progress.Note, "NodePool/workload: apply: ") {
		t.Errorf("changed %q, %+v", changed, progress)
	}
	s.has("workload", "[10%] 300 <nil>")
	s.step.Connect = steady
	if _, changed := s.freeze(); changed != "NodePool/workload " {
		t.Errorf("changed %q", changed)
	}
	s.has("workload", "[10% 0] 300 <nil>")
}

// before is a transport that does something before each write.
type before struct {
	http.RoundTripper
	write func()
}

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (b before) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

func (b before) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		b.write()
	}
	return b.RoundTripper.RoundTrip(request)
}
