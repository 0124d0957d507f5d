package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Runs the whole life of a rack, as `make demo` shows it.
func TestStory(t *testing.T) { pool.Take(t, stage.Long, stage.Untouched).Run(story.Main) }

// Types the commands of the quickstart, and compares what they print with what it shows.
func TestQuickstart(t *testing.T) {
	pool.Take(t, stage.Long, stage.Untouched).Run(story.Document("../../docs/quickstart.md"))
}

// Tests the acceptance script that is meant for a real account. It needs a rack that does not exist yet and a
// cluster without Karpenter.
func TestAcceptance(t *testing.T) {
	pool.Take(t, stage.Long, stage.Untouched, stage.Spoils).Run(func(s *story.Script) { story.Acceptance(s, "../../tools/acceptance.sh") })
}

// Twenty concurrent writes cost at most three iterations, no two of them overlap, and all values are in force at the end.
func TestBurst(t *testing.T) {
	sandbox := pool.Take(t)
	sandbox.Run(story.Enabled)
	since := time.Now()
	first := map[string]string{"karpenter_cpu_limit": "150", "karpenter_memory_limit_gb": "500"}
	others := map[string]string{
		"cluster_name": "demo", "karpenter_arch": "amd64,arm64", "karpenter_auth_mode": "true",
		"karpenter_capacity_types":    "spot,on-demand",
		"karpenter_consolidate_after": "5m", "karpenter_consolidation_enabled": "false", "karpenter_cpu_limit": "160",
		"karpenter_disruption_budget_nodes": "3", "karpenter_enabled": "true", "karpenter_instance_families": "c5,m5",
		"karpenter_instance_sizes": "large,xlarge", "karpenter_memory_limit_gb": "640", "karpenter_node_disk": "50",
		"karpenter_node_expiry": "24h", "karpenter_node_volume_type": "gp2", "node_disk": "30", "node_type": "m5.large", "paused": "false",
	}
	sandbox.Write(first)
	sandbox.Write(others)
	all := iterations(t, sandbox, since, len(first)+len(others))
	t.Logf("%d iterations: %+v", len(all), all)
	if len(all) == 0 || len(all) > 3 {
		t.Errorf("20 writes cost %d iterations", len(all))
	}
	sandbox.Run(func(s *story.Script) {
		s.Check("limits", "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'", "160 640Gi")
		s.Check("disruption",
			"kubectl get nodepool workload -o jsonpath='{.spec.disruption.consolidationPolicy} {.spec.disruption.consolidateAfter} "+
				"{.spec.disruption.budgets[0].nodes}'", "WhenEmpty 5m 3")
		s.Check("expiry", "kubectl get nodepool workload -o jsonpath='{.spec.template.spec.expireAfter}'", "24h")
		s.Check("requirements", "kubectl get nodepool workload -o jsonpath='{.spec.template.spec.requirements[*].values}'",
			`["on-demand","spot"] ["amd64","arm64"] ["c5","m5"] ["large","xlarge"]`)
		s.Check("volume",
			"kubectl get ec2nodeclass workload "+
				"-o jsonpath='{.spec.blockDeviceMappings[0].ebs.volumeSize} {.spec.blockDeviceMappings[0].ebs.volumeType}'", "50Gi gp2")
	})
}

// iterations waits until the executions of so many events have ended, and all others, and returns the iterations since a time
// in order. Overlapping iterations of one rack are a test error.
func iterations(t *testing.T, sandbox *stage.Stage, since time.Time, events int) []passes.Iteration {
	t.Helper()
	history, err := passes.Since(t.Context(), sandbox.Environment.AWS(), since, events)
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range history.Overlaps() {
		t.Errorf("two iterations at once: %s", both)
	}
	return history.Iterations
}

// A pass that finds nothing to do calls one Lambda function and writes nothing but its own record.
func TestNothingToDo(t *testing.T) {
	sandbox := pool.Take(t)
	sandbox.Run(story.Enabled)
	environment := sandbox.Environment
	if err := environment.Sandbox(t.Context(), http.MethodPut, "faults", []fault.Fault{}, nil); err != nil { // counts from here on
		t.Fatal(err)
	}
	since := time.Now()
	sandbox.Run(func(s *story.Script) {
		s.Request()
		s.Reconciled()
	})
	all := iterations(t, sandbox, since, 1)
	if len(all) != 1 || all[0].Outcome != "Unchanged" || all[0].Steps != 0 {
		t.Errorf("iterations %+v", all)
	}
	var report fault.Report
	if err := environment.Sandbox(t.Context(), http.MethodGet, "faults", nil, &report); err != nil {
		t.Fatal(err)
	}
	reads, writes := 0, []string{}
	for _, c := range report.Calls {
		switch {
		// The schedules' ticks may fall in here; a pass that they requested would be in iterations.
		case slices.Contains([]string{"", fault.StateMachine, "resync", "audit", "rollout"}, c.Function):
		case c.Function != "validate":
			t.Errorf("%s was called: %s", c.Function, c.Call)
		case reading(c.Action):
			reads += c.Count
		default:
			writes = append(writes, c.Service+" "+c.Action)
		}
	}
	t.Logf("%d reads, writes %v", reads, writes)
	if !slices.Equal(writes, []string{"dynamodb UpdateItem"}) {
		t.Errorf("writes %v, want the lease's renewal alone", writes)
	}
}

func reading(action string) bool {
	return slices.ContainsFunc([]string{"get", "list", "describe", "query"}, func(verb string) bool { // the API server's are in lower case
		return strings.HasPrefix(strings.ToLower(action), verb)
	})
}
