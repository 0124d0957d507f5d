package controller

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// helmedCRDs installs the plan's CRDs as Helm does. manager is Helm's field manager: "helm" if a person has installed them, and
// Sawhorse's own if the release of Sawhorse before this one has, with Helm as a library.
func (s *scene) helmedCRDs(manager string) {
	s.Helper()
	release, err := karpenter.Find(s.plan.Controller.CRDs.Version)
	if err != nil {
		s.Fatal(err)
	}
	definitions, err := manifests(release, "demo")
	if err != nil {
		s.Fatal(err)
	}
	for _, object := range definitions {
		delete(object["metadata"].(map[string]any), "labels") // Karpenter's chart of the CRDs sets none
		s.asHelm(manager, ownership.ReleaseCRD, object)
	}
	for _, name := range release.CRDNames {
		k8stest.Eventually(s.T, func() bool {
			established, _ := k8s.Established(s.Get(crd(name)))
			return established
		})
	}
}

// helmed installs the controller's release as helmedCRDs does the CRDs, with Helm's records of both releases.
func (s *scene) helmed(manager string) {
	s.Helper()
	client, err := s.step.Connect(ctx, s.plan.Cluster)
	if err != nil {
		s.Fatal(err)
	}
	objects, err := (&run{Step: s.step, plan: s.plan, client: client}).objects(ctx, s.plan.Controller.Release)
	if err != nil {
		s.Fatal(err)
	}
	for _, object := range objects {
		s.asHelm(manager, ownership.ReleaseController, object)
	}
	for _, record := range records() {
		if s.Get(record) == nil {
			s.Create(record)
		}
	}
}

// asHelm applies an object of a release with Helm's label and annotations.
func (s *scene) asHelm(manager, release string, object plan.Object) {
	s.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(text); err != nil {
		s.Fatal(err)
	}
	labels, annotations := made.GetLabels(), made.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = release, ownership.Namespace
	made.SetLabels(labels)
	made.SetAnnotations(annotations)
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		s.Fatal(err)
	}
	kind := made.GroupVersionKind()
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	var in dynamic.ResourceInterface = client.Resource(resource)
	if made.GetNamespace() != "" {
		in = client.Resource(resource).Namespace(made.GetNamespace())
	}
	text, _ = made.MarshalJSON()
	force := true
	options := metav1.PatchOptions{FieldManager: manager, Force: &force}
	if _, err := in.Patch(ctx, made.GetName(), types.ApplyPatchType, text, options); err != nil {
		s.Fatal(err)
	}
}

// records are Helm's records of both releases.
func records() (all []k8stest.Object) {
	for _, name := range []string{ownership.ReleaseCRD, ownership.ReleaseController} {
		all = append(all, k8stest.Object{"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
			"metadata": map[string]any{"name": "sh.helm.release.v1." + name + ".v1", "namespace": ownership.Namespace,
				"labels": map[string]any{"owner": "helm", "name": name, "status": "deployed", "version": "1"}}})
	}
	return all
}

// recorded returns how many of Helm's records there are.
func (s *scene) recorded() (n int) {
	s.Helper()
	for _, record := range records() {
		if s.Get(record) != nil {
			n++
		}
	}
	return n
}

// helms returns the objects of the plan that are still marked as Helm's.
func (s *scene) helms() (all []string) {
	s.Helper()
	objects := s.plan.Controller.Release.Objects
	for _, name := range s.plan.Controller.CRDs.Definitions {
		objects = append(objects, crd(name))
	}
	for _, object := range objects {
		text, err := json.Marshal(s.Get(object))
		if err != nil {
			s.Fatal(err)
		}
		of := func(mark string) bool { return strings.Contains(string(text), mark) }
		if of("meta.helm.sh") || of(`"Helm"`) || of(`"helm"`) {
			all = append(all, fmt.Sprint(object["kind"], "/", object["metadata"].(map[string]any)["name"]))
		}
	}
	return all
}

