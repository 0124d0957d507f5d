package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

type object = k8stest.Object

var command = []any{"./cluster-autoscaler", "--v=4",
	"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/east", "--balance-similar-node-groups"}

func autoscaler(name, image string) object {
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": "kube-system"},
		"spec": object{"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels},
			"spec": object{"nodeSelector": object{"kubernetes.io/os": "linux"}, "containers": []any{
				object{"name": "sidecar", "image": "example.com/proxy:1"}, object{"name": "ca", "image": image, "command": command}}}}}}
}

const image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0@sha256:" +
	"0123456789012345678901234567890123456789012345678901234567890123"

type scene struct {
	*testing.T
	*k8stest.Cluster
	step        *Step
	plan        *plan.Plan
	baselines   *awsfake.Recorder
	checkpoints *awsfake.Recorder
	contests    *awsfake.Recorder
	scaling     *awsfake.AutoScaling
	clock       time.Time
}

func begin(t *testing.T) *scene {
	cloud := awsfake.New()
	s := &scene{T: t, Cluster: k8stest.New(t), baselines: awsfake.NewBaselines(cloud), checkpoints: awsfake.NewCheckpoints(cloud),
		contests: awsfake.NewContests(), scaling: &awsfake.AutoScaling{},
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.step = &Step{
		Connect: s.Connector("autoscaler"), AutoScaling: s.scaling, Baselines: s.baselines, Checkpoints: s.checkpoints, Contests: s.contests,
		Now: func() time.Time { return s.clock },
	}
	s.plan = &plan.Plan{Rack: "demo", Autoscaler: plan.Autoscaler{
		Args:         []string{"--nodes=1:5:eks-extra-1", "--nodes=0:2:eks-extra-2"},
		FallbackArgs: []string{"--node-group-auto-discovery=fallback", "--balance-similar-node-groups"}}}
	return s
}

// run runs the step with a state. If it is to change something, the step must wait for the rollout.
func (s *scene) run(state plan.AutoscalerState, changes bool) outcome.Progress {
	s.Helper()
	s.plan.Autoscaler.State = state
	progress, err := s.step.Run(context.Background(), s.plan, "")
	if err != nil {
		s.Fatal(err)
	}
	if len(progress.Changes) > 0 != changes || (changes && progress.Wait == 0) {
		s.Fatalf("state %s: %+v", state, progress)
	}
	return progress
}

// settled returns the Deployment once the state is reached and a second run has done nothing.
func (s *scene) settled(o object, state plan.AutoscalerState) string {
	s.Helper()
	if progress := s.run(state, false); progress.Wait == 0 && state != plan.AutoscalerBaseline {
		s.Fatal("does not wait for the rollout")
	}
	s.RolledOut(o)
	if progress := s.run(state, false); progress.Wait != 0 {
		s.Fatalf("waits: %s", progress.Note)
	}
	before := s.Get(o).GetResourceVersion()
	s.run(state, false)
	if s.Get(o).GetResourceVersion() != before {
		s.Fatal("the second run wrote something")
	}
	return s.shape(o)
}

func (s *scene) shape(o object) string {
	live := deployment{s.Get(o)}
	selector, _, _ := unstructured.NestedMap(live.Object, "spec", "template", "spec", "nodeSelector")
	return fmt.Sprint(live.replicas(), live.line().Command, live.line().Args, selector, live.GetAnnotations())
}

func node(ready string) object {
	return object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "system",
		"labels": object{ownership.LabelSystemNode: "true"}},
		"status": object{"conditions": []any{object{"type": "Ready", "status": ready}}}}
}

