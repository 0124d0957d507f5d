package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

type object = k8stest.Object

type scene struct {
	*testing.T
	*k8stest.Cluster
	cloud                  *awsfake.Cloud
	baselines, checkpoints *awsfake.Recorder
	step                   *Step
	plan                   *plan.Plan
	clock                  time.Time
}

// begin returns a rack with a pool for builds, in a cluster with a Cluster Autoscaler that scales and a build group at zero.
func begin(t *testing.T) *scene {
	s := &scene{T: t, Cluster: k8stest.New(t), clock: time.Now().Truncate(time.Second)}
	s.InstallCRDs()
	s.plan = planned(t)
	admin, err := k8s.New("test", s.Config)
	if err == nil {
		_, err = admin.Create(t.Context(), s.plan.Access.Namespace) // it stays, because no controller would end its deletion
	}
	if err != nil {
		t.Fatal(err)
	}
	connect := s.Connector("proof")
	s.begin(awsfake.New(), connect)
	s.autoscaler(1, nil)
	t.Cleanup(func() {
		for _, resource := range []string{"pods", "nodes", "events"} {
			for _, left := range s.List("", "v1", resource) {
				s.Remove(left.Object)
			}
		}
		for _, left := range s.List("karpenter.sh", "v1", "nodeclaims") {
			s.Remove(left.Object)
		}
	})
	return s
}

func (s *scene) begin(cloud *awsfake.Cloud, connect k8s.Connector) {
	s.cloud, s.baselines, s.checkpoints = cloud, awsfake.NewBaselines(cloud), awsfake.NewCheckpoints(cloud)
	s.step = &Step{
		EKS: cloud.EKS, Connect: connect, Baselines: s.baselines, Checkpoints: s.checkpoints, Limit: 15 * time.Minute,
		Now: func() time.Time { return s.clock },
	}
}

// planned makes the plan as a pass makes it.
func planned(t *testing.T) *plan.Plan {
	parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true",
	}})
	facts := plan.Facts{Offline: true, NodeGroups: []plan.NodeGroup{{Name: "system"}, {Name: "build", Labels: map[string]string{
		ownership.LabelBuild: "true"}}}}
	pool := func(name string, taints ...any) plan.Object {
		return plan.Object{"kind": "NodePool", "metadata": object{"name": name},
			"spec": object{"template": object{"spec": object{"taints": taints}}}}
	}
	built := plan.Build(parsed.Config, facts, []plan.Object{
		pool("workload", object{"key": "team", "effect": "NoSchedule"}), pool("gpu"),
		pool("build", object{"key": "dedicated", "value": "build", "effect": "NoSchedule"}),
	})
	if len(parsed.Problems)+len(built.Problems) > 0 || len(built.Plan.Proof.Pods) != 2 {
		t.Fatal(parsed.Problems, built.Problems, built.Plan.Proof)
	}
	built.Plan.Generation = 7
	return &built.Plan
}

func (s *scene) build(desired int32) {
	s.cloud.EKS.Groups["build"] = &types.Nodegroup{NodegroupName: new("build"),
		Resources:     &types.NodegroupResources{AutoScalingGroups: []types.AutoScalingGroup{{Name: new("eks-build-1")}}},
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: new(int32(0)), MaxSize: new(int32(5)), DesiredSize: &desired}}
}

func (s *scene) autoscaler(replicas int, annotations object, args ...any) {
	s.Helper()
	labels := object{"app": "ca"}
	scaler := object{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": object{"name": "ca", "namespace": "kube-system", "annotations": annotations},
		"spec": object{"replicas": replicas, "selector": object{"matchLabels": labels}, "template": object{
			"metadata": object{"labels": labels},
			"spec": object{"containers": []any{object{"name": "ca", "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1",
				"args": args}}}}}}
	s.Remove(scaler)
	s.Create(scaler)
}

// waits runs the step, which must wait with these words, and returns what it changed.
func (s *scene) waits(words ...string) string {
	s.Helper()
	progress, err := s.step.Run(s.Context(), s.plan, "")
	if err != nil || progress.Wait != poll {
		s.Fatalf("%+v, %v", progress, err)
	}
	for _, word := range words {
		if !strings.Contains(progress.Note, word) {
			s.Errorf("no %q in: %s", word, progress.Note)
		}
	}
	return fmt.Sprint(progress.Changes)
}

// done runs the step, which must be done and leave neither pods nor a record, and returns what it changed.
func (s *scene) done() string {
	s.Helper()
	progress, err := s.step.Run(s.Context(), s.plan, "")
	if err != nil || progress.Wait != 0 || len(s.checkpoints.Kept) > 0 {
		s.Fatalf("%+v, %v, kept %v", progress, err, s.checkpoints.Kept)
	}
	for _, pod := range s.List("", "v1", "pods") {
		if pod.GetDeletionTimestamp() == nil {
			s.Errorf("%s is left", pod.GetName())
		}
	}
	return fmt.Sprint(progress.Changes)
}

