package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// These objects can be finished only by a controller: an EC2NodeClass of the rack and a NodeClaim of its pool.
var (
	class = k8stest.Object{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
		"metadata": map[string]any{"name": "workload", "labels": map[string]any{ownership.TagRack: "demo"}},
		"spec": map[string]any{"role": "r", "amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}},
			"subnetSelectorTerms":        []any{map[string]any{"tags": map[string]any{"a": "b"}}},
			"securityGroupSelectorTerms": []any{map[string]any{"tags": map[string]any{"a": "b"}}}}}
	claim = k8stest.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": "workload-1", "labels": map[string]any{ownership.LabelPool: "workload"}},
		"spec": map[string]any{"requirements": []any{map[string]any{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "workload"}}}
)

// removing returns a rack that is being turned off, with a working controller and one node.
func removing(t *testing.T) *scene {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	s.RolledOut(deployment)
	s.plan.Controller.Release.Present = false
	s.Create(class)
	s.Create(claim)
	return s
}

func (s *scene) scale(replicas int64) {
	s.Change(deployment, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, replicas, "spec", "replicas")
	})
}

// goes checks that the pass may go on after the step, with or without a warning.
func (s *scene) goes(warning string, changes ...string) {
	s.Helper()
	progress := s.run(PartServe, changes...)
	if progress.Wait != 0 || (len(progress.Incidents) > 0) != (warning != "") || !strings.Contains(fmt.Sprint(progress.Incidents), warning) {
		s.Fatalf("%+v, want the warning %q", progress, warning)
	}
}

func (s *scene) waits(note string, changes ...string) outcome.Progress {
	s.Helper()
	progress := s.run(PartServe, changes...)
	if progress.Wait == 0 || !strings.Contains(progress.Note, note) {
		s.Fatalf("%+v, want to wait for %q", progress, note)
	}
	return progress
}

// An abandoned removal leaves no record of its first look, so the next removal gets its full wait.
func TestARemovalThatIsGivenUp(t *testing.T) {
	s := removing(t)
	s.scale(0)
	s.waits("", "updated Deployment/kube-system/karpenter")
	if len(s.checkpoints.Kept) == 0 {
		t.Fatal("no record")
	}
	s.plan.Controller.Release.Present = true
	if _, err := s.step.Run(t.Context(), s.plan, PartRelease); err != nil || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%v, records %v", err, s.checkpoints.Kept)
	}
}

func TestAControllerThatIsDownIsBroughtUpAgain(t *testing.T) {
	s := removing(t)
	before := s.versions()
	s.goes("")
	if after := s.versions(); after != before || len(s.checkpoints.Kept) > 0 {
		t.Errorf("it works, and was touched: before %s\nafter %s, checkpoints %v", before, after, s.checkpoints.Kept)
	}

	t.Log("scaled down")
	s.scale(0)
	s.RolledOut(deployment)
	s.waits("Deployment/kube-system/karpenter: ", "updated Deployment/kube-system/karpenter")
	s.check(1)
	s.RolledOut(deployment)
	s.goes("")
	if len(s.checkpoints.Kept) > 0 {
		t.Errorf("checkpoints %v", s.checkpoints.Kept)
	}

	t.Log("deleted")
	s.Remove(deployment)
	s.waits("", "created Deployment/kube-system/karpenter")
	s.RolledOut(deployment)
	s.goes("")

	t.Log("all objects with it")
	s.uninstall()
	s.waits("", "installed release karpenter 1.10.0")
	s.RolledOut(deployment)
	s.goes("")
}

// A controller that cannot work must not keep a rack from being turned off. The removal goes on without it.
func TestAControllerThatDoesNotGetReadyIsNotWaitedForForEver(t *testing.T) {
	s := removing(t)
	s.scale(0)
	s.RolledOut(deployment)
	s.run(PartServe, "updated Deployment/kube-system/karpenter")
	s.clock = s.clock.Add(patience - time.Second)
	s.waits("Deployment/kube-system/karpenter: ")
	s.clock = s.clock.Add(time.Second)
	s.goes("Sawhorse ends through EC2")

	t.Log("nor in a later pass, until it has worked again")
	s.goes("Sawhorse ends through EC2")
	s.RolledOut(deployment)
	s.goes("")
	if len(s.checkpoints.Kept) > 0 {
		t.Errorf("checkpoints %v", s.checkpoints.Kept)
	}

	t.Log("what is left of this goes with the controller")
	s.checkpoints.Kept[serveKey] = "2026-01-02T03:04:05Z"
	s.Remove(claim)
	s.Remove(class)
	s.run(PartRelease, "uninstalled release karpenter")
	if len(s.checkpoints.Kept) > 0 {
		t.Errorf("checkpoints %v", s.checkpoints.Kept)
	}
}

// An error in every call must not fail every pass before the fallback.
func TestAReleaseThatCannotBeRepaired(t *testing.T) {
	s := removing(t)
	s.uninstall()
	objects := s.plan.Controller.Release.Objects
	s.plan.Controller.Release.Objects = nil // of a plan that another version of Sawhorse has made
	s.waits("there is no plan of format 2 with its objects")
	s.clock = s.clock.Add(patience)
	s.goes("there is no plan of format 2 with its objects")

	t.Log("a Karpenter of somebody else's in its place is not fought: it serves, or the fallback does")
	s.plan.Controller.Release.Objects = objects
	s.Create(k8stest.Object{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "theirs", "namespace": "default", "labels": map[string]any{"app.kubernetes.io/name": "karpenter"}},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}})
	s.checkpoints = awsfake.NewCheckpoints(awsfake.New())
	s.step.Checkpoints = s.checkpoints
	if progress := s.run(PartServe); progress.Wait != 0 || !strings.Contains(fmt.Sprint(progress.Incidents), "Deployment/default/theirs") {
		t.Errorf("%+v", progress)
	}
}

// Nothing is installed for a rack that has nothing left to remove. Such a rack may not even have the CRDs.
func TestNothingToServe(t *testing.T) {
	s := begin(t)
	s.undefined()
	s.plan.Controller.Release.Present = false
	s.goes("")
	s.Create(node("one", "us-east-1a"))
	s.defined()
	theirs := k8stest.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": claim["spec"],
		"metadata": map[string]any{"name": "theirs", "labels": map[string]any{ownership.LabelPool: "theirs"}}}
	s.Create(theirs)
	s.goes("")
	if len(s.left()) > 0 {
		t.Error("a controller was installed")
	}
}

// The step reaches the same end even if a call that reads or writes the record of the first look fails.
func TestInterruptedServe(t *testing.T) {
	s := removing(t)
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		cloud := awsfake.New()
		s.step.Checkpoints, s.step.Contests = awsfake.NewCheckpoints(cloud), awsfake.NewContests() // the end is that of a first time
		s.scale(0)
		s.RolledOut(deployment)
		ready := false
		return cloud, func() (bool, error) {
			progress, err := s.step.Run(ctx, s.plan, PartServe)
			if s.clock = s.clock.Add(patience); len(progress.Incidents) > 0 && progress.Wait == 0 && err == nil && !ready {
				s.RolledOut(deployment) // the controller becomes ready after all
				ready = true
				return false, nil
			}
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any {
		typed, err := k8s.As[appsv1.Deployment](s.Get(deployment))
		return fmt.Sprint(*typed.Spec.Replicas, err, s.step.Checkpoints.(*awsfake.Recorder).Kept)
	})
}