// A complete hand-over deletes the record that turning off has begun, so that the next turning off checks the capacity
// again. Handing scaling back keeps the record.
func TestAHandOverEndsWhatHadBegun(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	s.checkpoints.Kept[outcome.CheckpointOff] = "{}"
	s.run(plan.AutoscalerBaseline, false)
	s.run(plan.AutoscalerOff, true)
	if s.checkpoints.Kept[outcome.CheckpointOff] == "" {
		t.Error("it has ended although the hand-over has not")
	}
	if s.settled(o, plan.AutoscalerOff); s.checkpoints.Kept[outcome.CheckpointOff] != "" {
		t.Error("it has not ended")
	}
}

func TestHandsOverAndBack(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	found := s.shape(o)
	const classic = "[./cluster-autoscaler --v=4 " +
		"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/east --balance-similar-node-groups] [] "

	t.Log("turning off what was never on changes nothing")
	s.run(plan.AutoscalerBaseline, false)

	t.Log("off: no replicas, arguments untouched")
	s.run(plan.AutoscalerOff, true)
	off := "0 " + classic + "map[kubernetes.io/os:linux] map[" + ownership.AnnotationAutoscaler + ":demo]"
	if got := s.settled(o, plan.AutoscalerOff); got != off {
		t.Errorf("off: %s", got)
	}

	t.Log("groups: not before a Ready system node, then explicit groups from there")
	if progress := s.run(plan.AutoscalerGroups, false); progress.Wait == 0 || !strings.Contains(progress.Note, "no Ready node") {
		t.Errorf("%+v", progress)
	}
	s.Create(node("True"))
	s.run(plan.AutoscalerGroups, true)
	want := "1 [./cluster-autoscaler --v=4 --nodes=1:5:eks-extra-1 --nodes=0:2:eks-extra-2 --balance-similar-node-groups] [] " +
		"map[convox.io/system-node:true kubernetes.io/os:linux] map[" + ownership.AnnotationAutoscaler + ":demo]"
	if got := s.settled(o, plan.AutoscalerGroups); got != want {
		t.Errorf("groups: %s\nwant    %s", got, want)
	}

	t.Log("baseline: exactly as found; waited for; then forgotten")
	s.run(plan.AutoscalerBaseline, true)
	if progress := s.run(plan.AutoscalerBaseline, false); progress.Wait == 0 || len(s.baselines.Kept) != 1 {
		t.Errorf("%+v, baselines %v", progress, s.baselines.Kept)
	}
	if got := s.settled(o, plan.AutoscalerBaseline); got != found {
		t.Errorf("baseline: %s\nfound     %s", got, found)
	}
	if len(s.baselines.Kept) != 0 {
		t.Errorf("baselines %v", s.baselines.Kept)
	}
}

