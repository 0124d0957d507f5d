package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

type scene struct {
	*testing.T
	cloud       *awsfake.Cloud
	api         *k8sfake.Server
	baselines   *awsfake.Recorder
	checkpoints *awsfake.Recorder
	step        *Step
	plan        *plan.Plan
}

func size3(least, desired, most int32) types.NodegroupScalingConfig {
	return types.NodegroupScalingConfig{MinSize: &least, DesiredSize: &desired, MaxSize: &most}
}

func begin(t *testing.T) scene {
	cloud, api := awsfake.New(), k8sfake.New(t)
	baselines, checkpoints := awsfake.NewBaselines(cloud), awsfake.NewCheckpoints(cloud)
	cloud.EKS.Group("system", size3(2, 2, 4), map[string]string{"theirs": "1"})
	cloud.EKS.Group("build", size3(1, 2, 5), map[string]string{ownership.LabelBuild: "true"})
	s := scene{t, cloud, api, baselines, checkpoints,
		&Step{EKS: cloud.EKS, Connect: api.Dial, Baselines: baselines, Checkpoints: checkpoints, Contests: awsfake.NewContests(),
			Written: &store.Store{DB: cloud.Table}, Now: cloud.Now},
		&plan.Plan{
			Rack: "demo", Cluster: plan.Cluster{Name: "demo"},
			Nodegroups: plan.Nodegroups{System: []string{"system"}, Build: []string{"build"}, BuildEmpty: true},
		}}
	s.node("build-1", "build", nil)
	s.node("build-2", "build", nil)
	s.node("system-1", "system", nil)
	return s
}

func (s scene) node(name, group string, spec map[string]any) {
	if spec == nil {
		spec = map[string]any{}
	}
	s.api.Put("/api/v1/nodes/"+name, "v1", "Node", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{ownership.LabelNodeGroup: group}}, "spec": spec,
	})
}

func (s scene) pod(name, node, phase, owner string) {
	meta := map[string]any{}
	if owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"kind": owner, "name": "x", "apiVersion": "apps/v1", "uid": "u"}}
	}
	s.api.Put("/api/v1/namespaces/default/pods/"+name, "v1", "Pod", map[string]any{
		"metadata": meta, "spec": map[string]any{"nodeName": node}, "status": map[string]any{"phase": phase},
	})
}

func (s scene) run(part string) (outcome.Progress, string) {
	s.Helper()
	progress, err := s.step.Run(s.Context(), s.plan, part)
	if err != nil {
		s.Fatal(err)
	}
	var changes []string
	for _, c := range progress.Changes {
		changes = append(changes, c.Action+" "+c.Subject)
	}
	return progress, strings.Join(changes, ", ")
}

// done runs a part until it no longer waits.
func (s scene) done(part string) (outcome.Progress, string) {
	s.Helper()
	var all []string
	for range 10 {
		progress, changes := s.run(part)
		if changes != "" {
			all = append(all, changes)
		}
		if progress.Wait == 0 {
			return progress, strings.Join(all, ", ")
		}
		if progress.Wait > 30*time.Second || progress.Note == "" {
			s.Errorf("%+v", progress)
		}
	}
	s.Fatal("not done after 10 calls")
	return outcome.Progress{}, ""
}

func (s scene) unchanged(part string) {
	s.Helper()
	s.cloud.Forget()
	s.api.Writes = nil
	if progress, changes := s.run(part); changes != "" || progress.Wait != 0 || len(s.cloud.Writes())+len(s.api.Writes) > 0 {
		s.Errorf("a second run: changes %q, writes %v %v, %+v", changes, s.cloud.Writes(), s.api.Writes, progress)
	}
}

func (s scene) size(name string) string {
	c := s.cloud.EKS.Groups[name].ScalingConfig
	return fmt.Sprint(*c.MinSize, *c.DesiredSize, *c.MaxSize)
}

