package nodegroups

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// moving is a cluster with the group system, which stays, and the group apps, which is emptied.
type moving struct {
	scene
	scaling *awsfake.Scaling
}

// object is a part of a Kubernetes object.
type object = map[string]any

func beginMoving(t *testing.T) moving {
	s := moving{scene: begin(t)}
	s.scaling = awsfake.NewScaling(s.cloud)
	s.step.AutoScaling = s.scaling
	for _, name := range []string{"build-1", "build-2"} {
		delete(s.api.Objects, "/api/v1/nodes/"+name)
	}
	s.cloud.EKS.Group("apps", size3(1, 2, 4), nil)
	s.member("system-1", "system", "a")
	s.member("system-2", "system", "b")
	s.member("apps-1", "apps", "a")
	s.member("apps-2", "apps", "b")
	s.plan.Goal = plan.GoalKarpenter
	s.plan.Nodegroups = plan.Nodegroups{System: []string{"apps", "system"},
		Migration: plan.Migration{Groups: []string{"apps"}, Others: []string{"system"}, Keep: 2}}
	return s
}

// member adds a Ready node with an instance.
func (s moving) member(name, group, zone string) {
	s.scaling.Instances["i-"+name] = group
	s.api.Put("/api/v1/nodes/"+name, "v1", "Node", object{
		"metadata": object{"labels": object{ownership.LabelNodeGroup: group, ownership.LabelSystemNode: "true",
			"topology.kubernetes.io/zone": zone}},
		"spec": object{"providerID": "aws:///" + zone + "/i-" + name},
		"status": object{"allocatable": object{"cpu": "2", "memory": "4Gi", "pods": "20"},
			"conditions": []any{object{"type": "Ready", "status": "True"}}},
	})
}

