package capacity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// For a rack whose Karpenter has no nodes, the step makes two requests to the API server and no call to AWS.
func TestNoNodes(t *testing.T) {
	s := begin(t)
	s.pool("workload", "demo")
	s.passes("")
	if made := s.cloud.Made(); len(made) > 0 {
		t.Errorf("calls %v", made)
	}
}

func TestThereIsRoom(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1", "500m")
	s.pod("there", "system-1", "500m")
	s.pod("done", "system-1", "2")["status"] = object{"phase": "Succeeded"}
	s.pod("agent", "k-0", "2")["metadata"] = object{
		"ownerReferences": []any{object{"kind": "DaemonSet", "name": "a", "apiVersion": "apps/v1", "uid": "u", "controller": true}},
	}
	s.pod("static", "k-0", "2")["metadata"] = object{
		"ownerReferences": []any{object{"kind": "Node", "name": "a", "apiVersion": "v1", "uid": "u"}},
	}
	s.pod("finished", "k-0", "2")["status"] = object{"phase": "Failed"}
	s.pod("pending", "", "2")["status"] = object{"phase": "Pending"}
	leaves := s.pod("leaves", "k-0", "2")
	leaves["metadata"] = object{"deletionTimestamp": "2026-01-02T03:04:05Z"}
	for name, pod := range s.api.Objects { // the replaced metadata has no name
		if strings.Contains(name, "/pods/") {
			pod.SetName(name[strings.LastIndex(name, "/")+1:])
		}
	}
	s.passes("")
	t.Log("as much again as there is room for, and no more")
	s.pod("more", "k-1", "500m")
	s.passes("")
	s.pod("one-too-many", "k-1", "100m")
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, "node group system: scaled from 2 to 3 nodes") {
		t.Errorf("%s, %v", changes, err)
	}
}

// EKS may accept an update and fail to make it. The pass then fails with EKS's own words, and the next one asks again.
func TestAnUpdateThatFails(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	s.cloud.EKS.Fails = []types.ErrorDetail{{ErrorCode: types.ErrorCodeAccessDenied, ErrorMessage: new("the role is gone")}}
	const scaled = "node group system: scaled from 2 to 3 nodes"
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, scaled) {
		t.Errorf("%s, %v", changes, err)
	}
	changes, _, err := s.call()
	if err == nil || changes != "" || !strings.Contains(err.Error(), "node group system: ") ||
		!strings.Contains(err.Error(), "the role is gone") {
		t.Errorf("%s, %v", changes, err)
	}
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, scaled) {
		t.Errorf("%s, %v", changes, err)
	}
}

// Init containers count as the scheduler counts them, and a node takes a limited number of pods.
func TestRequestsAreTheSchedulers(t *testing.T) {
	s := begin(t)
	s.karpenter("100m")
	s.pod("init", "k-0", "100m", object{
		"initContainers": []any{object{"name": "i", "resources": object{"requests": object{"cpu": "2500m"}}}},
	})
	s.refused("requests keep them off the nodes of these groups shop/init (cpu 2.5, memory 1 GiB)")

	s = begin(t)
	s.pool("workload", "demo")
	s.node("k", "4", of("workload"))
	for i := range 41 {
		s.pod(fmt.Sprintf("small-%02d", i), "k", "1m", object{"containers": []any{object{"name": "c"}}})
	}
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, "from 2 to 3 nodes") {
		t.Errorf("%s, %v", changes, err)
	}
}

func TestNodesThatCannotBeCountedOn(t *testing.T) {
	for what, change := range map[string]func(*scene){
		"cordoned":    func(s *scene) { s.node("system-2", "2", in("system"), object{"unschedulable": true}) },
		"not ready":   func(s *scene) { s.notReady("system-2") },
		"Karpenter's": func(s *scene) { s.node("system-2", "2", of("workload")) },
		"tainted": func(s *scene) {
			s.node("system-2", "2", in("system"), object{"taints": []any{object{"key": "mine", "effect": "NoExecute"}}})
		},
		"of another kind": func(s *scene) {
			s.pod("web-0", "k-0", "1500m", object{"nodeSelector": object{"disk": "fast"}})
			s.node("system-1", "2", object{"disk": "fast"})
			s.pod("web-1", "k-1", "1500m", object{"nodeSelector": object{"disk": "fast"}})
		},
	} {
		s := begin(t)
		s.karpenter("1500m", "1500m")
		s.passes("")
		change(s)
		if changes, progress, err := s.call(); err == nil && changes == "" && progress.Wait == 0 {
			t.Errorf("%s: it counts", what)
		}
	}
	s := begin(t)
	s.karpenter("1500m", "1500m")
	s.node("system-2", "2", in("system"), object{"taints": []any{object{"key": "mine", "effect": "PreferNoSchedule"}}})
	s.passes("")
	s.node("system-2", "2", in("system"), object{"taints": []any{object{"key": "mine", "effect": "NoSchedule"}}})
	for _, name := range []string{"web-0", "web-1"} {
		s.pod(name, "k-0", "1500m", object{"tolerations": []any{object{"key": "mine", "operator": "Exists"}}})
	}
	s.passes("")
}