func pod(pool string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": pool, "namespace": ownership.ProofNamespace}}
}

// comes is a node of a pool that has joined the cluster.
func (s *scene) comes(pool, ready string) {
	s.Helper()
	s.Create(object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "node-" + pool, "labels": object{
		ownership.LabelPool: pool, ownership.LabelRegistered: "true"}},
		"status": object{"conditions": []any{object{"type": "Ready", "status": ready}}}})
}

// bound is what the scheduler does with the pod of a pool, and the kubelet with its network.
func (s *scene) bound(pool, network string) {
	s.Helper()
	s.Change(pod(pool), func(live *unstructured.Unstructured) {
		s.Remove(live.Object) // only the scheduler may bind a pod that exists
		_ = unstructured.SetNestedField(live.Object, "node-"+pool, "spec", "nodeName")
		unstructured.RemoveNestedField(live.Object, "metadata", "resourceVersion")
		unstructured.RemoveNestedField(live.Object, "metadata", "uid")
		s.Create(live.Object)
		*live = *s.Get(pod(pool))
	})
	s.Status(pod(pool), object{"phase": "Pending", "conditions": []any{
		object{"type": "PodScheduled", "status": "True"}, object{"type": "PodReadyToStartContainers", "status": network}}})
}

func (s *scene) warned(namespace, component, reason, message string, about object) {
	s.Helper()
	s.Create(object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": strings.ToLower(reason), "namespace": namespace},
		"involvedObject": about, "type": "Warning", "reason": reason, "message": message, "source": object{"component": component},
		"lastTimestamp": s.clock.UTC().Format(time.RFC3339)})
}

func TestAPoolShowsItsFirstNode(t *testing.T) {
	s := begin(t)
	if changes := s.waits("pool workload has no first node yet: a pod asks for it"); changes != "[{Pod/sawhorse-proof/workload created}]" {
		t.Error(changes)
	}
	made, err := k8s.As[corev1.Pod](s.Get(pod("workload")))
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.NodeSelector[ownership.LabelPool] != "workload" || made.Annotations["karpenter.sh/do-not-disrupt"] != "true" ||
		!slices.ContainsFunc(made.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "team" && t.Operator == "Exists" }) {
		t.Errorf("%+v", made)
	}
	t.Log("the node is not Ready; then the pod has no network; then it has")
	s.waits("Karpenter and the scheduler have said nothing")
	s.comes("workload", "False")
	s.bound("workload", "True")
	s.waits("no first node yet")
	s.Status(object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "node-workload"}},
		object{"conditions": []any{object{"type": "Ready", "status": "True"}}})
	s.bound("workload", "False")
	s.waits("no first node yet")
	s.bound("workload", "True")
	if changes := s.done(); changes != "[{Pod/sawhorse-proof/workload deleted}]" {
		t.Error(changes)
	}
	if changes := s.done(); changes != "[]" {
		t.Errorf("a node that is Ready suffices, and the step did %s", changes)
	}
}

func TestWhatNeedsNoProof(t *testing.T) {
	s := begin(t)
	untouched := func(what string) {
		t.Helper()
		s.cloud.Forget()
		if changes := s.done(); changes != "[]" || len(s.cloud.Writes()) > 0 {
			t.Errorf("%s: %s, %v", what, changes, s.cloud.Writes())
		}
	}
	s.autoscaler(0, nil)
	untouched("a Cluster Autoscaler that does not scale")
	s.autoscaler(1, object{ownership.AnnotationAutoscaler: "demo"})
	untouched("a Cluster Autoscaler that was handed over, also while somebody scales it")
	s.plan.Autoscaler.Deployment = "kube-system/ca"
	s.Change(object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "ca", "namespace": "kube-system"}},
		func(live *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(live.Object, []any{map[string]any{"name": "ca", "image": "example.com/fork:2"}},
				"spec", "template", "spec", "containers")
		})
	untouched("one that was handed over, and whose image has another name since")
	s.plan.Autoscaler.Deployment = ""
	s.build(0)
	untouched("a build group at zero that nothing scales")
	s.build(2)
	s.baselines.Kept[outcome.BaselineSize("build")] = `{}`
	untouched("a build group that is being emptied")
	delete(s.cloud.EKS.Groups, "build")
	untouched("a build group that is gone")
	s.Remove(object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "ca", "namespace": "kube-system"}})
	untouched("a cluster without a Cluster Autoscaler")
	s.autoscaler(1, nil)
	s.comes("workload", "True")
	untouched("a pool with a node")
	s.plan.Proof.Pods = nil
	untouched("a plan without pools that take over")
}

