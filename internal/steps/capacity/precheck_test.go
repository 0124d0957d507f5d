package capacity

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The nodes that groups could add count as capacity, but EKS is not asked for them yet.
func TestAskingScalesNothing(t *testing.T) {
	s := begin(t)
	s.asked()
	s.karpenter("1500m", "1500m", "1500m", "1500m")
	s.asked()
	s.sized("1 2 4")
	s.pod("one-too-many", "k-0", "1500m")
	s.refused("by an estimate the 5 pods on Karpenter's nodes request cpu 7.5", "room for pods 1 is missing then")
}

// The estimate is of sums and of single pods. Whether pods fit together the scheduler decides, so what may fit is not
// refused.
func TestWhatTheEstimateCannotKnowIsNotRefused(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m", "1500m", "1500m", "1500m")
	s.pod("between", "k-0", "1")
	s.asked()
	t.Log("more than all nodes have")
	s.pod("more", "k-0", "1100m")
	s.refused("request cpu 8.1", "room for cpu 0.1 is missing then")
	t.Log("a pod that is larger than each node")
	s = begin(t)
	s.karpenter("2100m")
	s.refused("1 pod(s) have no place then: shop/web-0")
}

// Once turning off has begun, it is not rejected halfway. The step waits for what has changed since and names the ways
// out; force goes on.
func TestWhatHasBegunIsNotRefused(t *testing.T) {
	s := begin(t)
	s.karpenter("1500m")
	if _, _, err := s.part("fit"); err != nil || s.checkpoints.Kept[outcome.CheckpointOff] == "" {
		t.Fatalf("%v, kept %v", err, s.checkpoints.Kept)
	}
	s.karpenter("1500m", "1500m", "1500m", "1500m", "1500m")
	s.cloud.Forget()
	if _, _, err := s.part("fit"); err != nil || len(s.cloud.Writes()) > 0 {
		t.Errorf("%v, writes %v", err, s.cloud.Writes())
	}
	s.held("waits because of a change since turning off began (write karpenter_enabled=true to go back)", "room for pods 1 is missing then",
		"Raise the maximum of node group system to 5")
	s.pool("theirs", "")
	s.held("NodePools that Sawhorse did not make: theirs")
	s.plan.Force = events.ForceWords
	if _, progress, err := s.call(); err != nil || progress.Wait != 0 {
		t.Errorf("%+v, %v", progress, err)
	}

	t.Log("a removal that has begun goes on")
	s = begin(t)
	s.karpenter("3")
	s.refused("shop/web-0")
	s.checkpoints.Kept[outcome.CheckpointRemoval] = "{}"
	if _, _, err := s.part("fit"); err != nil || s.checkpoints.Kept[outcome.CheckpointOff] != "" {
		t.Errorf("%v, kept %v", err, s.checkpoints.Kept)
	}
}

// All problems are reported at once. force skips the check.
func TestAllThatSpeaksAgainstIt(t *testing.T) {
	s := begin(t)
	s.karpenter("3")
	s.pool("theirs", "")
	s.refused("NodePools that Sawhorse did not make: theirs", "1 pod(s) have no place then: shop/web-0")
	s.plan.Force = events.ForceWords
	s.asked()
}

// NodePools that another Karpenter serves do not keep the rack's, which may never have been turned on, from being turned off.
func TestNodePoolsOfAnotherKarpenter(t *testing.T) {
	s := begin(t)
	s.pool("theirs", "")
	controller := func(namespace, rack string, ready int) {
		s.api.Put("/apis/apps/v1/namespaces/"+namespace+"/deployments/karpenter", "apps/v1", "Deployment", object{
			"metadata": object{"labels": object{"app.kubernetes.io/name": "karpenter", ownership.TagRack: rack}},
			"status":   object{"readyReplicas": ready}})
	}
	controller("kube-system", "demo", 2)
	s.refused("NodePools that Sawhorse did not make: theirs")
	controller("karpenter", "", 0)
	s.refused("NodePools that Sawhorse did not make: theirs")
	controller("karpenter", "", 1)
	s.asked()
	if _, progress, err := s.call(); err != nil || progress.Wait != 0 {
		t.Errorf("%+v, %v", progress, err)
	}
}

// The additional pods of a restored Cluster Autoscaler need capacity too, also while it is not back yet. Its running pods are
// counted on their nodes.
func TestClusterAutoscalerTakesRoom(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(1, 2, 2))
	s.karpenter("1500m", "1500m")
	s.asked()
	put := func(replicas int) {
		s.api.Put("/apis/apps/v1/namespaces/kube-system/deployments/scaler", "apps/v1", "Deployment",
			object{"metadata": object{}, "spec": object{"replicas": replicas, "template": object{"spec": object{
				"containers": []any{object{"name": "c", "resources": object{"requests": object{"cpu": "1100m"}}}}}}}})
	}
	put(0)
	s.baselines.Kept[outcome.BaselineAutoscaler] = `{"deployment":"kube-system/scaler","replicas":1}`
	s.refused("the 2 pods on Karpenter's nodes and 1 of Cluster Autoscaler request cpu 4.1", "have cpu 4,", "room for cpu 0.1")
	s.held("the 2 pods on Karpenter's nodes and 1 of Cluster Autoscaler request cpu 4.1")
	put(1)
	s.asked()
	put(0)
	s.baselines.Kept[outcome.BaselineAutoscaler] = `{"deployment":"kube-system/other","replicas":1}`
	s.asked()
}

