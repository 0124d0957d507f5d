package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The stages of a replacement: SPOT group only, both groups, copy only.
var (
	spotOnly  = func(f *plan.Facts) { f.NodeGroups[1].CapacityType = "SPOT" }
	spotAnd   = func(f *plan.Facts) { spotOnly(f); f.NodeGroups = append(f.NodeGroups, copied("demo")) }
	copyAlone = func(f *plan.Facts) { f.NodeGroups[1] = copied("demo") }
)

func at(t *testing.T, written texts, station func(*plan.Facts)) plan.Outcome {
	t.Helper()
	f := facts()
	station(&f)
	got := build(t, written, f)
	if len(got.Problems) > 0 {
		t.Fatal(got.Problems)
	}
	return got
}

// stepNames returns the names of a plan's steps that are due.
func stepNames(p plan.Plan, applied texts) string {
	var all []string
	for _, s := range p.Due(applied) {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

func TestTheSPOTGroupGoesLast(t *testing.T) {
	got := at(t, with(named, "build_node_enabled", "true"), spotOnly)
	want := "access access/conflicts network nodegroups/labels nodegroups/copy infrastructure queue controller/crds controller/release " +
		"controller/plugin " +
		"nodepools proof autoscaler nodegroups/build nodegroups/placement nodegroups/retire"
	if all := stepNames(got.Plan, nil); all != want {
		t.Errorf("steps %s", all)
	}
	if len(got.Warnings) != 1 || got.Warnings[0].Parameter != "system_node_groups" {
		t.Errorf("warnings %v", got.Warnings)
	}
}

// The copy counts under the old name from the beginning: after the replacement no other step is due and there is no
// problem.
func TestTheCopyCountsUnderTheOldName(t *testing.T) {
	before := at(t, named, spotOnly).Plan
	applied := texts{}
	for _, s := range before.Steps {
		applied[s.Name] = s.Fingerprint
	}
	after := at(t, named, copyAlone)
	if due := stepNames(after.Plan, applied); due != "" || len(after.Plan.Nodegroups.Replaced) > 0 || len(after.Warnings) > 0 {
		t.Errorf("due %q, replaced %v, warnings %v", due, after.Plan.Nodegroups.Replaced, after.Warnings)
	}
	both := at(t, named, spotAnd).Plan
	if due := stepNames(both, applied); due != "nodegroups/copy nodegroups/retire" {
		t.Errorf("a SPOT group that is there again: due %q", due)
	}
	for _, p := range []plan.Plan{before, both, after.Plan} {
		if !reflect.DeepEqual(p.Nodegroups.System, []string{"system-ondemand"}) {
			t.Errorf("system groups %v", p.Nodegroups.System)
		}
	}
}

// When Karpenter is turned off, the copy stays and both groups are system groups. nodegroups/keep is needed only if
// Karpenter was on.
func TestOffTheCopyStays(t *testing.T) {
	off := with(named, "karpenter_enabled", "false")
	wasOn := func(f *plan.Facts) {
		f.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared}
	}
	both := at(t, off, func(f *plan.Facts) { spotAnd(f); wasOn(f) }).Plan
	if all := stepNames(both, nil); !strings.Contains(all, "nodegroups/labels nodegroups/keep nodegroups/build") ||
		strings.Contains(all, "retire") {
		t.Errorf("steps %s", all)
	}
	if !reflect.DeepEqual(both.Nodegroups.System, []string{"system", "system-ondemand"}) {
		t.Errorf("system groups %v", both.Nodegroups.System)
	}
	alone := at(t, off, func(f *plan.Facts) { copyAlone(f); wasOn(f) }).Plan
	if all := stepNames(alone, nil); strings.Contains(all, "keep") ||
		!reflect.DeepEqual(alone.Nodegroups.System, []string{"system-ondemand"}) {
		t.Errorf("system groups %v, steps %s", alone.Nodegroups.System, all)
	}
	if never := at(t, off, spotOnly).Plan; len(never.Nodegroups.Replaced) > 0 {
		t.Errorf("Karpenter was never on, and the plan replaces %v", never.Nodegroups.Replaced)
	}
}

// A group that someone else tagged like a copy, or a copy of another cluster, is not a system group.
func TestOnlyOurOwnCopyCounts(t *testing.T) {
	for key, value := range (texts{
		"sawhorse.dev/rack": "other", "sawhorse.dev/cluster": "arn:aws:eks:eu-central-1:123456789012:cluster/else",
		"sawhorse.dev/replaces": "else",
	}) {
		f := facts()
		f.NodeGroups[1] = copied("demo")
		f.NodeGroups[1].Tags[key] = value
		f.NodeGroups[1].Taints = []plan.NodeGroupTaint{{Key: "a", Effect: "NO_SCHEDULE"}}
		var wrong []string
		for _, p := range build(t, named, f).Problems {
			wrong = append(wrong, p.Parameter)
		}
		if strings.Join(wrong, " ") != "system_node_groups" {
			t.Errorf("%s=%s: problems %v", key, value, wrong)
		}
	}
}

// The problem asks for all system groups to be named, because those that are not named become additional groups.
func TestADiscoveredSPOTGroupIsToBeNamed(t *testing.T) {
	f := facts()
	spotOnly(&f)
	f.NodeGroups = append(f.NodeGroups, plan.NodeGroup{Name: "more", CapacityType: "ON_DEMAND"})
	got := build(t, on, f)
	if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "write system_node_groups=system,more ") {
		t.Errorf("%v", got.Problems)
	}
}

// Nodes of a copy have the rights of its role, so the deployment defines which roles copies may get.
func TestCopiesGetRolesOfTheDeploymentOnly(t *testing.T) {
	const problem = "its role arn:aws:iam::123456789012:role/team/demo-node is none of those that this deployment of Sawhorse may give " +
		"to node groups; have the role's name added to the context value nodeRoles"
	for patterns, refused := range map[string]bool{
		"": true, "demo-node": true, "other/*": true, "team/demo": true, "team/demo-node": false, "team/*-node": false,
		"*/demo-node": false,
	} {
		f := facts()
		spotOnly(&f)
		f.NodeGroups[1].NodeRole = "arn:aws:iam::123456789012:role/team/demo-node"
		f.Deployment.NodeRoles = strings.Fields(patterns)
		got := build(t, named, f)
		if !refused && len(got.Problems) > 0 ||
			refused &&
				(len(got.Problems) != 1 || got.Problems[0].Parameter != "system_node_groups" ||
					!strings.Contains(got.Problems[0].Message, problem)) {
			t.Errorf("nodeRoles %q: %v", patterns, got.Problems)
		}
	}
}