func TestBuildGroupsAreTakenOverToo(t *testing.T) {
	s := begin(t)
	s.comes("workload", "True")
	s.build(1)
	if changes := s.waits("pool build has no first node yet"); changes != "[{Pod/sawhorse-proof/build created}]" {
		t.Error(changes)
	}
	delete(s.baselines.Kept, outcome.BaselineSize("build"))
	s.comes("build", "True")
	s.bound("build", "True")
	s.done()
}

// Cluster Autoscaler scales a build group from zero, also one that was handed over and has kept it: the pool that takes over shows a node
// too, but only while that is so.
func TestABuildGroupAtZero(t *testing.T) {
	s := begin(t)
	s.comes("workload", "True")
	s.build(0)
	if changes := s.waits("pool build has no first node yet"); changes != "[{Pod/sawhorse-proof/build created}]" {
		t.Error(changes)
	}
	s.autoscaler(1, object{ownership.AnnotationAutoscaler: "demo"}, "--nodes=0:2:eks-batch-1", "--nodes=0:5:eks-build-1")
	s.waits("pool build has no first node yet")
	s.autoscaler(1, object{ownership.AnnotationAutoscaler: "demo"}, "--nodes=0:2:eks-batch-1")
	s.done()
}

// A pod that was preempted, or that somebody deletes, is created again.
func TestAPodThatEndsIsCreatedAgain(t *testing.T) {
	s := begin(t)
	s.waits()
	s.Remove(pod("workload"))
	if changes := s.waits("a pod asks for it"); !strings.Contains(changes, "workload created") {
		t.Error(changes)
	}
	s.Status(pod("workload"), object{"phase": "Failed"})
	if changes := s.waits("has ended, and is created again"); !strings.Contains(changes, "workload deleted") {
		t.Error(changes)
	}
	if changes := s.waits("a pod asks for it"); !strings.Contains(changes, "workload created") {
		t.Error(changes)
	}
}

