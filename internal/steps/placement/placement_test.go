package placement

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

func deployment(name string, selector object) object {
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": "kube-system"},
		"spec": object{"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels},
			"spec": object{"nodeSelector": selector, "containers": []any{object{"name": "c", "image": "example.com/c:1"}}}}}}
}

func node(ready string) object {
	return object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "system",
		"labels": object{ownership.LabelSystemNode: "true"}},
		"status": object{"conditions": []any{object{"type": "Ready", "status": ready}}}}
}

type scene struct {
	*testing.T
	*k8stest.Cluster
	step      *Step
	plan      *plan.Plan
	baselines *awsfake.Recorder
	contests  *awsfake.Recorder
	clock     time.Time
}

func begin(t *testing.T, pinned ...string) *scene {
	s := &scene{
		T: t, Cluster: k8stest.New(t), baselines: awsfake.NewBaselines(awsfake.New()), contests: awsfake.NewContests(),
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	s.step = &Step{
		Connect: s.Connector("nodegroups"), Baselines: s.baselines, Contests: s.contests, Now: func() time.Time { return s.clock },
	}
	s.plan = &plan.Plan{Rack: "demo", Generation: 7, Nodegroups: plan.Nodegroups{Pinned: pinned}}
	return s
}

func (s *scene) run(want ...string) outcome.Progress {
	s.Helper()
	progress, err := s.step.Run(context.Background(), s.plan, "placement")
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, change := range progress.Changes {
		got = append(got, change.Action+" "+change.Subject)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("changed %q, want %q", got, want)
	}
	return progress
}

func (s *scene) waits(note string, want ...string) {
	s.Helper()
	if progress := s.run(want...); progress.Wait == 0 || !strings.Contains(progress.Note, note) {
		s.Fatalf("%+v, want the note %q", progress, note)
	}
}

func (s *scene) selector(o object) string {
	return fmt.Sprint(k8s.NodeSelector(s.Get(o)), s.Get(o).GetAnnotations())
}

func (s *scene) deploy(objects ...object) {
	for _, o := range objects {
		s.Create(o)
		s.RolledOut(o)
	}
}

func TestPinsOneAtATimeAndRestores(t *testing.T) {
	s := begin(t, "kube-system/absent", "kube-system/a", "kube-system/b", "kube-system/c")
	a, b, c := deployment("a", nil), deployment("b", object{"disk": "ssd", ownership.LabelSystemNode: "maybe"}),
		deployment("c", object{ownership.LabelSystemNode: "true"})
	s.deploy(a, b, c)
	before := s.selector(a) + s.selector(b) + s.selector(c)

	t.Log("nothing is pinned until a Ready node carries the label")
	s.waits("no Ready node carries convox.io/system-node=true yet")
	s.Create(node("False"))
	s.waits("no Ready node")
	s.Status(node(""), node("True")["status"])

	t.Log("one at a time, each rollout waited for; absent ones and those pinned by their owner are skipped")
	s.waits("Deployment/kube-system/a", "pinned to system nodes Deployment/kube-system/a")
	s.waits("Deployment/kube-system/a: its change has not been seen yet")
	s.RolledOut(a)
	s.waits("Deployment/kube-system/b", "pinned to system nodes Deployment/kube-system/b")
	s.RolledOut(b)
	if progress := s.run(); progress.Wait != 0 || len(progress.Warnings) != 0 {
		t.Fatalf("%+v", progress)
	}
	if got, want := s.selector(b), "map[convox.io/system-node:true disk:ssd] map["+ownership.AnnotationPin+":pinned]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(s.baselines.Kept) != 2 {
		t.Errorf("baselines %v", s.baselines.Kept)
	}

	t.Log("one that the plan no longer names is restored; what others added stays")
	s.Change(a, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "x", "spec", "template", "spec", "nodeSelector", "theirs")
	})
	s.RolledOut(a)
	s.plan.Nodegroups.Pinned = []string{"kube-system/b", "kube-system/c"}
	s.run("unpinned Deployment/kube-system/a")
	if got := s.selector(a); got != "map[theirs:x] map[]" {
		t.Errorf("%s", got)
	}
	s.Change(a, func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "nodeSelector")
	})

	t.Log("none pinned: all as they were, and no baseline left")
	s.plan.Nodegroups.Pinned = nil
	s.run("unpinned Deployment/kube-system/b")
	if after := s.selector(a) + s.selector(b) + s.selector(c); after != before || len(s.baselines.Kept) != 0 {
		t.Errorf("%s, before %s, baselines %v", after, before, s.baselines.Kept)
	}
	s.run()
}

// A step that is interrupted between restoring a Deployment and forgetting its baseline does the rest when it runs
// again.
func TestStoppedWhileItUnpins(t *testing.T) {
	s := begin(t, "kube-system/a")
	a := deployment("a", nil)
	s.Create(node("True"))
	s.deploy(a)
	before := s.selector(a)
	s.waits("Deployment/kube-system/a", "pinned to system nodes Deployment/kube-system/a")
	s.RolledOut(a)
	s.plan.Nodegroups.Pinned = nil
	s.baselines.Fail("Baselines.Forget", errors.New("stopped"))
	if _, err := s.step.Run(t.Context(), s.plan, "placement"); err == nil {
		t.Fatal("it was not stopped")
	}
	s.baselines.Before = nil
	s.run()
	if after := s.selector(a); after != before || len(s.baselines.Kept) != 0 {
		t.Errorf("%s, before %s, baselines %v", after, before, s.baselines.Kept)
	}
}