func (s scene) cordoned() string {
	var all []string
	for _, name := range []string{"build-1", "build-2", "system-1"} {
		spec, _ := s.api.Objects["/api/v1/nodes/"+name].Object["spec"].(map[string]any)
		if spec["unschedulable"] == true {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// A group that is no build group any more gets its size back while the others stay empty, and at once: whoever scales it finds it
// as it was.
func TestABuildGroupThatIsNoneAnyMore(t *testing.T) {
	s := begin(t)
	s.done("build")
	s.plan.Goal = plan.GoalKarpenter
	s.plan.Nodegroups.Build, s.plan.Nodegroups.Additional, s.plan.Nodegroups.BuildMin = []string{"other"}, []string{"build"}, new(3)
	s.cloud.EKS.Groups["build"].ScalingConfig.DesiredSize = new(int32(4)) // Cluster Autoscaler, whose pods stay
	if _, changes := s.done("build"); s.size("build") != "1 4 5" || s.cordoned() != "" {
		t.Errorf("%s: %s, cordoned %q", changes, s.size("build"), s.cordoned())
	}
	s.unchanged("build")
}

// An earlier release recorded a size without the group's creation.
func TestASizeWithoutACreation(t *testing.T) {
	s := begin(t)
	s.done("build")
	s.baselines.Kept[outcome.BaselineSize("build")] = `{"minSize":1,"maxSize":5,"desiredSize":2}`
	s.plan.Nodegroups.BuildEmpty = false
	if s.done("build"); s.size("build") != "1 2 5" {
		t.Errorf("the size is %s", s.size("build"))
	}
}

// What is recorded of a group that was deleted says nothing about a later one of its name.
func TestALaterGroupOfTheSameName(t *testing.T) {
	s := begin(t)
	s.done("build")
	group := s.cloud.EKS.Groups["build"]
	group.CreatedAt, group.ScalingConfig = new(s.cloud.Now()), new(size3(3, 4, 9))
	s.plan.Nodegroups.BuildEmpty = false
	s.done("build")
	s.unchanged("build")
	if _, recorded := s.baselines.Kept[outcome.BaselineSize("build")]; recorded || s.size("build") != "3 4 9" {
		t.Errorf("recorded %v, %s", recorded, s.size("build"))
	}
	t.Log("and it is emptied as the first one was")
	s.plan.Nodegroups.BuildEmpty = true
	s.done("build")
	group.CreatedAt = new(s.cloud.Now().Add(time.Minute))
	group.ScalingConfig = new(size3(2, 2, 9))
	s.done("build")
	s.plan.Nodegroups.BuildEmpty = false
	if s.done("build"); s.size("build") != "2 2 9" {
		t.Errorf("the size is %s", s.size("build"))
	}
}

// Once Karpenter is off, no node stays cordoned by Sawhorse, whatever role its group had when it was: only those whose instances end.
func TestNothingStaysCordoned(t *testing.T) {
	s := begin(t)
	s.plan.Nodegroups.BuildEmpty = false
	cordoned := map[string]any{"unschedulable": true}
	for name, marks := range map[string]map[string]string{
		"build-1": {ownership.TagRack: "demo"}, "build-2": {},
		"system-1": {ownership.TagRack: "demo", ownership.AnnotationMigrating: drain.Ended},
	} {
		s.node(name, "system", cordoned)
		for key, value := range marks {
			k8s.SetAnnotation(s.api.Objects["/api/v1/nodes/"+name], key, value)
		}
	}
	s.plan.Goal = plan.GoalKarpenter
	s.plan.Nodegroups.Migration.Groups = []string{"build", "system"}
	if s.done("build"); s.cordoned() != "build-1 build-2 system-1" {
		t.Errorf("while the groups are emptied: %s", s.cordoned())
	}
	s.plan.Nodegroups.Migration.Groups = nil
	if s.done("build"); s.cordoned() != "build-2 system-1" {
		t.Errorf("cordoned %s", s.cordoned())
	}
	s.unchanged("build")
}

func TestLabelsTheSystemGroupsOnce(t *testing.T) {
	s := begin(t)
	s.plan.Nodegroups.System = []string{"gone", "system"}
	if _, changes := s.done("labels"); changes != "labelled convox.io/system-node=true node group system" {
		t.Errorf("changes %s", changes)
	}
	if labels := s.cloud.EKS.Groups["system"].Labels; labels[ownership.LabelSystemNode] != "true" || labels["theirs"] != "1" {
		t.Errorf("labels %v", labels)
	}
	if labels := s.cloud.EKS.Groups["build"].Labels; labels[ownership.LabelSystemNode] != "" {
		t.Errorf("the build group has labels %v", labels)
	}
	s.unchanged("labels")
}

// EKS accepts one update of a group at a time. The step waits for another update to end.
func TestLabelsWaitForAnotherUpdate(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Delay = 3
	s.cloud.EKS.Groups["system"].Status = types.NodegroupStatusUpdating
	if progress, changes := s.run("labels"); progress.Wait == 0 || changes != "" {
		t.Errorf("%s, %+v", changes, progress)
	}
	if _, changes := s.done("labels"); changes != "labelled convox.io/system-node=true node group system" {
		t.Errorf("changes %s", changes)
	}
}

// An update that others make of a labelled group, such as a new version of its nodes, may take hours, and holds up no pass.
func TestAnotherUpdateOfALabelledGroupIsNotWaitedFor(t *testing.T) {
	s := begin(t)
	s.done("labels")
	s.cloud.EKS.Groups["system"].Status = types.NodegroupStatusUpdating
	s.unchanged("labels")
}

// EKS accepts the update of a group, and it fails, three passes long. Each ends with EKS's words after one update, and what EKS did
// not do is nobody's contest. The next pass does it.
func TestUpdatesThatFail(t *testing.T) {
	for part, group := range map[string]string{"labels": "system", "build": "build"} {
		s := begin(t)
		for pass := 1; pass <= 3; pass++ {
			s.cloud.EKS.Fails = []types.ErrorDetail{{ErrorCode: "NodeCreationFailure", ErrorMessage: new("not now")}}
			want := fmt.Sprintf("node group %s: %s: update update-%d ended as Failed: NodeCreationFailure: not now", group, outcome.Unmade, pass)
			if s.fails(part, want); len(s.cloud.EKS.Updates) != pass {
				t.Errorf("%s: %d updates in %d passes", part, len(s.cloud.EKS.Updates), pass)
			}
		}
		s.cloud.Forget()
		if progress, changes := s.done(part); !strings.HasSuffix(changes, "node group "+group) || len(progress.Warnings) > 0 {
			t.Errorf("%s: changes %s, %+v", part, changes, progress)
		}
		if slices.Contains(s.cloud.Made(), "EKS.DescribeUpdate "+group) {
			t.Errorf("%s: it looks after an update that EKS has made", part)
		}
		written, err := s.step.Written.Written(t.Context(), "demo", "nodegroups")
		if _, noted := written["update/"+group]; err != nil || noted {
			t.Errorf("%s: an update that has been made is still noted: %v, %v", part, written, err)
		}
		s.unchanged(part)
	}
}

// The end of an update cannot be read: that is no failed update, and what was written stays recorded.
func TestTheEndOfAnUpdateThatCannotBeRead(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Fails = []types.ErrorDetail{{ErrorCode: "NodeCreationFailure", ErrorMessage: new("not now")}}
	s.run("build")
	s.cloud.Fail("EKS.DescribeUpdate", awsfake.Throttling)
	s.fails("build", "node group build: update update-1: describe: ")
	s.cloud.Before = nil
	s.fails("build", "NodeCreationFailure")
}

// Somebody uncordons a node that Sawhorse has cordoned. Nothing of Sawhorse's stays on it, and Sawhorse never uncordons
// it later.
func TestANodeThatSomebodyElseUncordons(t *testing.T) {
	s := begin(t)
	s.plan.Nodegroups.Build = []string{"build"}
	s.done("build")
	spec := func(node string) map[string]any {
		return s.api.Objects["/api/v1/nodes/"+node].Object["spec"].(map[string]any)
	}
	spec("build-1")["unschedulable"] = false
	s.plan.Nodegroups.BuildEmpty = false
	if _, changes := s.done("build"); !strings.HasPrefix(changes, "removed the annotation of Node/build-1, uncordoned Node/build-2, ") {
		t.Errorf("changes %s", changes)
	}
	spec("build-1")["unschedulable"] = true
	if s.unchanged("build"); s.cordoned() != "build-1" {
		t.Errorf("cordoned %q", s.cordoned())
	}
}

func TestEmptiesTheBuildGroupsAndRestoresThem(t *testing.T) {
	s := begin(t)
	s.plan.Nodegroups.Build = []string{"build", "gone"}
	s.pod("agent", "build-1", "Running", "DaemonSet")
	s.pod("finished", "build-1", "Succeeded", "Job")
	s.pod("broken", "build-2", "Failed", "Job")
	s.pod("elsewhere", "system-1", "Running", "ReplicaSet")
	s.pod("pending", "", "Pending", "Job")
	progress, changes := s.done("build")
	if changes != "cordoned Node/build-1, cordoned Node/build-2, scaled to min 0, desired 0, max 5 node group build" ||
		progress.Unfinished {
		t.Errorf("%s, %+v", changes, progress)
	}
	if s.size("build") != "0 0 5" || s.size("system") != "2 2 4" || s.cordoned() != "build-1 build-2" {
		t.Errorf("build %s, system %s, cordoned %s", s.size("build"), s.size("system"), s.cordoned())
	}
	s.unchanged("build")

	t.Log("and back")
	s.plan.Nodegroups.BuildEmpty = false
	_, changes = s.done("build")
	if changes != "uncordoned Node/build-1, uncordoned Node/build-2, scaled to min 1, desired 2, max 5 node group build" {
		t.Errorf("changes %s", changes)
	}
	if s.size("build") != "1 2 5" || s.cordoned() != "" || len(s.baselines.Kept) > 0 {
		t.Errorf("build %s, cordoned %q, baselines %v", s.size("build"), s.cordoned(), s.baselines.Kept)
	}
	s.unchanged("build")
}

// While Karpenter is on, a group is restored if there is no build pool, and the operator is told once.
func TestTellsOfABuildGroupThatComesBackBesideKarpenter(t *testing.T) {
	for goal, want := range map[plan.Goal]int{plan.GoalKarpenter: 1, plan.GoalAccess: 0} {
		s := begin(t)
		s.done("build")
		s.plan.Goal, s.plan.Nodegroups.BuildEmpty = goal, false
		var told []string
		for range 5 {
			progress, _ := s.run("build")
			for _, incident := range progress.Incidents {
				told = append(told, incident.Parameter+": "+incident.Message)
			}
		}
		if s.size("build") != "1 2 5" || len(told) != want {
			t.Errorf("%s: size %s, told %v", goal, s.size("build"), told)
		}
		if want == 1 && !strings.Contains(strings.Join(told, ""), "build_node_enabled: Node group build had been brought to zero") {
			t.Errorf("%s: told %v", goal, told)
		}
	}
}

// Kubelets write their nodes all the time. A write between our read and our write is not a failure.
func TestANodeThatSomebodyElseWrites(t *testing.T) {
	s := begin(t)
	s.api.Raced = "/api/v1/nodes/build-2"
	if progress, changes := s.run("build"); progress.Wait == 0 || changes != "cordoned Node/build-1" || s.api.Raced != "" {
		t.Errorf("%+v, %s", progress, changes)
	}
	if _, changes := s.done("build"); !strings.HasPrefix(changes, "cordoned Node/build-2") || s.size("build") != "0 0 5" {
		t.Errorf("%s, %s", changes, s.size("build"))
	}
}

// The step does not wait for builds: the nodes are cordoned, the pass goes on, and a later one completes the work.
func TestDoesNotWaitForBuilds(t *testing.T) {
	s := begin(t)
	s.pod("build", "build-2", "Running", "Job")
	progress, changes := s.run("build")
	if !progress.Unfinished || progress.Wait != 0 || changes != "cordoned Node/build-1, cordoned Node/build-2" ||
		s.size("build") != "1 2 5" {
		t.Errorf("%s, %+v, size %s", changes, progress, s.size("build"))
	}
	if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "Pod/default/build") {
		t.Errorf("warnings %v", progress.Warnings)
	}
	s.pod("build", "build-2", "Succeeded", "Job")
	if progress, _ := s.done("build"); progress.Unfinished || len(progress.Warnings) > 0 || s.size("build") != "0 0 5" {
		t.Errorf("%+v, size %s", progress, s.size("build"))
	}
}

// A node that somebody else cordoned stays cordoned, and a group that was at zero stays there.
func TestRestoresOnlyWhatItChanged(t *testing.T) {
	s := begin(t)
	s.node("build-1", "build", map[string]any{"unschedulable": true})
	s.done("build")
	s.plan.Nodegroups.BuildEmpty = false
	if _, changes := s.done("build"); strings.Contains(changes, "build-1") || s.cordoned() != "build-1" {
		t.Errorf("%s, cordoned %s", changes, s.cordoned())
	}

	s = begin(t)
	s.cloud.EKS.Group("build", size3(0, 0, 3), nil)
	if _, changes := s.done("build"); changes != "" || s.cordoned() != "" || len(s.baselines.Kept) > 0 {
		t.Errorf("%s, cordoned %s, baselines %v", changes, s.cordoned(), s.baselines.Kept)
	}
	s.plan.Nodegroups.BuildEmpty = false
	s.unchanged("build")
}

// The size before the first change is the baseline, whatever Cluster Autoscaler does later.
func TestTheFirstSizeIsTheBaseline(t *testing.T) {
	s := begin(t)
	s.done("build")
	s.cloud.EKS.Groups["build"].ScalingConfig = new(size3(0, 3, 5))
	if s.done("build"); s.size("build") != "0 0 5" {
		t.Errorf("size %s", s.size("build"))
	}
	s.plan.Nodegroups.BuildEmpty = false
	if s.done("build"); s.size("build") != "1 2 5" {
		t.Errorf("size %s", s.size("build"))
	}
}

// build_node_min_count is the size to restore, in place of the recorded one. max is raised if necessary and otherwise
// kept.
func TestRestoresToTheSizeOfThePlan(t *testing.T) {
	for least, want := range map[int]string{0: "0 0 5", 3: "3 3 5", 5: "5 5 5", 8: "8 8 8"} {
		s := begin(t)
		s.done("build")
		s.plan.Nodegroups.BuildEmpty, s.plan.Nodegroups.BuildMin = false, &least
		if s.done("build"); s.size("build") != want || s.cordoned() != "" || len(s.baselines.Kept) > 0 {
			t.Errorf("%d: size %s, want %s; cordoned %q, baselines %v", least, s.size("build"), want, s.cordoned(), s.baselines.Kept)
		}
		s.unchanged("build")
	}
	t.Log("a group that was never emptied keeps its size, and one that is emptied does not mind")
	s := begin(t)
	s.plan.Nodegroups.BuildEmpty, s.plan.Nodegroups.BuildMin = false, new(4)
	s.unchanged("build")
	s.plan.Nodegroups.BuildEmpty = true
	if s.done("build"); s.size("build") != "0 0 5" {
		t.Errorf("size %s", s.size("build"))
	}
}

// If Karpenter is turned off while builds still run, they keep their nodes, whatever build_node_min_count says.
func TestRestoringTakesNoNodesAway(t *testing.T) {
	s := begin(t)
	s.pod("build", "build-2", "Running", "Job")
	s.run("build")
	s.plan.Nodegroups.BuildEmpty, s.plan.Nodegroups.BuildMin = false, new(0)
	if s.done("build"); s.size("build") != "0 2 5" || s.cordoned() != "" || len(s.baselines.Kept) > 0 {
		t.Errorf("size %s, cordoned %q, baselines %v", s.size("build"), s.cordoned(), s.baselines.Kept)
	}
	s.unchanged("build")
}

func TestTwoBuildGroups(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Group("arm", size3(1, 1, 2), map[string]string{ownership.LabelBuild: "true"})
	s.plan.Nodegroups.Build = []string{"arm", "build"}
	s.pod("build", "build-2", "Running", "Job")
	progress, _ := s.run("build")
	if !progress.Unfinished || s.size("arm") != "0 0 2" || s.size("build") != "1 2 5" {
		t.Errorf("one group has builds: %+v, arm %s, build %s", progress, s.size("arm"), s.size("build"))
	}
}

func TestInterrupted(t *testing.T) {
	for _, empty := range []bool{true, false} {
		var s scene
		awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
			s = begin(t)
			if !empty {
				s.done("build")
				s.plan.Nodegroups.BuildEmpty = false
				s.cloud.Forget()
			}
			return s.cloud, func() (bool, error) {
				progress, err := s.step.Run(t.Context(), s.plan, "build")
				return progress.Wait == 0, err
			}
		}, func(*awsfake.Cloud) any { return fmt.Sprint(s.size("build"), s.cordoned(), s.baselines.Kept) })
	}
}

