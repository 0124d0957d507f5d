package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// beginSPOT returns a rack whose system group has SPOT capacity. Nodes are created and deleted with their groups.
func beginSPOT(t *testing.T) scene {
	s := begin(t)
	s.step.Now, s.step.Drain = s.cloud.Now, 5*time.Minute
	s.plan.Goal = plan.GoalKarpenter
	s.plan.Nodegroups.Replaced = []plan.Replacement{{Group: "system", Copy: "system-ondemand", Tags: map[string]string{
		ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, ownership.TagReplaces: "system", "team": "ours",
	}}}
	old := s.cloud.EKS.Groups["system"]
	old.CapacityType, old.NodeRole, old.Version, old.ReleaseVersion = types.CapacityTypesSpot, new("arn:aws:iam::123456789012:role/nodes"),
		new("1.35"), new("1.35.2-20260101")
	old.InstanceTypes, old.DiskSize, old.UpdateConfig = []string{"m6i.large", "m6a.large"}, new(int32(40)), &types.NodegroupUpdateConfig{
		MaxUnavailable: new(int32(1)),
	}
	old.Taints = []types.Taint{{Key: new("a"), Value: new("b"), Effect: types.TaintEffectPreferNoSchedule}}
	old.Tags = map[string]string{"team": "theirs", "cost": "1", "aws:cloudformation:stack-name": "s"}
	s.ready("system-1", "system", "theirs")
	s.cloud.EKS.Changed = func(group *types.Nodegroup, there bool) {
		for i := range *group.ScalingConfig.DesiredSize {
			name := fmt.Sprintf("%s-%d", *group.NodegroupName, i+1)
			if delete(s.api.Objects, "/api/v1/nodes/"+name); there {
				s.ready(name, *group.NodegroupName, ownership.LabelSystemNode)
			}
		}
	}
	return s
}

// ready adds a Ready node with one more label.
func (s scene) ready(name, group, label string) {
	s.api.Put("/api/v1/nodes/"+name, "v1", "Node", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{ownership.LabelNodeGroup: group, label: "true"}}, "spec": map[string]any{},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	})
}

func (s scene) groups() string {
	return strings.Join(slices.Sorted(maps.Keys(s.cloud.EKS.Groups)), " ")
}

// fails runs a part that must fail with an error that contains saying.
func (s scene) fails(part, saying string) error {
	s.Helper()
	for range 10 {
		progress, err := s.step.Run(s.Context(), s.plan, part)
		if err != nil && !strings.Contains(err.Error(), saying) {
			s.Fatalf("%v, want %q", err, saying)
		}
		if err != nil {
			return err
		}
		if progress.Wait == 0 {
			break
		}
	}
	s.Fatalf("%s did not fail", part)
	return nil
}

func TestCopiesASPOTGroup(t *testing.T) {
	s := beginSPOT(t)
	if _, changes := s.done("copy"); changes != "created as an on-demand copy of system node group system-ondemand" {
		t.Errorf("changes %s", changes)
	}
	old, got := s.cloud.EKS.Groups["system"], s.cloud.EKS.Groups["system-ondemand"]
	if got.CapacityType != types.CapacityTypesOnDemand || s.size("system-ondemand") != "2 2 4" || *got.DiskSize != 40 ||
		*got.ReleaseVersion != "1.35.2-20260101" {
		t.Errorf("%+v", got)
	}
	for what, pair := range map[string][2]any{
		"instance types": {old.InstanceTypes, got.InstanceTypes}, "subnets": {old.Subnets, got.Subnets}, "taints": {old.Taints, got.Taints},
		"role": {old.NodeRole, got.NodeRole},
		"AMI":  {old.AmiType, got.AmiType}, "update config": {old.UpdateConfig, got.UpdateConfig},
		"labels": {map[string]string{"theirs": "1", ownership.LabelSystemNode: "true"}, got.Labels},
		"tags": {
			map[string]string{
				"team": "ours", "cost": "1", ownership.TagRack: "demo", ownership.TagCluster: awsfake.ClusterARN, ownership.TagReplaces: "system",
			}, got.Tags,
		},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[1], pair[0])
		}
	}
	s.unchanged("copy")
	t.Log("the old group is as it was")
	if s.cordoned() != "" || old.Labels[ownership.LabelSystemNode] != "" || old.Status != types.NodegroupStatusActive {
		t.Errorf("cordoned %q, %+v", s.cordoned(), old)
	}
}