// An emptied build group is restored with the nodes that it had, and they count as capacity for the pods that they
// admit.
func TestBuildGroupsThatComeBack(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(1, 2, 2))
	s.karpenter("1500m", "1500m")
	s.pod("worker", "k-0", "1500m", object{"tolerations": []any{object{"key": "dedicated", "value": "build", "effect": "NoSchedule"}}})
	s.refused("room for cpu 0.5, pods 1 is missing then")
	s.baselines.Kept[outcome.BaselineSize("build")] = `{"minSize":1,"maxSize":3,"desiredSize":1}`
	s.asked()
	t.Log("the part that makes room waits for them")
	if changes, progress, err := s.call(); err != nil || changes != "" ||
		!strings.Contains(progress.Note, "node group build has 0 of 1 nodes Ready") {
		t.Errorf("%s, %+v, %v", changes, progress, err)
	}
	s.plan.Nodegroups.BuildMin = new(0)
	s.refused("room for cpu 0.5, pods 1 is missing then")
}

// A group that migrate_node_groups has emptied comes back with its nodes, and the nodes that Sawhorse cordoned take pods again. Those
// that others cordoned, whose instances end, or whose group EKS deletes, do not.
func TestMigratedGroupsThatComeBack(t *testing.T) {
	s := begin(t)
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 1))
	s.baselines.Kept[outcome.BaselineMigrated("system")] = `{"minSize":1,"maxSize":2,"desiredSize":2}`
	cordoned := func(annotations object, group string) {
		for _, name := range []string{"system-1", "system-2"} {
			s.node(name, "2", in(group), object{"unschedulable": true})
			s.api.Objects["/api/v1/nodes/"+name].SetAnnotations(nil)
			for key, value := range annotations {
				k8s.SetAnnotation(s.api.Objects["/api/v1/nodes/"+name], key, value.(string))
			}
		}
	}
	s.karpenter("1500m", "1500m")
	cordoned(object{ownership.TagRack: "demo", ownership.AnnotationMigrating: "emptying"}, "system")
	s.asked()
	s.pod("third", "k-0", "1500m")
	s.refused("have cpu 4,", "node group system comes back with 2 of at most 2 nodes")

	t.Log("with a maximum that was raised since")
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 3))
	s.asked()
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 1))

	t.Log("those whose instances end are replaced")
	cordoned(object{ownership.TagRack: "demo", ownership.AnnotationMigrating: drain.Ended}, "system")
	s.refused("have nothing free", "comes back with 2 of at most 2 nodes")
	s.api.Objects["/api/v1/namespaces/shop/pods/third"].SetDeletionTimestamp(new(metav1.Now()))
	s.asked()

	t.Log("those that others cordoned, and those of a group that EKS deletes, are not")
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 2, 2))
	for _, annotations := range []object{{}, {ownership.TagRack: "other"}} {
		cordoned(annotations, "system")
		s.refused("have nothing free", "comes back with 2 of at most 2 nodes")
	}
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 2))
	cordoned(object{ownership.TagRack: "demo"}, "deleted")
	s.pod("third", "k-0", "1500m")
	s.refused("have nothing free")

	t.Log("an earlier group of that name was emptied")
	s.api.Objects["/api/v1/namespaces/shop/pods/third"].SetDeletionTimestamp(new(metav1.Now()))
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(0, 0, 0))
	s.asked()
	s.baselines.Kept[outcome.BaselineMigrated("system")] = `{"minSize":1,"maxSize":2,"desiredSize":2,"created":"2000-01-01T00:00:00Z"}`
	s.refused("node group system has 0 of at most 0 nodes")
}

// A group that comes back in the role of an additional one counts, and is not raised.
func TestAnAdditionalGroupThatComesBack(t *testing.T) {
	s := begin(t)
	s.plan.Nodegroups.Additional = []string{"apps"}
	s.cloud.EKS.Groups["system"].ScalingConfig = new(size(1, 2, 2))
	s.cloud.EKS.Group("apps", size(0, 0, 5), nil).InstanceTypes = []string{"m6i.large"}
	s.karpenter("1500m", "1500m", "1500m")
	s.refused("room for cpu 0.5, pods 1 is missing then")
	s.baselines.Kept[outcome.BaselineMigrated("apps")] = `{"minSize":1,"maxSize":5,"desiredSize":1}`
	s.asked()
	if changes, progress, err := s.call(); err != nil || changes != "" ||
		!strings.Contains(progress.Note, "node group apps has 0 of 1 nodes Ready") {
		t.Errorf("%s, %+v, %v", changes, progress, err)
	}
	s.pod("fourth", "k-0", "1500m")
	s.refused("room for")
}