func TestParts(t *testing.T) {
	s := begin(t)
	s.step.Placement = func(_ context.Context, _ *plan.Plan, part string) (outcome.Progress, error) {
		return outcome.Progress{Note: part}, nil
	}
	s.step.Capacity = s.step.Placement
	for _, part := range []string{"placement", "fit", "capacity"} {
		if progress, _ := s.run(part); progress.Note != part {
			t.Errorf("%s: %+v", part, progress)
		}
	}
	if _, err := s.step.Run(t.Context(), s.plan, "else"); err == nil || !strings.Contains(err.Error(), `no part "else"`) {
		t.Errorf("%v", err)
	}
	s.cloud.FailAt(2, awsfake.Throttling)
	if _, err := s.step.Run(t.Context(), s.plan, "labels"); !errors.Is(err, awsfake.Throttling) ||
		!strings.HasPrefix(err.Error(), "node group system: ") {
		t.Errorf("%v", err)
	}
}

// If a tool reverts the size of a build group, the group is emptied again once. After that the contest is reported, and
// the group is left alone for a day.
func TestABuildGroupThatOthersSetBack(t *testing.T) {
	s := begin(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.step.Now = func() time.Time { return now }
	setBack := func() {
		now = now.Add(resource.Lag)
		s.cloud.EKS.Groups["build"].ScalingConfig.MinSize, s.cloud.EKS.Groups["build"].ScalingConfig.DesiredSize = new(int32(1)),
			new(int32(2))
	}
	emptied := func() bool {
		for range 10 {
			if progress, _ := s.run("build"); progress.Wait == 0 {
				return *s.cloud.EKS.Groups["build"].ScalingConfig.DesiredSize == 0
			}
		}
		t.Fatal("it waits")
		return false
	}
	if !emptied() {
		t.Error("not emptied")
	}
	clear(s.step.Contests.(*awsfake.Recorder).Kept) // as if the call had stopped before it recorded the change
	emptied()
	if setBack(); !emptied() {
		t.Error("not emptied the second time")
	}
	setBack()
	progress, _ := s.run("build")
	if progress.Wait > 0 || !progress.Unfinished || len(progress.Changes) > 0 || len(progress.Warnings) != 1 ||
		!strings.Contains(progress.Warnings[0].Message,
			"the size of node group build is contested: somebody whom EKS does not name has set it back 2 times") {
		t.Errorf("%+v", progress)
	}
	now = now.Add(25 * time.Hour)
	if !emptied() {
		t.Error("not tried again a day later")
	}
}