// Pods that find no room on system nodes run where they ran before. They are tried there again after a day, and turning off leaves
// nothing of it.
func TestNoRoomOnSystemNodes(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(node("True"))
	s.Create(o)
	s.RolledOut(o)
	found := s.shape(o)
	selector := func() string { return fmt.Sprint(k8s.NodeSelector(s.Get(o))) }
	const pinned, free = "map[convox.io/system-node:true kubernetes.io/os:linux]", "map[kubernetes.io/os:linux]"
	is := func(want string) {
		t.Helper()
		if got := selector(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	s.run(plan.AutoscalerGroups, true)
	is(pinned)
	pod := object{"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": "ca-2", "namespace": "kube-system", "labels": object{"app": "ca"}},
		"spec": object{"nodeSelector": object{ownership.LabelSystemNode: "true"},
			"containers": []any{object{"name": "c", "image": "example.com/c:1"}}},
		"status": object{"conditions": []any{object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message": "0/1 nodes are available: 1 Insufficient memory.", "lastTransitionTime": s.clock.Format(time.RFC3339)}}}}
	s.Create(pod)

	s.clock = s.clock.Add(k8s.UnplacedAfter - time.Second)
	s.run(plan.AutoscalerGroups, false)
	is(pinned)
	s.clock = s.clock.Add(time.Second)
	progress := s.run(plan.AutoscalerGroups, true)
	is(free)
	if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "Insufficient memory") {
		t.Errorf("%+v", progress.Warnings)
	}
	s.run(plan.AutoscalerGroups, false) // the pod that waits is still there
	s.Remove(pod)
	s.settled(o, plan.AutoscalerGroups)
	if progress = s.run(plan.AutoscalerGroups, false); len(progress.Warnings) != 1 {
		t.Errorf("%+v", progress.Warnings)
	}

	s.plan.Generation = 8 // an audit's, or another pass'
	s.clock = s.clock.Add(23 * time.Hour)
	if progress = s.run(plan.AutoscalerGroups, false); len(progress.Warnings) != 1 {
		t.Errorf("%+v", progress.Warnings)
	}
	s.clock = s.clock.Add(time.Hour)
	if progress = s.run(plan.AutoscalerGroups, true); len(progress.Warnings) != 0 {
		t.Errorf("%+v", progress.Warnings)
	}
	is(pinned)
	s.Create(pod)
	s.run(plan.AutoscalerGroups, true)
	is(free)
	s.Remove(pod)
	s.RolledOut(o)
	s.run(plan.AutoscalerBaseline, true)
	if got := s.settled(o, plan.AutoscalerBaseline); got != found {
		t.Errorf("%s, want %s", got, found)
	}
}

// One that its owner keeps on system nodes stays there.
func TestNoRoomWhereItsOwnerWantsIt(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	spec := o["spec"].(object)["template"].(object)["spec"].(object)
	spec["nodeSelector"] = object{ownership.LabelSystemNode: "true"}
	s.Create(node("True"))
	s.Create(o)
	s.RolledOut(o)
	s.run(plan.AutoscalerGroups, true)
	s.Create(object{"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": "ca-2", "namespace": "kube-system", "labels": object{"app": "ca"}},
		"spec":     object{"nodeSelector": spec["nodeSelector"], "containers": []any{object{"name": "c", "image": "example.com/c:1"}}},
		"status": object{"conditions": []any{object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message": "0/1 nodes are available: 1 Insufficient memory.", "lastTransitionTime": s.clock.Format(time.RFC3339)}}}})
	s.clock = s.clock.Add(time.Minute)
	if progress := s.run(plan.AutoscalerGroups, false); progress.Wait == 0 || !strings.Contains(progress.Note, "Insufficient memory") {
		t.Errorf("%+v", progress)
	}
}

// Somebody takes our annotation off, and nothing else: the Deployment still comes back as it was found, also if it is turned off before
// an audit has set the annotation again.
func TestOnlyTheAnnotationIsTakenOff(t *testing.T) {
	for _, state := range []plan.AutoscalerState{plan.AutoscalerOff, plan.AutoscalerGroups} {
		for _, audited := range []bool{true, false} {
			for _, unpinned := range []bool{false, true} {
				t.Run(fmt.Sprint(state, audited, unpinned), func(t *testing.T) { takesOff(t, state, audited, unpinned) })
			}
		}
	}
}

// takesOff has somebody take the annotation off a Deployment that was handed over, and perhaps the pin. Turning off restores it, also if a
// pass has seen it before.
func takesOff(t *testing.T, state plan.AutoscalerState, audited, unpinned bool) {
	s, ca := begin(t), autoscaler("east-ca", image)
	s.Create(node("True"))
	s.Create(ca)
	s.RolledOut(ca)
	found := s.shape(ca)
	s.run(state, true)
	s.settled(ca, state)
	s.Change(ca, func(live *unstructured.Unstructured) {
		live.SetAnnotations(nil)
		if unpinned {
			deployment{live}.setPin(nil)
		}
	})
	s.RolledOut(ca)
	if audited {
		s.run(state, true)
		s.settled(ca, state)
	}
	s.plan.Autoscaler.State = plan.AutoscalerBaseline
	for range 4 {
		if _, err := s.step.Run(t.Context(), s.plan, ""); err != nil {
			t.Fatal(err)
		}
		s.RolledOut(ca)
	}
	if got := s.shape(ca); got != found || len(s.baselines.Kept) > 0 {
		t.Errorf("%s, found %s; baselines %v", got, found, s.baselines.Kept)
	}
}

// Pods that do not get ready do not keep Karpenter from being turned off. Kubernetes says of a Deployment that was scaled up again only
// that it is not available.
func TestRestoredPodsThatDoNotGetReady(t *testing.T) {
	s, ca := begin(t), autoscaler("ca", image)
	s.Create(ca)
	s.RolledOut(ca)
	s.run(plan.AutoscalerOff, true)
	s.settled(ca, plan.AutoscalerOff)
	s.run(plan.AutoscalerBaseline, true)
	s.Status(ca, object{"observedGeneration": s.Get(ca).GetGeneration(), "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
		"conditions": []any{
			object{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			object{"type": "Available", "status": "False", "lastTransitionTime": s.clock.Format(time.RFC3339)},
		}})
	s.clock = s.clock.Add(patience - time.Second)
	if progress := s.run(plan.AutoscalerBaseline, false); progress.Wait == 0 || !strings.Contains(progress.Note, "0 of 1 pods ready") {
		t.Errorf("%+v", progress)
	}
	s.clock = s.clock.Add(time.Second)
	progress := s.run(plan.AutoscalerBaseline, false)
	if progress.Wait > 0 || len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "0 of 1 pods ready") ||
		len(s.baselines.Kept) > 0 {
		t.Errorf("%+v, baselines %v", progress, s.baselines.Kept)
	}
}

// What others set back counts no more once Karpenter is off: the next hand-over is not left undone because of it.
func TestAContestEndsWithTurningOff(t *testing.T) {
	s, ca := begin(t), autoscaler("ca", image)
	s.Create(ca)
	s.RolledOut(ca)
	for range 2 {
		s.run(plan.AutoscalerOff, true)
		s.settled(ca, plan.AutoscalerOff)
		s.Change(ca, func(live *unstructured.Unstructured) {
			live.SetAnnotations(nil)
			deployment{live}.scale(1)
		})
		s.RolledOut(ca)
	}
	s.run(plan.AutoscalerOff, false) // contested
	s.run(plan.AutoscalerBaseline, false)
	s.run(plan.AutoscalerOff, true)
}

func TestWithoutABaselineFallsBackOnce(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	s.run(plan.AutoscalerOff, true)
	clear(s.baselines.Kept)
	s.run(plan.AutoscalerBaseline, true)
	want := "1 [./cluster-autoscaler --v=4 --node-group-auto-discovery=fallback --balance-similar-node-groups] [] " +
		"map[kubernetes.io/os:linux] map[]"
	if got := s.settled(o, plan.AutoscalerBaseline); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The step stops after the baseline was recorded and before the change, or after the restore and before the baseline
// was forgotten.
func TestStoppedAnywhere(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.RolledOut(o)
	found := s.shape(o)
	s.run(plan.AutoscalerOff, true)
	kept := s.baselines.Kept[outcome.BaselineAutoscaler]
	s.run(plan.AutoscalerBaseline, true)
	s.RolledOut(o)
	for range 2 {
		s.run(plan.AutoscalerBaseline, false)
		if got := s.shape(o); got != found {
			t.Errorf("%s, found %s", got, found)
		}
	}
	s.baselines.Kept[outcome.BaselineAutoscaler] = kept
	s.run(plan.AutoscalerOff, true)
	s.run(plan.AutoscalerBaseline, true)
	if got := s.shape(o); got != found {
		t.Errorf("%s, found %s", got, found)
	}
}

func TestNoneAndTwo(t *testing.T) {
	s := begin(t)
	if progress := s.run(plan.AutoscalerOff, false); progress.Wait != 0 || len(progress.Warnings) != 1 ||
		progress.Note != "no Cluster Autoscaler found" {
		t.Errorf("none: %+v", progress)
	}
	s.Create(autoscaler("other", "registry.k8s.io/autoscaling/vertical-pod-autoscaler:1"))
	s.run(plan.AutoscalerOff, false)
	one, two := autoscaler("one", image), autoscaler("two", "localhost:5000/cluster-autoscaler")
	s.Create(one)
	s.Create(two)
	s.plan.Autoscaler.State = plan.AutoscalerOff
	_, err := s.step.Run(context.Background(), s.plan, "")
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "kube-system/one, kube-system/two") {
		t.Errorf("two: %v", err)
	}
	s.run(plan.AutoscalerBaseline, false)
}

// A second Cluster Autoscaler that appears after the first was handed over is a problem too: both would scale the same
// nodes.
func TestASecondOneComesLater(t *testing.T) {
	s, one, two := begin(t), autoscaler("one", image), autoscaler("two", image)
	s.Create(one)
	s.RolledOut(one)
	found := s.shape(one)
	s.run(plan.AutoscalerOff, true)
	s.Create(two)
	untouched := s.Get(two).GetResourceVersion()
	_, err := s.step.Run(context.Background(), s.plan, "")
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "kube-system/one, kube-system/two") {
		t.Errorf("two: %v", err)
	}
	s.run(plan.AutoscalerBaseline, true)
	if got := s.settled(one, plan.AutoscalerBaseline); got != found || s.Get(two).GetResourceVersion() != untouched {
		t.Errorf("one %s, found %s", got, found)
	}
}

// The parameter cluster_autoscaler must not scale arbitrary Deployments to zero. A Cluster Autoscaler is recognized by
// its image, and nothing is changed before that check, even if another Deployment has been handed over already.
func TestTheNamedOneIsNoClusterAutoscaler(t *testing.T) {
	s := begin(t)
	web, other := autoscaler("web", "registry.example/shop/cluster-autoscaler-dashboard:2"), autoscaler("other", image)
	for _, o := range []object{web, other} {
		s.Create(o)
		s.RolledOut(o)
	}
	s.Create(node("True"))
	for _, handedOver := range []bool{false, true} {
		if s.plan.Autoscaler.Deployment = ""; handedOver {
			s.run(plan.AutoscalerOff, true)
			s.RolledOut(other)
		}
		before, found := s.Get(web).GetResourceVersion(), s.shape(other)
		s.plan.Autoscaler.Deployment, s.plan.Autoscaler.State = "kube-system/web", plan.AutoscalerOff
		_, err := s.step.Run(t.Context(), s.plan, "")
		var rejected *outcome.Rejected
		if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != "cluster_autoscaler" {
			t.Fatal(err)
		}
		for _, said := range []string{`"kube-system/web"`, "example.com/proxy:1, registry.example/shop/cluster-autoscaler-dashboard:2",
			"kube-system/other looks like it"} {
			if !strings.Contains(err.Error(), said) {
				t.Errorf("it does not say %s: %v", said, err)
			}
		}
		if s.Get(web).GetResourceVersion() != before || s.shape(other) != found {
			t.Error("something was changed")
		}
	}
}

// A Deployment whose image gets another name stays handed over, follows the plan, and is restored as it was found.
func TestOneThatGetsAnotherImage(t *testing.T) {
	s := begin(t)
	mirror, other := autoscaler("mirror", "registry.example/mirror/cluster-autoscaler:2"), autoscaler("other", image)
	for _, o := range []object{mirror, other} {
		s.Create(o)
		s.RolledOut(o)
	}
	s.Create(node("True"))
	found, untouched := s.shape(mirror), s.Get(other).GetResourceVersion()
	s.plan.Autoscaler.Deployment = "kube-system/mirror"
	s.run(plan.AutoscalerOff, true)
	s.Change(mirror, func(live *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		containers[1].(map[string]any)["image"] = "registry.example/mirror/ca-fork:2"
		_ = unstructured.SetNestedSlice(live.Object, containers, "spec", "template", "spec", "containers")
	})
	s.settled(mirror, plan.AutoscalerOff)
	s.run(plan.AutoscalerGroups, true)
	want := "1 [./cluster-autoscaler --v=4 --nodes=1:5:eks-extra-1 --nodes=0:2:eks-extra-2 --balance-similar-node-groups] [] " +
		"map[convox.io/system-node:true kubernetes.io/os:linux] map[" + ownership.AnnotationAutoscaler + ":demo]"
	if got := s.settled(mirror, plan.AutoscalerGroups); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if proxy := s.container(mirror, 0); proxy["command"] != nil || proxy["args"] != nil {
		t.Errorf("the sidecar has become %v", proxy)
	}
	s.plan.Autoscaler.Deployment = "" // it is found by our annotation, not by its name
	s.run(plan.AutoscalerBaseline, true)
	if got := s.settled(mirror, plan.AutoscalerBaseline); got != found || len(s.baselines.Kept) != 0 {
		t.Errorf("%s, baselines %v\nfound %s", got, s.baselines.Kept, found)
	}
	if s.Get(other).GetResourceVersion() != untouched {
		t.Error("the other one was written")
	}
}

func (s *scene) container(o object, at int) map[string]any {
	containers, _, _ := unstructured.NestedSlice(s.Get(o).Object, "spec", "template", "spec", "containers")
	return containers[at].(map[string]any)
}

func TestTheNamedOneDoesNotExist(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	before := s.Get(o).GetResourceVersion()
	s.plan.Autoscaler.Deployment, s.plan.Autoscaler.State = "kube-system/gone", plan.AutoscalerOff
	_, err := s.step.Run(context.Background(), s.plan, "")
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || rejected.Problems[0].Parameter != "cluster_autoscaler" ||
		!strings.Contains(err.Error(), `"kube-system/gone"`) || !strings.Contains(err.Error(), "kube-system/ca looks like it") {
		t.Errorf("%v", err)
	}
	if s.Get(o).GetResourceVersion() != before || len(s.baselines.Kept) != 0 {
		t.Error("something was changed")
	}
	s.run(plan.AutoscalerBaseline, false) // it does not keep Karpenter from being turned off
}

// When the parameter names another Deployment, the first one is restored before the new one is handed over.
func TestAnotherOneIsNamed(t *testing.T) {
	s, first, second := begin(t), autoscaler("first", image), autoscaler("second", "registry.example/mirror/cluster-autoscaler:2")
	s.Create(first)
	s.RolledOut(first)
	foundFirst := s.shape(first)
	s.run(plan.AutoscalerOff, true)
	s.Create(second)
	s.RolledOut(second)
	foundSecond := s.shape(second)
	s.plan.Autoscaler.Deployment = "kube-system/second"
	if progress := s.run(plan.AutoscalerOff, true); len(progress.Incidents) != 1 || progress.Incidents[0].Parameter != "cluster_autoscaler" {
		t.Errorf("warnings %v", progress.Incidents)
	}
	if got := s.shape(first); got != foundFirst || s.shape(second) != foundSecond {
		t.Errorf("first %s, found %s; second %s", got, foundFirst, s.shape(second))
	}
	s.run(plan.AutoscalerOff, true)
	if got := s.settled(second, plan.AutoscalerOff); !strings.HasPrefix(got, "0 ") || s.shape(first) != foundFirst {
		t.Errorf("second %s, first %s", got, s.shape(first))
	}
	s.run(plan.AutoscalerBaseline, true)
	if got := s.settled(second, plan.AutoscalerBaseline); got != foundSecond || len(s.baselines.Kept) != 0 {
		t.Errorf("%s, baselines %v\nfound %s", got, s.baselines.Kept, foundSecond)
	}
}