// EKS refuses settings that the launch template has too, and has no AMIs of older versions than the cluster's.
func TestCopiesAGroupWithALaunchTemplate(t *testing.T) {
	s := beginSPOT(t)
	old := s.cloud.EKS.Groups["system"]
	old.LaunchTemplate = &types.LaunchTemplateSpecification{Id: new("lt-1"), Name: new("nodes"), Version: new("3")}
	old.Version, old.InstanceTypes, old.Labels, old.Tags = new("1.34"), nil, nil, nil
	s.done("copy")
	got := s.cloud.EKS.Groups["system-ondemand"]
	if got.LaunchTemplate.Name != nil || *got.LaunchTemplate.Id != "lt-1" || *got.LaunchTemplate.Version != "3" || got.DiskSize != nil ||
		got.ReleaseVersion != nil || got.AmiType != old.AmiType {
		t.Errorf("%+v, template %+v", got, got.LaunchTemplate)
	}
	s = beginSPOT(t)
	old = s.cloud.EKS.Groups["system"]
	old.LaunchTemplate, old.AmiType = &types.LaunchTemplateSpecification{Name: new("nodes"), Version: new("3")}, types.AMITypesCustom
	s.done("copy")
	if got := s.cloud.EKS.Groups["system-ondemand"]; *got.LaunchTemplate.Name != "nodes" || got.AmiType != "" || got.ReleaseVersion != nil {
		t.Errorf("%+v, template %+v", got, got.LaunchTemplate)
	}
}

// Both parts reject a group that has the copy's name and is not ours, before they change anything.
func TestRefusesAForeignGroupOfTheCopysName(t *testing.T) {
	for _, part := range []string{"copy", "retire"} {
		s := beginSPOT(t)
		s.cloud.EKS.Group("system-ondemand", size3(1, 1, 1), nil).Tags = map[string]string{
			ownership.TagRack: "demo", ownership.TagReplaces: "system",
		}
		var rejected *outcome.Rejected
		if err := s.fails(part, "write system-ondemand in the place of system"); !errors.As(err, &rejected) ||
			rejected.Problems[0].Parameter != "system_node_groups" {
			t.Errorf("%s: %v", part, err)
		}
		if len(s.cloud.Writes())+len(s.api.Writes) > 0 {
			t.Errorf("%s: writes %v %v", part, s.cloud.Writes(), s.api.Writes)
		}
	}
}

func TestTellsWhyACopyWasNotMade(t *testing.T) {
	s := beginSPOT(t)
	s.cloud.EKS.Issues = []types.Issue{{Code: types.NodegroupIssueCodeInsufficientFreeAddresses, Message: new("subnet-a is full")}}
	s.fails("copy", "EKS gave up: InsufficientFreeAddresses: subnet-a is full; correct that and delete node group system-ondemand")
	t.Log("and once that is mended")
	s.cloud.EKS.Issues = nil
	delete(s.cloud.EKS.Groups, "system-ondemand")
	if s.done("copy"); s.groups() != "build system system-ondemand" {
		t.Errorf("groups %s", s.groups())
	}
}