func (s *scene) notReady(name string) {
	live := s.api.Objects["/api/v1/nodes/"+name]
	live.Object["status"].(object)["conditions"] = []any{object{"type": "Ready", "status": "Unknown"}}
}

// Capacity is not removed before its replacement is ready: the step is done only when the new nodes are Ready.
func TestTheSystemGroupsAreScaledUp(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	changes, progress, err := s.call()
	if err != nil || changes != "node group system: scaled from 2 to 3 nodes to make room for the pods of Karpenter's; "+
		"it keeps that size, and Cluster Autoscaler takes idle nodes away later" ||
		progress.Wait == 0 || !strings.Contains(progress.Note, "node group system has 2 of 3 nodes Ready") {
		t.Fatalf("%s, %+v, %v", changes, progress, err)
	}
	s.sized("1 3 4")
	t.Log("what is on its way is waited for, and not asked for again")
	for _, there := range []bool{false, true} {
		if there {
			s.node("system-3", "2", in("system"))
			s.notReady("system-3")
		}
		if changes, progress, err := s.call(); err != nil || changes != "" || progress.Wait == 0 {
			t.Fatalf("%s, %+v, %v", changes, progress, err)
		}
	}
	s.node("system-3", "2", in("system"))
	if changes, progress, err := s.call(); err != nil || changes != "" || progress.Wait != 0 || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%s, %+v, %v, checkpoints %v", changes, progress, err, s.checkpoints.Kept)
	}
	s.sized("1 3 4")
	s.passes("")
}

// A node that never becomes Ready is not replaced by another: the step waits for it until its deadline, and Karpenter's
// nodes stay.
func TestANodeThatNeverJoins(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(1, 3, 4))
	s.node("system-3", "2", in("system"))
	s.notReady("system-3")
	s.cloud.Pass(time.Hour)
	if changes, progress, err := s.call(); err != nil || changes != "" ||
		!strings.Contains(progress.Note, "node group system has 2 of 3 nodes Ready; if none comes") {
		t.Fatalf("%s, %+v, %v", changes, progress, err)
	}
}

func TestNotEvenAtTheMaximum(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m", "1500m", "1500m", "1500m")
	s.refused("by an estimate the 6 pods on Karpenter's nodes request cpu 9, memory 6 GiB, pods 6, and the other Ready nodes have "+
		"cpu 4, memory 16 GiB, pods 40 free",
		"node group system has 2 of at most 4 nodes and could add 2 with cpu 2, memory 8 GiB, pods 20 each",
		"room for cpu 1, pods 2 is missing then (a node counts for as many pods as it could hold of the smallest)",
		"Raise the maximum of node group system to 6 with `aws eks update-nodegroup-config --cluster-name demo --nodegroup-name system "+
			"--scaling-config maxSize=6`",
		`{"rack": "demo", "force": ["room"]} as Rack Reconcile Requested`)
	s.sized("1 2 4")

	t.Log("force: as far as it goes, without waiting, and with the figures as a warning")
	s.plan.Force = events.ForceWords
	changes, progress, err := s.call()
	if err != nil || !strings.Contains(changes, "from 2 to 4 nodes") || progress.Wait != 0 || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%s, %+v, %v", changes, progress, err)
	}
	s.warned(progress, "room for cpu 1, pods 2 is missing then")
	s.cloud.EKS.Groups["system"].Status = types.NodegroupStatusActive
	s.passes("room for cpu 1, pods 2 is missing then")

	t.Log("once the drain has begun there is no way back")
	s.plan.Force = nil
	s.refused("6 pods")
	s.held("6 pods")
	s.checkpoints.Kept[outcome.CheckpointRemoval] = "{}"
	s.passes("Pods without a place stay Pending")
}

// Nodes of a group that is at its maximum are no offer.
func TestAGroupAtItsMaximumCouldAddNothing(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m", "1500m", "1500m", "1500m")
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(1, 2, 2))
	s.refused("node group system has 2 of at most 2 nodes; room for cpu 5, pods 4 is missing then")
}

// With force the step does not wait for starting nodes either.
func TestForceWaitsForNothing(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	s.plan.Force = events.ForceWords
	changes, progress, err := s.call()
	if err != nil || !strings.Contains(changes, "from 2 to 3 nodes") || progress.Wait != 0 {
		t.Fatalf("%s, %+v, %v", changes, progress, err)
	}
	s.warned(progress, "Nodes for the rest are starting")
}