func TestUndoesAPinThatDoesNotFit(t *testing.T) {
	s := begin(t, "kube-system/big", "kube-system/small")
	big, small := deployment("big", nil), deployment("small", nil)
	s.Create(node("True"))
	s.deploy(big, small)
	s.waits("Deployment/kube-system/big", "pinned to system nodes Deployment/kube-system/big")
	// The new pod as the scheduler leaves it.
	s.Create(object{"apiVersion": "v1", "kind": "Pod", "metadata": object{
		"name": "big-1", "namespace": "kube-system", "labels": object{"app": "big"},
	},
		"spec": object{
			"nodeSelector": object{ownership.LabelSystemNode: "true"}, "containers": []any{object{"name": "c", "image": "example.com/c:1"}},
		},
		"status": object{"conditions": []any{object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message":            "0/1 nodes are available: 1 Insufficient memory.",
			"lastTransitionTime": s.clock.Format(time.RFC3339)}}}})

	t.Log("patience first")
	s.clock = s.clock.Add(k8s.UnplacedAfter - time.Second)
	s.waits("Deployment/kube-system/big")
	s.clock = s.clock.Add(time.Second)

	t.Log("then back to where it ran, with a warning, and on to the next")
	progress := s.run("unpinned Deployment/kube-system/big", "pinned to system nodes Deployment/kube-system/small")
	if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "Insufficient memory") {
		t.Errorf("warnings %v", progress.Warnings)
	}
	if got, want := s.selector(big), "map[] map["+ownership.AnnotationPin+":unfit-"+outcome.Stamp(s.clock)+"]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.RolledOut(big)
	s.RolledOut(small)

	t.Log("not tried again in a day, neither in this pass nor in others, but then")
	for range 2 {
		if progress := s.run(); progress.Wait != 0 || len(progress.Warnings) != 1 {
			t.Errorf("%+v", progress)
		}
		s.plan.Generation++
		s.clock = s.clock.Add(24*time.Hour - time.Second)
	}
	s.clock = s.clock.Add(2*time.Second - 24*time.Hour)
	s.waits("Deployment/kube-system/big", "pinned to system nodes Deployment/kube-system/big")
}

// A placement that keeps pods from running is undone, whatever the reason. A later release of the owner's that does not run is the
// owner's own: its pods stay on system nodes, and the step does not wait for them.
func TestARolloutThatIsStuck(t *testing.T) {
	for what, changes := range map[string][]string{"the placement's": {"unpinned Deployment/kube-system/api"}, "a later one": nil} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, "kube-system/api")
			api := deployment("api", nil)
			s.Create(node("True"))
			s.deploy(api)
			s.waits("Deployment/kube-system/api", "pinned to system nodes Deployment/kube-system/api")
			if len(changes) == 0 {
				s.RolledOut(api)
				s.run()
				s.clock = s.clock.Add(settling)
			}
			s.Status(api, object{"observedGeneration": s.Get(api).GetGeneration(), "replicas": 2, "updatedReplicas": 1,
				"conditions": []any{object{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}})
			if progress := s.run(changes...); progress.Wait > 0 || len(progress.Warnings) != len(changes) {
				t.Errorf("%+v", progress)
			}
			if len(changes) == 0 { // its pods break once they have been ready, which Kubernetes never calls stuck
				s.Status(api, object{"observedGeneration": s.Get(api).GetGeneration(), "replicas": 1, "updatedReplicas": 1,
					"conditions": []any{object{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}})
				if progress := s.run(); progress.Wait > 0 || len(progress.Warnings) > 0 {
					t.Errorf("%+v", progress)
				}
			}
		})
	}
}

func TestLeavesAloneWhatIsNotReadyAsItIs(t *testing.T) {
	s := begin(t, "kube-system/broken")
	broken := deployment("broken", nil)
	s.Create(node("True"))
	s.Create(broken)
	before := s.selector(broken)
	if progress := s.run(); progress.Wait != 0 || !progress.Unfinished || len(progress.Warnings) != 1 {
		t.Errorf("%+v", progress)
	}
	if s.selector(broken) != before {
		t.Error("it was pinned")
	}
}

// If a tool removes the placement, it is set again once. After that the contest is reported with the tool's name, and
// the Deployment is left alone for a day.
func TestAPinThatOthersTakeOut(t *testing.T) {
	s := begin(t, "kube-system/web")
	web := deployment("web", nil)
	s.Create(web)
	s.Create(node("True"))
	s.RolledOut(web)
	takenOut := func() {
		s.Change(web, func(live *unstructured.Unstructured) { k8s.SetSystemNode(live, nil) })
		s.RolledOut(web)
	}
	s.waits("not been seen", "pinned to system nodes Deployment/kube-system/web")
	clear(s.contests.Kept) // as if the call had stopped before it recorded the change
	s.waits("")
	takenOut()
	s.waits("not been seen", "pinned to system nodes Deployment/kube-system/web")
	for range 2 {
		takenOut()
		progress := s.run()
		if progress.Wait > 0 || !progress.Unfinished || len(progress.Warnings) != 1 ||
			!strings.Contains(progress.Warnings[0].Message, "Deployment/kube-system/web is contested: somebody has set it back 2 times") {
			t.Errorf("%+v", progress)
		}
	}
	s.clock = s.clock.Add(25 * time.Hour)
	s.waits("not been seen", "pinned to system nodes Deployment/kube-system/web")
}
