package nodepools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

type object = k8stest.Object

func meta(name, rack string) object {
	meta := object{"name": name}
	if rack != "" {
		meta["labels"] = object{ownership.TagRack: rack}
	}
	return meta
}

func class(name, rack string) object {
	term := []any{object{"tags": object{ownership.TagDiscovery: "east"}}}
	return object{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": meta(name, rack), "spec": object{
		"role": "demo-karpenter-nodes", "amiSelectorTerms": []any{
			object{"alias": "al2023@latest"},
		}, "subnetSelectorTerms": term, "securityGroupSelectorTerms": term}}
}

func pool(name, rack, cpu string) object {
	return object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta(name, rack), "spec": object{
		"limits": object{"cpu": cpu}, "template": object{"spec": object{
			"requirements": []any{object{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
			"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}}}}}
}

func claim(name, pool string, annotations object) object {
	return object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": object{
			"name": name, "labels": object{ownership.LabelPool: pool}, "annotations": annotations,
			"finalizers": []any{"karpenter.sh/termination"},
		},
		"spec": object{"requirements": []any{object{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
			"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": pool}}}
}

type scene struct {
	*testing.T
	*k8stest.Cluster
	cloud       *awsfake.Cloud
	checkpoints *awsfake.Recorder
	contests    *awsfake.Recorder
	step        *Step
	plan        *plan.Plan
	clock       time.Time
}

func begin(t *testing.T, objects ...object) *scene {
	s := &scene{T: t, Cluster: k8stest.New(t), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), cloud: awsfake.New(),
		contests: awsfake.NewContests()}
	s.InstallCRDs()
	s.checkpoints = awsfake.NewCheckpoints(s.cloud)
	s.step = &Step{
		Connect: s.Connector("nodepools"), EC2: s.cloud.EC2, Checkpoints: s.checkpoints, Contests: s.contests, Drain: 5 * time.Minute,
		Now: func() time.Time { return s.clock },
	}
	s.plan = &plan.Plan{Rack: "demo", Cluster: plan.Cluster{Name: "east"}, NodePools: plan.NodePools{Objects: objects}}
	t.Cleanup(func() {
		for _, group := range [][3]string{
			{"karpenter.sh", "v1", "nodeclaims"}, {"karpenter.sh", "v1", "nodepools"}, {"karpenter.k8s.aws", "v1", "ec2nodeclasses"},
		} {
			for _, left := range s.List(group[0], group[1], group[2]) {
				s.Remove(left.Object)
			}
		}
	})
	return s
}

func (s *scene) run(want ...string) outcome.Progress {
	s.Helper()
	progress, err := s.step.Run(context.Background(), s.plan, "")
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

// waits runs the step once and checks what it waits for.
func (s *scene) waits(note string, want ...string) {
	s.Helper()
	if progress := s.run(want...); progress.Wait == 0 || !strings.Contains(progress.Note, note) {
		s.Fatalf("wait %v, note %q, want %q", progress.Wait, progress.Note, note)
	}
}

func (s *scene) done(want ...string) {
	s.Helper()
	if progress := s.run(want...); progress.Wait != 0 {
		s.Fatalf("waits: %s", progress.Note)
	}
}

// ready sets the status that Karpenter sets on objects that are Ready.
func (s *scene) ready(objects ...object) {
	for _, o := range objects {
		s.condition(o, "True", "")
	}
}

func (s *scene) condition(o object, status, message string) {
	s.Helper()
	s.Status(o, object{"conditions": []any{object{"type": "Ready", "status": status, "reason": "Test", "message": message,
		"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": s.Get(o).GetGeneration()}}})
}

func TestApply(t *testing.T) {
	wclass, wpool, gclass, gpool := class("workload", "demo"), pool("workload", "demo", "100"), class("gpu", "demo"),
		pool("gpu", "demo", "8")
	s := begin(t, gclass, wclass, gpool, wpool)
	theirs := s.Create(pool("theirs", "", "1"))

	t.Log("creates, EC2NodeClasses first, and waits until all are Ready")
	s.waits("NodePool/workload: its controller has not looked at it yet",
		"created EC2NodeClass/gpu", "created EC2NodeClass/workload", "created NodePool/gpu", "created NodePool/workload")
	s.ready(gclass, gpool, wclass)
	s.condition(wpool, "False", "NodeClassReady=False")
	s.waits("NodePool/workload: Ready=False Test NodeClassReady=False")
	s.ready(wpool)
	s.done()

	t.Log("second run does nothing")
	before := s.Get(wpool).GetResourceVersion()
	s.done()
	if after := s.Get(wpool).GetResourceVersion(); after != before {
		t.Errorf("resourceVersion was %s and is %s", before, after)
	}

	t.Log("changes only what changed; Ready of the version before does not count")
	s.plan.NodePools.Objects = []object{gclass, wclass, gpool, pool("workload", "demo", "200")}
	s.waits("NodePool/workload", "updated NodePool/workload")
	s.ready(wpool)
	s.done()
	if cpu, _, _ := unstructured.NestedString(s.Get(wpool).Object, "spec", "limits", "cpu"); cpu != "200" {
		t.Errorf("cpu limit %q", cpu)
	}

	t.Log("sets back what somebody else changed, and says so")
	s.Change(wpool, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "1", "spec", "limits", "cpu")
	})
	if progress := s.run("updated NodePool/workload"); len(progress.Incidents) != 1 ||
		!strings.Contains(progress.Incidents[0].Message, "limits.cpu") {
		t.Errorf("warnings %v", progress.Incidents)
	}
	s.ready(wpool)

	t.Log("deletes only what is ours, once what stays is Ready")
	s.plan.NodePools.Objects = []object{wclass, wpool}
	s.waits("NodePool/workload", "updated NodePool/workload")
	s.ready(wpool)
	s.done("deleted NodePool/gpu", "deleted EC2NodeClass/gpu")
	if s.Get(theirs.Object) == nil {
		t.Error("a NodePool of somebody else was deleted")
	}
}

// A tool that sets fields back is told of from the second time on, and has its way, in these fields alone: each time nodes could
// be replaced. What Sawhorse wants otherwise arrives. A pass that is forced sets them back once.
func TestContested(t *testing.T) {
	wclass, wpool := class("workload", "demo"), pool("workload", "demo", "100")
	spec := wpool["spec"].(object)["template"].(object)["spec"].(object)
	spec["expireAfter"] = "720h"
	s := begin(t, wclass, wpool)
	expiry := func() string {
		value, _, _ := unstructured.NestedString(s.Get(wpool).Object, "spec", "template", "spec", "expireAfter")
		return value
	}
	revert := func(after string) {
		t.Helper()
		s.Change(wpool, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, after, "spec", "template", "spec", "expireAfter")
		})
		s.ready(wclass, wpool)
	}
	pass := func(generation int64, writes bool, want string) outcome.Progress {
		t.Helper()
		s.plan.Generation = generation
		progress, err := s.step.Run(t.Context(), s.plan, "")
		if err != nil || expiry() != want {
			t.Fatalf("expireAfter is %q, want %q: %v", expiry(), want, err)
		}
		if s.ready(wclass, wpool); (len(progress.Changes) > 0) != writes {
			t.Fatalf("generation %d: changes %v, warnings %v", generation, progress.Changes, progress.Warnings)
		}
		return progress
	}
	left := func(generation int64, writes bool) {
		t.Helper()
		progress := pass(generation, writes, "48h")
		if len(progress.Warnings) != 1 || !progress.Unfinished || len(progress.Incidents) > 0 ||
			!strings.Contains(progress.Warnings[0].Message, `NodePool/workload .spec.template.spec.expireAfter is contested: `+
				`somebody has set it back 2 times. Sawhorse wants "720h", and leaves it`) {
			t.Errorf("warnings %v, incidents %v", progress.Warnings, progress.Incidents)
		}
	}
	pass(1, true, "720h")
	revert("48h")
	if progress := pass(2, true, "720h"); len(progress.Incidents) != 1 {
		t.Errorf("the first time: %v", progress.Incidents)
	}
	s.clock = s.clock.Add(7 * 24 * time.Hour) // also a tool that comes once a week
	revert("48h")
	left(3, false)
	left(4, false)
	s.clock = s.clock.Add(100 * time.Hour)
	left(5, false)

	wpool["spec"].(object)["limits"] = object{"cpu": "200"}
	left(6, true)
	if cpu, _, _ := unstructured.NestedString(s.Get(wpool).Object, "spec", "limits", "cpu"); cpu != "200" {
		t.Errorf("another field did not arrive: cpu limit %q", cpu)
	}

	s.plan.Force = []string{events.ForceContested}
	pass(7, true, "720h")
	revert("48h")
	left(7, false)
	s.plan.Force = nil
	left(8, false)

	spec["expireAfter"] = "24h"
	pass(9, true, "24h")
	revert("24h") // the tool's source has what Sawhorse wants
	if progress := pass(10, false, "24h"); len(progress.Warnings) > 0 || progress.Unfinished {
		t.Errorf("the end: %v", progress.Warnings)
	}
}