func TestPodsThatNoOtherNodeTakes(t *testing.T) {
	s := begin(t)
	s.karpenter("100m")
	s.pod("picky", "k-0", "100m", object{"nodeSelector": object{"convox.io/nodepool": "workload"}})
	s.pod("gpu", "k-0", "100m", object{
		"containers": []any{
			object{
				"name": "c", "resources": object{
					"requests": object{"cpu": "1", "nvidia.com/gpu": "1"}, "limits": object{"nvidia.com/gpu": "1"},
				},
			},
		},
	})
	s.refused("2 pod(s) have no place then: shop/gpu (cpu 1, nvidia.com/gpu 1), shop/picky (",
		"Add a node group with the labels, the taints and the size that the pods need, or delete or change the pods")
}

// A build waits for a build node, as it did before Karpenter was on. An existing build node counts as capacity.
func TestBuildGroups(t *testing.T) {
	build := object{
		"nodeSelector": object{ownership.LabelBuild: "true"}, "tolerations": []any{
			object{"key": "dedicated", "value": "build", "effect": "NoSchedule"},
		},
	}
	s := begin(t)
	s.karpenter("100m")
	s.pod("build", "k-0", "1", build)
	s.passes("")
	s.cloud.EKS.Groups["build"].Labels = nil
	s.refused("shop/build")
	s.node("build-1", "2", object{ownership.LabelBuild: "true", ownership.LabelNodeGroup: "build"},
		object{"taints": []any{object{"key": "dedicated", "value": "build", "effect": "NoSchedule"}}})
	s.passes("")
}

// A group without nodes is counted with the size of another node of its instance type. Otherwise the size is unknown,
// and the message says so.
func TestAGroupWithoutNodes(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m")
	s.node("elsewhere", "2", in("elsewhere"), object{"unschedulable": true})
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 1))
	for _, name := range []string{"system-1", "system-2"} {
		delete(s.api.Objects, "/api/v1/nodes/"+name)
	}
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, "from 0 to 1 nodes") {
		t.Errorf("%s, %v", changes, err)
	}
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 1))
	// The taints of its nodes are known before there is one.
	s.cloud.EKS.Groups["system"].Taints = []types.Taint{{Key: new("dedicated"), Value: new("x"), Effect: types.TaintEffectNoSchedule}}
	s.refused("requests keep them off the nodes of these groups shop/web-0")
	s.cloud.EKS.Groups["system"].Taints[0].Effect = types.TaintEffectPreferNoSchedule
	if changes, _, err := s.call(); err != nil || !strings.Contains(changes, "from 0 to 1 nodes") {
		t.Errorf("%s, %v", changes, err)
	}
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 1))
	delete(s.api.Objects, "/api/v1/nodes/elsewhere")
	s.refused("Scale node group system to 1 node: it has none, and how much one holds is unknown")
}

func TestForeignNodePools(t *testing.T) {
	s := begin(t)
	s.pool("workload", "demo")
	s.pool("theirs", "")
	s.refused("NodePools that Sawhorse did not make: theirs")
	s.node("k", "4", of("theirs"))
	s.pod("web", "k", "3") // it stays where it is
	s.plan.Force = events.ForceWords
	s.passes("theirs")
	s.plan.Force = nil
	s.checkpoints.Kept[outcome.CheckpointRemoval] = "{}"
	s.passes("theirs")
}

// EKS accepts one change of a group at a time. The step waits for another change.
func TestAGroupThatIsBeingUpdated(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	s.cloud.EKS.Delay = 2
	s.cloud.EKS.Groups["system"].Status = types.NodegroupStatusUpdating
	var all []string
	for range 4 {
		changes, progress, err := s.call()
		if err != nil || progress.Wait == 0 {
			t.Fatalf("%+v, %v", progress, err)
		}
		all = append(all, changes)
	}
	if got := strings.Join(all, "|"); strings.Count(got, "scaled") != 1 {
		t.Errorf("changes %s", got)
	}
	s.sized("1 3 4")
}

// begun returns a rack that needs one more node, with an EKS that creates it on request.
func begun(t *testing.T) *scene {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m")
	return s
}

func (s *scene) next() (bool, error) {
	progress, err := s.step.Run(context.Background(), s.plan, "capacity")
	if *s.cloud.EKS.Groups["system"].ScalingConfig.DesiredSize == 3 {
		s.node("system-3", "2", in("system"))
	}
	return progress.Wait == 0, err
}

func TestInterrupted(t *testing.T) {
	state := func(s *scene) any {
		return fmt.Sprint(*s.cloud.EKS.Groups["system"].ScalingConfig.DesiredSize, s.checkpoints.Kept)
	}
	var s *scene
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s = begun(t)
		return s.cloud, s.next
	}, func(*awsfake.Cloud) any { return state(s) })

	t.Log("and at every request to the API server")
	for n := 1; n <= 8; n++ {
		s := begun(t)
		s.api.FailAt = n
		failed := false
		for range 10 {
			done, err := s.next()
			if failed = failed || err != nil; done && err == nil {
				break
			}
		}
		if got := state(s); !failed || got != "3 map[]" {
			t.Errorf("request %d failed: %v, and the end is %v", n, failed, got)
		}
	}
}
