package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// inState adds a second system group with an EKS status.
func inState(status string, more ...func(*plan.NodeGroup)) plan.Facts {
	f := facts()
	g := plan.NodeGroup{Name: "system2", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m6i.large"}, Status: status}
	for _, change := range more {
		change(&g)
	}
	f.NodeGroups = append(f.NodeGroups, g)
	return f
}

// A group that is being deleted or was never created is not a system group. Nothing waits for its label.
func TestGroupsThatCountAsAbsent(t *testing.T) {
	for status, want := range map[string]string{
		"DELETING": "system", "CREATE_FAILED": "system",
		"": "system system2", "ACTIVE": "system system2", "CREATING": "system system2", "UPDATING": "system system2",
		"DEGRADED": "system system2", "DELETE_FAILED": "system system2",
	} {
		if got := strings.Join(build(t, on, inState(status)).Plan.Nodegroups.System, " "); got != want {
			t.Errorf("%q: system groups %s, want %s", status, got, want)
		}
	}
	for _, status := range []string{"DELETING", "CREATE_FAILED"} {
		f := facts()
		f.NodeGroups[1].Status = status
		if got := build(t, on, f); len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "no system node group") {
			t.Errorf("the only system group is %s: %v", status, got.Problems)
		}
		if got := build(t, with(on, "system_node_groups", "system2"), inState(status)); len(got.Problems) == 0 ||
			got.Problems[0].Parameter != "system_node_groups" {
			t.Errorf("%s, and named: %v", status, got.Problems)
		}
		f = facts()
		f.NodeGroups = append(f.NodeGroups, additional("web", ""))
		f.NodeGroups[2].Status = status
		scaled := func(arg string) bool { return strings.HasSuffix(arg, ":eks-web") }
		if got := build(t, on, f); len(got.Problems) > 0 || slices.ContainsFunc(got.Plan.Autoscaler.Args, scaled) {
			t.Errorf("an additional group without taints that is %s: %v, Cluster Autoscaler has %v", status, got.Problems,
				got.Plan.Autoscaler.Args)
		}
	}
}

// What EKS reports about a degraded group reaches the user as a warning.
func TestADegradedGroupIsAWarning(t *testing.T) {
	f := inState("DEGRADED", func(g *plan.NodeGroup) {
		g.Health.Issues = []plan.HealthIssue{
			{Code: "AsgInstanceLaunchFailures", Message: "Could not launch On-Demand Instances."}, {Code: "InsufficientFreeAddresses"},
		}
	})
	got := build(t, on, f)
	if len(got.Problems) > 0 || len(got.Warnings) != 1 || got.Warnings[0].Parameter != "system_node_groups" ||
		!strings.Contains(got.Warnings[0].Message,
			"node group system2 is DEGRADED: AsgInstanceLaunchFailures: Could not launch On-Demand Instances.; "+
				"InsufficientFreeAddresses;") {
		t.Errorf("problems %v, warnings %v", got.Problems, got.Warnings)
	}
	if got := build(t, on, inState("UPDATING")); len(got.Warnings) > 0 {
		t.Errorf("UPDATING: %v", got.Warnings)
	}
}

// A deleted launch template does not affect existing nodes.
func TestALostLaunchTemplateIsAWarning(t *testing.T) {
	lost := func(g *plan.NodeGroup) { g.LostTemplate = "lt-1 version 3" }
	for _, written := range []texts{on, with(on, "karpenter_enabled", "false"), {"karpenter_auth_mode": "true"}} {
		f := inState("DEGRADED", lost)
		f.Records.WasOn = true
		got := build(t, written, f)
		if len(got.Problems) > 0 ||
			!slices.ContainsFunc(got.Warnings,
				said("node group system2 was made from launch template lt-1 version 3, which EC2 no longer has")) {
			t.Errorf("%v: problems %v, warnings %v", written, got.Problems, got.Warnings)
		}
	}
	// The copy of a SPOT group would be created from it.
	f := facts()
	f.NodeGroups[1].CapacityType, f.NodeGroups[1].LostTemplate = "SPOT", "lt-1 version 3"
	if got := build(t, named, f); len(got.Problems) != 1 || got.Problems[0].Parameter != "system_node_groups" ||
		!strings.Contains(got.Problems[0].Message, "cannot be copied") {
		t.Errorf("a SPOT group: %v", got.Problems)
	}
	f.NodeGroups = append(f.NodeGroups, copied("demo"))
	if got := build(t, named, f); len(got.Problems) > 0 {
		t.Errorf("a SPOT group that has been copied: %v", got.Problems)
	}
}

// A SPOT group that EKS deletes because its copy has replaced it is waited for. One that someone else deletes is not
// copied.
func TestASPOTGroupThatIsDeleted(t *testing.T) {
	f := facts()
	f.NodeGroups[1].CapacityType, f.NodeGroups[1].Status = "SPOT", "DELETING"
	if got := build(t, named, f); len(got.Plan.Nodegroups.Replaced) > 0 || len(got.Problems) == 0 {
		t.Errorf("without a copy: replaced %v, problems %v", got.Plan.Nodegroups.Replaced, got.Problems)
	}
	f.NodeGroups = append(f.NodeGroups, copied("demo"))
	got := build(t, named, f)
	if len(got.Plan.Nodegroups.Replaced) != 1 || len(got.Problems) > 0 ||
		!slices.Equal(got.Plan.Nodegroups.System, []string{ownership.NodeGroupCopy("system")}) {
		t.Errorf("with its copy: %+v, problems %v", got.Plan.Nodegroups, got.Problems)
	}
}

// said matches a problem or warning that contains the words.
func said(words string) func(params.Problem) bool {
	return func(p params.Problem) bool { return strings.Contains(p.Message, words) }
}