// A tool that replaces the whole object takes fields away, which no manager holds then. They are set back once.
func TestAFieldThatOthersRemove(t *testing.T) {
	wclass, wpool := class("workload", "demo"), pool("workload", "demo", "100")
	spec := wpool["spec"].(object)["template"].(object)["spec"].(object)
	spec["expireAfter"] = "720h"
	s := begin(t, wclass, wpool)
	pass := func(changes int, want string) outcome.Progress {
		t.Helper()
		progress, err := s.step.Run(t.Context(), s.plan, "")
		taints, _, _ := unstructured.NestedSlice(s.Get(wpool).Object, "spec", "template", "spec", "taints")
		if got := fmt.Sprint(taints); err != nil || len(progress.Changes) != changes || got != want {
			t.Errorf("changes %v, taints %s, want %s: %v", progress.Changes, got, want, err)
		}
		s.ready(wclass, wpool)
		return progress
	}
	remove := func() {
		s.Change(wpool, func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "taints")
		})
		s.ready(wclass, wpool)
	}
	with := "[map[effect:NoSchedule key:a]]"
	pass(2, "[]")
	spec["taints"] = []any{object{"key": "a", "effect": "NoSchedule"}}
	if progress := pass(1, with); len(progress.Warnings)+len(progress.Incidents) > 0 { // the plan is new, and nobody has changed anything
		t.Errorf("%+v", progress)
	}
	remove()
	if progress := pass(1, with); len(progress.Incidents) != 1 ||
		!strings.Contains(progress.Incidents[0].Message, ".spec.template.spec.taints) and is set back") {
		t.Errorf("the first time: %+v", progress)
	}
	remove()
	for range 2 {
		progress := pass(0, "[]")
		if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message,
			"NodePool/workload .spec.template.spec.taints is contested: somebody whom the API server does not name has set it back 2 times") {
			t.Errorf("the second time: %+v", progress)
		}
	}
	s.plan.Force, s.plan.Generation = []string{events.ForceContested}, 7
	pass(1, with)
}