// An installation that helm has made, or the release of Sawhorse before this one, is taken over: an audit finds it, the pods'
// template stays as it was, and Helm's records go last.
func TestTakesOverAHelmRelease(t *testing.T) {
	for _, manager := range []string{"helm", ownership.FieldManager} {
		t.Run(manager, func(t *testing.T) {
			s := begin(t)
			s.undefined()
			s.Create(node("one", "us-east-1a"))
			s.helmedCRDs(manager)
			s.helmed(manager)
			s.RolledOut(deployment)
			was := s.Get(deployment)
			for _, part := range []string{PartCRDs, PartRelease} {
				if got := s.due(part); got == "" {
					t.Errorf("an audit of %s finds nothing", part)
				}
			}
			s.run(PartCRDs, "taken over Helm release karpenter-crd")
			s.run(PartRelease, "taken over Helm release karpenter")
			is := s.Get(deployment)
			if is.GetUID() != was.GetUID() || !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) {
				t.Errorf("%v\nbefore %v", is.Object["spec"], was.Object["spec"])
			}
			if left := s.helms(); len(left) > 0 || s.recorded() > 0 {
				t.Errorf("%d records, %v are Helm's", s.recorded(), left)
			}
			s.RolledOut(deployment)
			before := s.versions()
			for _, part := range []string{PartCRDs, PartRelease} {
				if got := s.due(part); got != "" {
					t.Errorf("taken over, and an audit of %s finds %q", part, got)
				}
				s.run(part)
			}
			if after := s.versions(); after != before || len(s.checkpoints.Kept) > 0 {
				t.Errorf("before %s\nafter %s, checkpoints %v", before, after, s.checkpoints.Kept)
			}
		})
	}
}

// A takeover that is stopped anywhere is completed by the next call, with the records last.
func TestATakeoverIsStopped(t *testing.T) {
	s := begin(t)
	s.defined()
	s.helmed("helm")
	for writes := 0; ; writes += stride() {
		err := s.stoppedAfter(writes, PartRelease)
		if err == nil {
			if writes < len(s.plan.Controller.Release.Objects) {
				t.Fatalf("it made %d writes", writes)
			}
			break
		}
		if !outcome.IsNotYet(err, outcome.Unready) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if s.recorded() != 2 {
			t.Fatalf("after %d writes a record is gone", writes)
		}
		if _, err := s.step.Run(ctx, s.plan, PartRelease); err != nil {
			t.Fatal(err)
		}
		if s.Get(records()[1]) != nil || len(s.checkpoints.Kept) > 0 {
			t.Fatalf("after %d writes: the record is there, checkpoints %v", writes, s.checkpoints.Kept)
		}
		s.helmed("helm") // the next one
	}
	if s.recorded() != 1 {
		t.Errorf("%d records", s.recorded())
	}
}

// An installation that nobody has handed over stays as it is.
func TestAHelmReleaseThatIsNotTheRacks(t *testing.T) {
	s := begin(t)
	s.defined()
	s.helmed("helm")
	s.Change(deployment, func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		delete(labels, ownership.TagRack)
		o.SetLabels(labels)
	})
	t.Cleanup(func() { s.Remove(deployment) })
	s.rejected(PartRelease, "label what is to be handed over sawhorse.dev/rack=demo")
	if s.recorded() != 2 || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%d records, checkpoints %v", s.recorded(), s.checkpoints.Kept)
	}
	s.plan.Controller.Release.Present = false
	s.run(PartRelease)
	if s.Get(deployment) == nil || s.recorded() != 2 {
		t.Error("a removal has deleted it")
	}
}

// Turned off before it was taken over, it goes with its record.
func TestAHelmReleaseIsRemoved(t *testing.T) {
	s := begin(t)
	s.defined()
	s.helmed(ownership.FieldManager)
	s.plan.Controller.Release.Present = false
	if err := s.stoppedAfter(2, PartRelease); !outcome.IsNotYet(err, outcome.Unready) {
		t.Fatal(err)
	}
	s.run(PartRelease, "taken over Helm release karpenter")
	if left := s.left(); len(left) > 0 || s.recorded() != 1 || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%v, %d records, checkpoints %v", left, s.recorded(), s.checkpoints.Kept)
	}
}