// app adds a Running, Ready pod of a ReplicaSet, and change changes it.
func (s moving) app(name, node string, change func(pod object)) {
	app, _, _ := strings.Cut(name, "-")
	pod := object{
		"metadata": object{"uid": name, "labels": object{"app": app}, "annotations": object{}, "ownerReferences": []any{
			object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": "rs-" + app, "controller": true}}},
		"spec": object{"nodeName": node, "nodeSelector": object{}, "containers": []any{object{"name": "c", "resources": object{
			"requests": object{"cpu": "100m"}}}}},
		"status": object{"phase": "Running", "conditions": []any{object{"type": "Ready", "status": "True"}}},
	}
	if change != nil {
		change(pod)
	}
	s.api.Put("/api/v1/namespaces/default/pods/"+name, "v1", "Pod", pod)
}

func (s moving) gone(path string) { delete(s.api.Objects, path) }

// pass runs the step once. Then the nodes whose instances end are gone, and evicted pods run elsewhere.
func (s moving) pass() (outcome.Progress, string) {
	s.Helper()
	progress, changes := s.run("migrate")
	s.settle()
	return progress, changes
}

func (s moving) settle() {
	for id := range s.scaling.States {
		delete(s.scaling.Instances, id)
		s.gone("/api/v1/nodes/" + strings.TrimPrefix(id, "i-"))
	}
	s.cloud.EKS.Groups["apps"].Status = "ACTIVE"
	s.cloud.Pass(5 * time.Minute)
}

func (s moving) held() string {
	s.Helper()
	client, err := s.api.Dial(s.Context(), s.plan.Cluster)
	if err != nil {
		s.Fatal(err)
	}
	view, err := drain.ReadView(s.Context(), client, s.plan.Nodegroups.Migration, s.cloud.Now())
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("%d in %d: %s", view.Nodes, view.Groups, view.Held)
}

// marks returns the nodes, cordoned ones with a dash, those with the annotation with a star.
func (s moving) marks() string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(s.api.Objects)) {
		node := s.api.Objects[path]
		if node.GetKind() != "Node" {
			continue
		}
		text := node.GetName()
		if drain.Cordoned(node) {
			text += "-"
		}
		if node.GetAnnotations()[ownership.AnnotationMigrating] != "" {
			text += "*"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (s moving) is(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

func TestEmptiesAGroupNodeByNode(t *testing.T) {
	s := beginMoving(t)
	s.app("web-1", "apps-1", nil)
	s.app("web-2", "apps-2", nil)
	s.app("api-1", "apps-2", nil)
	s.app("agent-1", "apps-1", func(pod object) {
		pod["metadata"].(object)["ownerReferences"] = []any{object{"kind": "DaemonSet", "name": "agent", "apiVersion": "apps/v1", "uid": "d"}}
	})
	s.app("static-1", "apps-1", func(pod object) {
		pod["metadata"].(object)["annotations"] = object{"kubernetes.io/config.mirror": "x"}
	})
	s.app("job-1", "apps-1", func(pod object) { pod["status"] = object{"phase": "Succeeded"} })

	progress, changes := s.pass() // apps-1 has fewer pods
	s.is("first", changes, "scaled to min 0, desired 2, max 4 node group apps, cordoned Node/apps-1, evicted 1 pods Node/apps-1")
	if !progress.Unfinished || progress.Wait > 0 {
		t.Errorf("%+v", progress)
	}
	s.is("nodes", s.marks(), "apps-1-* apps-2 system-1 system-2")

	s.app("web-3", "", func(pod object) {
		pod["status"] = object{"phase": "Pending", "conditions": []any{object{"type": "PodScheduled", "status": "False",
			"reason": "Unschedulable", "message": "0/4 nodes are available"}}}
	})
	_, changes = s.pass()
	s.is("while its pod waits", changes, "")
	s.is("held", s.held(), "2 in 1: pod default/web-3, one like which has left node apps-1, waits for a node: 0/4 nodes are available")
	s.is("size", s.size("apps"), "0 2 4")

	s.app("web-3", "karpenter-1", nil)
	_, changes = s.pass()
	s.is("when it runs", changes, "emptied and ended, with its place in node group apps Node/apps-1, annotated Node/apps-1, "+
		"cordoned Node/apps-2, evicted 2 pods Node/apps-2")
	s.is("nodes", s.marks(), "apps-2-* system-1 system-2")
	_, changes = s.pass()
	s.is("last", changes, "emptied and ended, with its place in node group apps Node/apps-2, annotated Node/apps-2")
	s.is("size", s.size("apps"), "0 0 4")
	s.is("nodes", s.marks(), "system-1 system-2")
	if progress, _ := s.pass(); progress.Unfinished {
		t.Errorf("%+v", progress)
	}
	s.unchanged("migrate")
}

func TestWhatHoldsANode(t *testing.T) {
	budget := func(s moving, name string, allowed int64) {
		s.api.Put("/apis/policy/v1/namespaces/default/poddisruptionbudgets/"+name, "policy/v1", "PodDisruptionBudget", object{
			"spec": object{"selector": object{"matchLabels": object{"app": "web"}}}, "status": object{"disruptionsAllowed": allowed}})
	}
	for what, c := range map[string]struct {
		prepare, mend func(s moving)
		held          string
	}{
		"PodDisruptionBudget": {
			func(s moving) { budget(s, "pdb", 0) }, func(s moving) { budget(s, "pdb", 1) },
			"pod default/web-1 on node apps-1 is kept by PodDisruptionBudget pdb"},
		"two": {
			func(s moving) { budget(s, "pdb", 1); budget(s, "pdb-2", 1) },
			func(s moving) { s.gone("/apis/policy/v1/namespaces/default/poddisruptionbudgets/pdb-2") },
			"pod default/web-1 on node apps-1 has several PodDisruptionBudgets (pdb, pdb-2), and Kubernetes evicts no such pod; leave one"},
		"do-not-disrupt": {
			func(s moving) {
				s.app("web-1", "apps-1", func(pod object) {
					pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
				})
			}, func(s moving) { s.app("web-1", "apps-1", nil) },
			"pod default/web-1 on node apps-1 has karpenter.sh/do-not-disrupt"},
		"do-not-disrupt for a while": {
			func(s moving) {
				s.app("web-1", "apps-1", func(pod object) {
					pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "20m"}
					pod["status"].(object)["startTime"] = s.cloud.Now().Format(time.RFC3339)
				})
			}, func(s moving) { s.cloud.Pass(20 * time.Minute) },
			"pod default/web-1 on node apps-1 has karpenter.sh/do-not-disrupt=20m until 2026-01-02T03:24:05Z"},
		"no controller": {
			func(s moving) {
				s.app("web-1", "apps-1", func(pod object) { delete(pod["metadata"].(object), "ownerReferences") })
			}, func(s moving) { s.gone("/api/v1/namespaces/default/pods/web-1") },
			"pod default/web-1 on node apps-1 belongs to no controller that would start it elsewhere; delete it, if it is not needed"},
		"ends": {
			func(s moving) {
				s.app("web-1", "apps-1", func(pod object) { pod["metadata"].(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z" })
			}, func(s moving) { s.gone("/api/v1/namespaces/default/pods/web-1") },
			"pod default/web-1 on node apps-1 is ending"},
	} {
		t.Run(what, func(t *testing.T) {
			s := beginMoving(t)
			s.gone("/api/v1/nodes/apps-2")
			s.app("web-1", "apps-1", nil)
			c.prepare(s)
			s.pass()
			s.is("held", s.held(), "1 in 1: "+c.held)
			if _, changes := s.pass(); changes != "" || s.api.Objects["/api/v1/namespaces/default/pods/web-1"] == nil {
				t.Errorf("changes %s", changes)
			}
			c.mend(s)
			s.pass()
			s.pass()
			s.is("size", s.size("apps"), "0 1 4")
		})
	}
}

// A pod whose eviction a webhook refuses holds up its node, and no pass.
func TestAPodThatAWebhookKeeps(t *testing.T) {
	s := beginMoving(t)
	s.gone("/api/v1/nodes/apps-2")
	s.app("web-1", "apps-1", nil)
	s.api.Unevictable = map[string]bool{"/api/v1/namespaces/default/pods/web-1": true}
	for range 2 {
		progress, changes := s.pass()
		if changes != "" && !strings.Contains(changes, "cordon") || !progress.Unfinished || len(progress.Warnings) != 1 ||
			!strings.HasPrefix(progress.Warnings[0].Message, "Node/apps-1 is not emptied: Pod/default/web-1: evict: ") {
			t.Errorf("%s, %+v", changes, progress)
		}
	}
	s.api.Unevictable = nil
	s.pass()
	s.pass()
	s.is("size", s.size("apps"), "0 1 4")
}

// A node that nothing keeps goes before one with a pod that does, and the controller's own annotation keeps none.
func TestWhichNodeGoesFirst(t *testing.T) {
	s := beginMoving(t)
	s.app("stays-1", "apps-1", func(pod object) {
		pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
	})
	s.app("web-1", "apps-2", nil)
	s.app("web-2", "apps-2", nil)
	s.pass()
	s.is("nodes", s.marks(), "apps-1 apps-2-* system-1 system-2")
}

// Auto Scaling brings the zones of a group to the same number of nodes, and would end those of the fuller zone by itself.
func TestNodesGoFromTheFullestZone(t *testing.T) {
	s := beginMoving(t)
	s.cloud.EKS.Group("apps", size3(1, 3, 4), nil)
	s.member("apps-0", "apps", "a")
	for _, name := range []string{"apps-0", "apps-1"} {
		s.app("web-"+name, name, nil)
	}
	s.pass()
	s.is("an empty node in the other zone", s.marks(), "apps-0-* apps-1 apps-2 system-1 system-2")
	for range 6 {
		for _, name := range []string{"apps-0", "apps-1"} {
			s.gone("/api/v1/namespaces/default/pods/web-" + name)
		}
		s.pass()
	}
	s.is("at last", s.marks(), "system-1 system-2")

	s = beginMoving(t)
	s.member("apps-0", "apps", "a")
	for _, name := range []string{"apps-0", "apps-1"} {
		s.app("web-"+name, name, func(pod object) {
			pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
		})
	}
	s.pass()
	s.pass()
	s.is("nodes of the fuller zone are held", s.marks(), "apps-0-* apps-1 apps-2 system-1 system-2")
}

// bound returns what makes a pod one that only system nodes take.
func bound(cpu string) func(pod object) {
	return func(pod object) {
		spec := pod["spec"].(object)
		spec["nodeSelector"] = object{ownership.LabelSystemNode: "true"}
		spec["containers"] = []any{object{"name": "c", "resources": object{"requests": object{"cpu": cpu}}}}
	}
}

// pending makes it one that has no node.
func pending(cpu string) func(pod object) {
	return func(pod object) {
		bound(cpu)(pod)
		delete(pod["spec"].(object), "nodeName")
		pod["status"] = object{"phase": "Pending", "conditions": []any{object{"type": "Ready", "status": "False"}}}
	}
}

// A node that was begun with comes back into use if the system needs it by now.
func TestANodeThatCannotGoAnyMore(t *testing.T) {
	for what, c := range map[string]struct {
		lost func(s moving)
		want string
	}{
		"nothing": {func(moving) {}, "apps-1-* apps-2 system-1 system-2"},
		"nodes of others": {func(s moving) {
			s.gone("/api/v1/nodes/apps-2")
			s.gone("/api/v1/nodes/system-2")
		}, "apps-1 system-1"},
		"the room of a pod that has left": {func(s moving) {
			for _, node := range []string{"system-1", "system-2", "apps-2"} {
				s.app("router-"+node, node, bound("1"))
			}
			s.app("gate-2", "", pending("1500m"))
		}, "apps-1 apps-2 system-1 system-2"},
	} {
		s := beginMoving(t)
		s.app("gate-1", "apps-1", bound("1500m"))
		s.app("stays-2", "apps-2", func(pod object) {
			pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
		})
		s.pass()
		s.gone("/api/v1/namespaces/default/pods/gate-1")
		s.app("stays-1", "apps-1", func(pod object) {
			pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
		})
		c.lost(s)
		s.pass()
		s.is(what, s.marks(), c.want)
	}
}

func TestWhatSystemNodesKeep(t *testing.T) {
	for _, c := range []struct {
		what    string
		prepare func(s moving)
		want    string
	}{
		{"two in two zones", func(s moving) {
			s.plan.Nodegroups.Migration = plan.Migration{Groups: []string{"apps", "system"}, Keep: 2}
		},
			"2 in 1: "},
		{"one", func(s moving) {
			s.plan.Nodegroups.Migration = plan.Migration{Groups: []string{"apps", "system"}, Keep: 1}
		}, "3 in 2: "},
		{"the others are in one zone", func(s moving) { s.member("system-2", "system", "a") }, "1 in 1: "},
		{"another is not Ready", func(s moving) {
			s.api.Objects["/api/v1/nodes/system-2"].Object["status"] = object{"allocatable": object{"cpu": "2", "pods": "20"}}
		}, "1 in 1: "},
		{"a pinned pod fits on another", func(s moving) { s.app("router-1", "apps-1", bound("1500m")) }, "2 in 1: "},
		{"a pinned pod, and one like it waits", func(s moving) {
			s.app("gate-1", "system-1", bound("1"))
			s.app("gate-2", "apps-2", bound("1"))
			s.app("router-1", "apps-1", bound("1500m"))
			s.app("router-2", "", pending("1500m"))
		}, "1 in 1: "},
		{"a pinned pod fits on no other", func(s moving) {
			for _, node := range []string{"system-1", "system-2", "apps-2"} {
				s.app("router-"+node, node, bound("1"))
			}
			s.app("router-1", "apps-1", bound("1500m"))
		}, "1 in 1: "},
	} {
		s := beginMoving(t)
		c.prepare(s)
		s.is(c.what, s.held(), c.want)
	}
}

func TestStops(t *testing.T) {
	for what, c := range map[string]struct {
		stop func(s moving)
		want string
	}{
		"unset": {func(s moving) { s.plan.Nodegroups.Migration = plan.Migration{} }, "apps-1 apps-2- system-1 system-2"},
		"blocked": {func(s moving) {
			s.plan.Nodegroups.Migration.Blocks = []params.Block{{Schedule: "* * * * *", Duration: "1h"}}
		}, "apps-1-* apps-2- system-1 system-2"},
		"frozen": {func(s moving) { s.plan.NodePools.Frozen = true }, "apps-1-* apps-2- system-1 system-2"},
	} {
		t.Run(what, func(t *testing.T) {
			s := beginMoving(t)
			s.api.Objects["/api/v1/nodes/apps-2"].Object["spec"].(object)["unschedulable"] = true // somebody else's
			s.app("web-1", "apps-1", func(pod object) {
				pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
			})
			s.app("web-2", "apps-2", func(pod object) {
				pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
			})
			s.pass()
			s.is("nodes", s.marks(), "apps-1-* apps-2- system-1 system-2")
			c.stop(s)
			s.pass()
			s.is("nodes", s.marks(), c.want)
			s.unchanged("migrate")
			s.is("size", s.size("apps"), "0 2 4")
		})
	}
}

// If a tool sets a group's minimum back, it is taken away once more; then no node is emptied that could not end.
func TestAMinimumThatOthersSetBack(t *testing.T) {
	s := beginMoving(t)
	s.app("web-1", "apps-1", func(pod object) {
		pod["metadata"].(object)["annotations"] = object{"karpenter.sh/do-not-disrupt": "true"}
	})
	back := size3(2, 2, 4)
	for range 3 {
		s.pass()
		s.cloud.EKS.Groups["apps"].ScalingConfig = &back
	}
	progress, changes := s.pass()
	if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "node group apps is contested") {
		t.Errorf("%s, %+v", changes, progress)
	}
	s.is("nodes", s.marks(), "apps-1 apps-2 system-1 system-2")
}

// If a tool gives an emptied group its nodes again, they are emptied once more; then they stay, and a day later it is tried again.
func TestNodesThatComeBack(t *testing.T) {
	s := beginMoving(t)
	back := func(name string) {
		s.cloud.Pass(time.Hour)
		s.cloud.EKS.Groups["apps"].ScalingConfig.DesiredSize = new(int32(1))
		s.member(name, "apps", "a")
		s.api.Objects["/api/v1/nodes/"+name].SetCreationTimestamp(metav1.NewTime(s.cloud.Now()))
	}
	for range 3 {
		s.pass()
	}
	s.is("at first", s.marks(), "system-1 system-2")
	back("apps-3")
	for range 2 {
		s.pass()
	}
	s.is("once more", s.marks(), "system-1 system-2")
	back("apps-4")
	for range 2 {
		progress, changes := s.pass()
		if changes != "" || len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "it back 2 times") {
			t.Errorf("%s, %+v", changes, progress)
		}
	}
	s.is("then it stays", s.marks(), "apps-4 system-1 system-2")
	s.cloud.Pass(25 * time.Hour)
	for range 2 {
		s.pass()
	}
	s.is("a day later", s.marks(), "system-1 system-2")
}

func TestOffBringsTheSizesBack(t *testing.T) {
	s := beginMoving(t)
	s.app("web-1", "apps-2", nil)
	for range 2 {
		s.pass()
	}
	s.is("before", s.size("apps")+" "+s.marks(), "0 1 4 apps-2-* system-1 system-2")
	s.plan.Goal, s.plan.Nodegroups.Migration = plan.GoalAccess, plan.Migration{}
	s.done("migrate")
	s.is("after", s.size("apps")+" "+s.marks(), "1 2 4 apps-2 system-1 system-2")
	s.unchanged("migrate")
}

// A group that was emptied in one role and has another by then gets its size back all the same.
func TestSizesComeBackInAnotherRole(t *testing.T) {
	for _, role := range []struct {
		what       string
		nodegroups plan.Nodegroups
	}{
		{"additional", plan.Nodegroups{System: []string{"system"}, Additional: []string{"apps"}}},
		{"build", plan.Nodegroups{System: []string{"system"}, Build: []string{"apps"}}},
	} {
		s := beginMoving(t)
		for range 2 {
			s.pass()
		}
		s.plan.Goal, s.plan.Nodegroups = plan.GoalAccess, role.nodegroups
		s.done("migrate")
		s.is(role.what, s.size("apps"), "1 2 4")
	}
}

// dying fails one write in turn, on the way there and on the way back.
func TestMigrationInterrupted(t *testing.T) {
	for _, off := range []bool{false, true} {
		var s moving
		awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
			s = beginMoving(t)
			s.app("web-1", "apps-1", nil)
			s.app("web-2", "apps-2", nil)
			s.step.Connect = s.api.Through(s.cloud.Writing)
			if off {
				s.pass()
				s.pass()
				s.plan.Goal, s.plan.Nodegroups.Migration = plan.GoalAccess, plan.Migration{}
				s.cloud.Forget()
			}
			return s.cloud, func() (bool, error) {
				progress, err := s.step.Run(t.Context(), s.plan, "migrate")
				s.settle()
				return progress.Wait == 0 && !progress.Unfinished, err
			}
		}, func(*awsfake.Cloud) any { return fmt.Sprint(s.size("apps"), s.marks(), s.baselines.Kept) })
	}
}

func TestAnInstanceThatEndsAlready(t *testing.T) {
	s := beginMoving(t)
	s.pass()
	s.cloud.Fail("AutoScaling.TerminateInstanceInAutoScalingGroup", errors.New("asked twice"))
	s.scaling.States["i-apps-1"] = "Terminating:Wait"
	_, changes := s.run("migrate")
	s.is("changes", changes, "annotated Node/apps-1, cordoned Node/apps-2")
}