func TestReplacesASPOTGroup(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.pod("agent", "system-1", "Running", "DaemonSet")
	s.pod("finished", "system-1", "Succeeded", "Job")
	s.pod("static", "system-1", "Running", "")
	s.api.Objects["/api/v1/namespaces/default/pods/static"].SetAnnotations(map[string]string{"kubernetes.io/config.mirror": "x"})
	s.pod("web", "system-1", "Running", "ReplicaSet")
	s.pod("elsewhere", "build-1", "Running", "ReplicaSet")
	progress, changes := s.done("retire")
	if changes != "cordoned Node/system-1, evicted 1 pods node group system, deleted, "+
		"system-ondemand has taken its place node group system" || len(progress.Warnings) > 0 {
		t.Errorf("%s, %v", changes, progress.Warnings)
	}
	if s.groups() != "build system-ondemand" || len(s.checkpoints.Kept) > 0 {
		t.Errorf("groups %s, checkpoints %v", s.groups(), s.checkpoints.Kept)
	}
	for name, there := range map[string]bool{"web": false, "agent": true, "static": true, "elsewhere": true} {
		if got := s.api.Objects["/api/v1/namespaces/default/pods/"+name] != nil; got != there {
			t.Errorf("pod %s: %v", name, got)
		}
	}
	s.unchanged("retire")
	s.unchanged("copy")
}

// The old group is deleted only when all nodes of the copy are Ready, uncordoned and labelled.
func TestDoesNotRetireBeforeTheCopyIsReady(t *testing.T) {
	for what, spoil := range map[string]func(scene){
		"not Ready": func(s scene) {
			s.api.Objects["/api/v1/nodes/system-ondemand-2"].Object["status"] = map[string]any{
				"conditions": []any{map[string]any{"type": "Ready", "status": "False"}},
			}
		},
		"cordoned": func(s scene) {
			s.api.Objects["/api/v1/nodes/system-ondemand-2"].Object["spec"] = map[string]any{"unschedulable": true}
		},
		"no label":  func(s scene) { s.ready("system-ondemand-2", "system-ondemand", "else") },
		"one short": func(s scene) { delete(s.api.Objects, "/api/v1/nodes/system-ondemand-2") },
		"creating": func(s scene) {
			s.cloud.EKS.Delay, s.cloud.EKS.Groups["system-ondemand"].Status = 9, types.NodegroupStatusCreating
		},
	} {
		s := beginSPOT(t)
		s.done("copy")
		spoil(s)
		s.cloud.Forget()
		for _, part := range []string{"copy", "retire"} {
			if progress, changes := s.run(part); progress.Wait == 0 || changes != "" || len(s.cloud.Writes())+len(s.api.Writes) > 0 ||
				!strings.Contains(progress.Note, "system-ondemand") {
				t.Errorf("%s: %s: %+v, %s", what, part, progress, changes)
			}
		}
	}
	s := beginSPOT(t)
	s.fails("retire", "its copy system-ondemand has been deleted; the next pass makes it again")
}

// What EKS says of a copy is told with what it lacks.
func TestACopyThatIsNotReadyNamesItsIssues(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	delete(s.api.Objects, "/api/v1/nodes/system-ondemand-2")
	const ready = "1 of the 2 nodes of node group system-ondemand are Ready"
	if progress, _ := s.run("copy"); progress.Note != ready {
		t.Errorf("%q, want %q", progress.Note, ready)
	}
	s.cloud.EKS.Groups["system-ondemand"].Health = &types.NodegroupHealth{Issues: []types.Issue{
		{Code: types.NodegroupIssueCodeInsufficientFreeAddresses, Message: new("no free address in subnet-1")},
	}}
	const want = ready + " (InsufficientFreeAddresses: no free address in subnet-1)"
	if progress, _ := s.run("copy"); progress.Note != want {
		t.Errorf("%q, want %q", progress.Note, want)
	}
}