func TestRejectsContestedNames(t *testing.T) {
	s := begin(t, class("workload", "demo"), pool("workload", "demo", "100"))
	s.Create(pool("workload", "other", "1"))
	_, err := s.step.Run(context.Background(), s.plan, "")
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "NodePool/workload") {
		t.Fatalf("the error is %v", err)
	}
	if s.Get(class("workload", "")) != nil {
		t.Error("an EC2NodeClass was created nonetheless")
	}
}

func TestRecreatesWhatIsOnItsWayOut(t *testing.T) {
	leaving := class("workload", "demo")
	leaving["metadata"].(object)["finalizers"] = []any{"karpenter.k8s.aws/termination"}
	s := begin(t, class("workload", "demo"))
	s.Create(leaving)
	s.plan.NodePools.Objects = nil
	s.waits("EC2NodeClass/workload", "deleted EC2NodeClass/workload")
	s.plan.NodePools.Objects = []object{class("workload", "demo")}
	s.waits("an earlier one of this name is being deleted")
	s.Remove(leaving)
	s.waits("EC2NodeClass/workload", "created EC2NodeClass/workload")
}

func TestRemove(t *testing.T) {
	wclass, wpool := class("workload", "demo"), pool("workload", "demo", "100")
	wclass["metadata"].(object)["finalizers"] = []any{"karpenter.k8s.aws/termination"}
	early, late, plain := object{annotationDeadline: "2026-01-02T03:05:00Z"}, object{annotationDeadline: "2026-01-04T00:00:00Z"}, object{}
	s := begin(t)
	s.done() // nothing exists, so nothing is to be done
	s.Create(wclass)
	s.Create(wpool)
	s.Create(pool("theirs", "", "1"))
	s.plan.Force = events.ForceWords // accepts that they stay
	s.Create(claim("early", "workload", early))
	s.Create(claim("late", "workload", late))
	s.Create(claim("plain", "workload", plain))
	s.Create(claim("theirs", "theirs", plain))

	t.Log("deletes NodePools and gives every NodeClaim its deadline at the same moment")
	s.waits("3 NodeClaim(s) draining: early, late, plain", "deleted NodePool/workload",
		"draining until 2026-01-02T03:09:05Z NodeClaim/late", "draining until 2026-01-02T03:09:05Z NodeClaim/plain")

	t.Log("once: later calls change nothing, though the NodePool has gone")
	s.clock = s.clock.Add(time.Minute)
	s.waits("3 NodeClaim(s) draining", "deleted NodeClaim/early", "deleted NodeClaim/late", "deleted NodeClaim/plain")
	s.waits("3 NodeClaim(s) draining")
	for name, want := range map[string]string{
		"early": "2026-01-02T03:05:00Z", "plain": "2026-01-02T03:09:05Z", "late": "2026-01-02T03:09:05Z", "theirs": "",
	} {
		if got := s.Get(claim(name, "", nil)).GetAnnotations()[annotationDeadline]; got != want {
			t.Errorf("NodeClaim/%s has %q, want %q", name, got, want)
		}
	}

	t.Log("EC2NodeClasses stay until no NodeClaim of ours is left, and are waited for")
	s.Remove(claim("early", "", nil))
	s.Remove(claim("late", "", nil))
	s.waits("1 NodeClaim(s) draining: plain")
	s.Remove(claim("plain", "", nil))
	s.waits("EC2NodeClass/workload: being deleted", "deleted EC2NodeClass/workload")
	s.waits("EC2NodeClass/workload: being deleted")
	s.Remove(wclass)
	s.done()
	if s.Get(pool("theirs", "", "")) == nil || s.Get(claim("theirs", "", nil)) == nil {
		t.Error("something of somebody else was deleted")
	}
}