// The words are Karpenter's, EC2's, the scheduler's and the kubelet's: of NodeClaims that are there, of those that Karpenter
// has deleted since, and of the pod. Those of another pool, or of an earlier attempt, are not among them.
func TestWhyThereIsNoNode(t *testing.T) {
	s := begin(t)
	claim := func(name string) object { return object{"kind": "NodeClaim", "name": name} }
	s.clock = s.clock.Add(-time.Hour)
	s.warned("default", "karpenter", "EarlierError", "an earlier attempt", claim("workload-aaaaa"))
	s.clock = s.clock.Add(time.Hour)
	s.waits()
	s.clock = time.Now() // the pod's creation has the API server's time
	s.warned("default", "karpenter", "InsufficientCapacityError", "with fleet error(s), VcpuLimitExceeded: You have requested more",
		claim("workload-bbbbb"))
	s.warned("default", "karpenter", "OtherError", "another pool", claim("workload-gpu-bbbbb"))
	s.warned(ownership.ProofNamespace, "default-scheduler", "FailedScheduling", "0/2 nodes are available", object{
		"kind": "Pod", "namespace": ownership.ProofNamespace, "name": "workload", "uid": string(s.Get(pod("workload")).GetUID())})
	s.Create(object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": object{"name": "workload-ccccc", "labels": object{ownership.LabelPool: "workload"}},
		"spec": object{"requirements": []any{}, "nodeClassRef": object{
			"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "workload"}},
		"status": object{"conditions": []any{
			object{"type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"},
			object{"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "message": "Node not registered with cluster",
				"lastTransitionTime": "2026-01-02T03:04:05Z"}}}})
	progress, err := s.step.Run(t.Context(), s.plan, "")
	const want = "pool workload has no first node yet: NodeClaim/workload-ccccc: Registered=Unknown NodeNotFound Node not registered with " +
		"cluster; karpenter: InsufficientCapacityError: with fleet error(s), VcpuLimitExceeded: You have requested more; " +
		"default-scheduler: FailedScheduling: 0/2 nodes are available"
	if err != nil || progress.Note != want {
		t.Errorf("%v\n%s\nwant\n%s", err, progress.Note, want)
	}
	t.Log("another pass waits for the same pod, and Karpenter, which remembers, says nothing more")
	s.plan.Generation++
	s.clock = s.clock.Add(2 * time.Minute)
	s.waits(want)
}

// After the limit the step fails with what was missing, and leaves no pod. The next pass has the whole time again. A node that
// has come meanwhile proves nothing by itself, because the pod had no network on it.
func TestAPoolThatShowsNoNode(t *testing.T) {
	s := begin(t)
	s.waits()
	s.comes("workload", "True")
	s.bound("workload", "False")
	s.clock = s.clock.Add(s.step.Limit)
	s.warned(ownership.ProofNamespace, "kubelet", "FailedCreatePodSandBox", "failed to assign an IP address to container", object{
		"kind": "Pod", "namespace": ownership.ProofNamespace, "name": "workload", "uid": string(s.Get(pod("workload")).GetUID())})
	_, err := s.step.Run(t.Context(), s.plan, "")
	if err == nil || !strings.Contains(err.Error(), "failed to assign an IP address to container; that took longer than 15m0s, and "+
		outcome.NotHandedOver) {
		t.Fatal(err)
	}
	if live := s.Get(pod("workload")); live != nil && live.GetDeletionTimestamp() == nil {
		t.Error("the pod is left")
	}
	s.Remove(pod("workload"))
	s.plan.Generation++
	if changes := s.waits("a pod asks for it"); !strings.Contains(changes, "workload created") {
		t.Error(changes)
	}
	s.clock = s.clock.Add(s.step.Limit - time.Second)
	s.bound("workload", "False")
	s.waits("no first node yet")
	s.bound("workload", "True")
	s.done()
}

// A newer pass that finds the pod of an earlier one has the whole time too.
func TestEachPassHasTheWholeTime(t *testing.T) {
	s := begin(t)
	s.waits()
	s.clock = s.clock.Add(time.Hour)
	s.plan.Generation++
	s.waits()
	s.clock = s.clock.Add(s.step.Limit - time.Second)
	s.waits()
	s.clock = s.clock.Add(time.Second)
	if _, err := s.step.Run(t.Context(), s.plan, ""); err == nil {
		t.Error("it waits for ever")
	}
}

func TestNothingIsLeftOnTheWayOff(t *testing.T) {
	s := begin(t)
	s.waits()
	s.plan.Goal = plan.GoalAccess
	if changes := s.done(); changes != "[{Pod/sawhorse-proof/workload deleted}]" {
		t.Error(changes)
	}
	s.done()
}

func TestAnAuditCreatesNothing(t *testing.T) {
	s := begin(t)
	s.step.Connect = k8s.ReadOnly(s.step.Connect)
	_, err := s.step.Run(t.Context(), s.plan, "")
	if len(s.checkpoints.Kept) == 0 || !errors.Is(err, readonly.ErrWouldWrite) || len(s.List("", "v1", "pods")) > 0 {
		t.Errorf("%v, kept %v", err, s.checkpoints.Kept)
	}
	s.autoscaler(1, object{ownership.AnnotationAutoscaler: "demo"})
	clear(s.checkpoints.Kept)
	s.done()
}

// The right to create pods in the namespace gives nothing else: none that reaches its node is admitted.
func TestTheNamespaceAdmitsOnlyRestrictedPods(t *testing.T) {
	s := begin(t)
	client, err := s.step.Connect(t.Context(), plan.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string]func(spec object){
		"the node's network": func(spec object) { spec["hostNetwork"] = true },
		"the node's files": func(spec object) {
			spec["volumes"] = []any{object{"name": "host", "hostPath": object{"path": "/"}}}
		},
		"root": func(spec object) { delete(spec, "securityContext") },
	} {
		manifest := (&unstructured.Unstructured{Object: s.plan.Proof.Pods[0]}).DeepCopy().Object
		edit(manifest["spec"].(map[string]any))
		if _, err := client.Create(t.Context(), manifest); !k8s.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	s := begin(t)
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		cloud := awsfake.New()
		config := s.As(ownership.Group("proof"))
		config.Wrap(cloud.Calls.Writing)
		client, err := k8s.New("test", config)
		if err != nil {
			t.Fatal(err)
		}
		s.begin(cloud, func(context.Context, plan.Cluster) (*k8s.Client, error) { return client, nil })
		for _, left := range []object{pod("workload"), {"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "node-workload"}}} {
			s.Remove(left)
		}
		return cloud, func() (bool, error) {
			progress, err := s.step.Run(context.Background(), s.plan, "")
			if live := s.Get(pod("workload")); live != nil && progress.Wait > 0 && s.nodeless(live) {
				s.comes("workload", "True")
				s.bound("workload", "True")
			}
			return progress.Wait == 0, err
		}
	}, func(*awsfake.Cloud) any {
		live := s.Get(pod("workload"))
		return fmt.Sprint(live != nil && live.GetDeletionTimestamp() == nil, s.checkpoints.Kept)
	})
}

func (s *scene) nodeless(pod *unstructured.Unstructured) bool {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return node == ""
}