// A PodDisruptionBudget holds up the drain for a limited time. An incident names the pods that it kept.
func TestABudgetHoldsUpTheDrainForATime(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	for i := range 9 {
		s.pod(fmt.Sprintf("db-%d", i), "system-1", "Running", "StatefulSet")
	}
	s.api.Protected = map[string]bool{}
	for i := range 8 {
		s.api.Protected[fmt.Sprintf("/api/v1/namespaces/default/pods/db-%d", i)] = true
	}
	first, _ := s.run("retire")
	for s.cloud.Now().Sub(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) < 4*time.Minute {
		s.cloud.Pass(20 * time.Second)
		progress, changes := s.run("retire")
		if progress.Wait == 0 || changes != "" ||
			!strings.Contains(progress.Note, "8 pods leave the nodes of node group system: Pod/default/db-0, ") ||
			!strings.HasSuffix(progress.Note, "and 3 more") {
			t.Fatalf("%+v, %s", progress, changes)
		}
	}
	if first.Wait == 0 || s.groups() != "build system system-ondemand" {
		t.Errorf("%+v, groups %s", first, s.groups())
	}
	progress, changes := s.drains(100 * time.Second)
	if !strings.HasPrefix(changes, "deleted") || len(progress.Incidents) != 1 ||
		!strings.Contains(progress.Incidents[0].Message,
			"8 pods did not leave the nodes of node group system within 5m0s: Pod/default/db-0") {
		t.Errorf("%s, %v", changes, progress.Incidents)
	}
	if s.done("retire"); s.groups() != "build system-ondemand" {
		t.Errorf("groups %s", s.groups())
	}
}

// drains calls the step every 20 s for so long, or until it deletes the group.
func (s scene) drains(d time.Duration) (progress outcome.Progress, changes string) {
	s.Helper()
	for until := s.cloud.Now().Add(d); s.cloud.Now().Before(until); s.cloud.Pass(20 * time.Second) {
		if progress, changes = s.run("retire"); strings.HasPrefix(changes, "deleted") {
			break
		}
	}
	return progress, changes
}

// A pod whose eviction the API server does not take at all holds up neither the others nor the end of the drain.
func TestAPodThatCannotBeEvictedAtAll(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	for i := range 30 {
		s.pod(fmt.Sprintf("web-%d", i), "system-1", "Running", "StatefulSet")
	}
	s.pod("a", "system-1", "Running", "StatefulSet")
	s.api.Unevictable = map[string]bool{"/api/v1/namespaces/default/pods/a": true}
	progress, _ := s.drains(4 * time.Minute)
	if !strings.Contains(progress.Note, "1 pods leave the nodes of node group system: Pod/default/a (Pod/default/a: evict: ") {
		t.Errorf("%+v", progress)
	}
	progress, changes := s.drains(80 * time.Second)
	if !strings.HasPrefix(changes, "deleted") || len(progress.Incidents) != 1 ||
		!strings.Contains(progress.Incidents[0].Message, "1 pods did not leave the nodes of node group system within 5m0s: Pod/default/a") {
		t.Errorf("%s, %v", changes, progress.Incidents)
	}
}

// While a rack is paused, its pods lose none of their time.
func TestTheTimeOfADrainStandsStill(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.pod("db", "system-1", "Running", "StatefulSet")
	s.api.Protected = map[string]bool{"/api/v1/namespaces/default/pods/db": true}
	s.drains(2 * time.Minute)
	s.cloud.Pass(time.Hour)
	if progress, changes := s.drains(2 * time.Minute); progress.Wait == 0 || changes != "" {
		t.Errorf("%s, %+v", changes, progress)
	}
	if _, changes := s.drains(100 * time.Second); !strings.HasPrefix(changes, "deleted") {
		t.Error(changes)
	}
}

// The recorded drain of an earlier group of the same name does not count: the new group's pods have all of their time.
func TestANewGroupOfTheNameHasItsOwnTime(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.pod("db", "system-1", "Running", "StatefulSet")
	s.api.Protected = map[string]bool{"/api/v1/namespaces/default/pods/db": true}
	s.drains(4*time.Minute + 40*time.Second)
	s.cloud.EKS.Groups["system"].CreatedAt = new(s.cloud.Now())
	if progress, _ := s.drains(time.Minute); progress.Wait == 0 || s.groups() != "build system system-ondemand" ||
		s.cloud.EKS.Groups["system"].Status != types.NodegroupStatusActive {
		t.Errorf("%+v, groups %s", progress, s.groups())
	}
	t.Log("and nothing is left of one that came back as an on-demand group")
	s.cloud.EKS.Groups["system"].CapacityType = types.CapacityTypesOnDemand
	if s.done("retire"); len(s.checkpoints.Kept) > 0 {
		t.Errorf("checkpoints %v", s.checkpoints.Kept)
	}
}

func TestEvictsSomeWithEachCall(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	for i := range 50 {
		s.pod(fmt.Sprintf("web-%d", i), "system-1", "Running", "ReplicaSet")
	}
	var all []string
	for range 4 {
		_, changes := s.run("retire")
		all = append(all, changes)
	}
	want := "cordoned Node/system-1, evicted 20 pods node group system; evicted 20 pods node group system; " +
		"evicted 10 pods node group system; deleted, system-ondemand has taken its place node group system"
	if got := strings.Join(all, "; "); got != want {
		t.Errorf("%s", got)
	}
}

// EKS may give up a deletion. Each pass reports the reason and tries again.
func TestTriesToDeleteAgainWithEachPass(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.cloud.EKS.Issues = []types.Issue{{Code: types.NodegroupIssueCodeAccessDenied}}
	s.fails("retire", "node group system: delete: EKS gave up: AccessDenied")
	s.cloud.EKS.Issues = nil
	if s.done("retire"); s.groups() != "build system-ondemand" {
		t.Errorf("groups %s", s.groups())
	}
}

// A group that was created again with on-demand capacity is not deleted.
func TestLeavesAGroupThatIsNoSPOTGroupAnyMore(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.cloud.EKS.Groups["system"].CapacityType = types.CapacityTypesOnDemand
	s.unchanged("retire")
	delete(s.cloud.EKS.Groups, "system")
	delete(s.cloud.EKS.Groups, "system-ondemand")
	s.unchanged("copy")
	s.unchanged("retire")
}

// Karpenter is turned off in the middle of a replacement: the copy stays, and the old group's nodes are uncordoned.
func TestOffKeepsBothGroups(t *testing.T) {
	s := beginSPOT(t)
	s.done("copy")
	s.pod("web", "system-1", "Running", "ReplicaSet")
	if s.run("retire"); s.cordoned() != "system-1" || len(s.checkpoints.Kept) != 1 {
		t.Fatalf("cordoned %q, checkpoints %v", s.cordoned(), s.checkpoints.Kept)
	}
	s.plan.Goal = plan.GoalAccess
	if _, changes := s.done("keep"); changes != "uncordoned Node/system-1" || s.groups() != "build system system-ondemand" ||
		len(s.checkpoints.Kept) > 0 {
		t.Errorf("%s, groups %s, checkpoints %v", changes, s.groups(), s.checkpoints.Kept)
	}
	s.unchanged("keep")
}

// all runs copy and retire, as a pass does.
func (s scene) all(ctx context.Context) (bool, error) {
	for _, part := range []string{"copy", "retire"} {
		if progress, err := s.step.Run(ctx, s.plan, part); err != nil || progress.Wait > 0 {
			return false, err
		}
	}
	return true, nil
}

func (s scene) end() string {
	return fmt.Sprint(s.groups(), s.checkpoints.Kept, slices.Sorted(maps.Keys(s.api.Objects)), s.cloud.EKS.Groups["system-ondemand"].Tags)
}

func TestReplacementInterrupted(t *testing.T) {
	begin := func() scene {
		s := beginSPOT(t)
		s.pod("web", "system-1", "Running", "ReplicaSet")
		return s
	}
	var s scene
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s = begin()
		return s.cloud, func() (bool, error) { return s.all(t.Context()) }
	}, func(*awsfake.Cloud) any { return s.end() })

	t.Log("and the API server's part of it")
	want := s.end()
	for request, failed := 1, true; failed; request++ {
		s = begin()
		s.api.FailAt = request
		for done := false; !done; s.cloud.Pass(3 * time.Second) {
			done, _ = s.all(t.Context())
		}
		failed = s.api.FailAt == 0
		if got := s.end(); got != want {
			t.Errorf("request %d failed, and the end is\n%s\nnot\n%s", request, got, want)
		}
		if !failed && request < 8 {
			t.Errorf("only %d requests", request)
		}
	}
}
