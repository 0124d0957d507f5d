package controller

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// rejected checks that a part of the step is rejected with a problem that mentions a text, and changes nothing.
func (s *scene) rejected(part, mention string) {
	s.Helper()
	s.rejectedFor("karpenter_enabled", part, mention)
}

func (s *scene) rejectedFor(parameter, part, mention string) {
	s.Helper()
	before := s.versions()
	_, err := s.step.Run(ctx, s.plan, part)
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), mention) || rejected.Problems[0].Parameter != parameter {
		s.Fatalf("%s: the error is %v, want a rejection that names %q", part, err, mention)
	}
	if after := s.versions(); after != before {
		s.Fatalf("%s: before %s\nafter %s", part, before, after)
	}
}

func TestRejectsAKarpenterThatIsNotOurs(t *testing.T) {
	t.Run("a Deployment under another name, anywhere", func(t *testing.T) {
		s := begin(t)
		s.Create(k8stest.Object{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "theirs", "namespace": "default", "labels": map[string]any{"app.kubernetes.io/name": "karpenter"}},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}})
		s.rejected(PartRelease, "Deployment/default/theirs")
	})
	t.Run("CRDs", func(t *testing.T) {
		s := begin(t)
		s.undefined()
		t.Cleanup(s.undefined)
		s.InstallCRDs()
		s.rejected(PartCRDs, "CustomResourceDefinition/nodepools.karpenter.sh")
	})
	t.Run("a controller of another rack", func(t *testing.T) {
		s := begin(t)
		s.defined()
		s.run(PartRelease, "installed release karpenter 1.10.0")
		s.plan.Rack = "other"
		s.rejected(PartRelease, "ServiceAccount/kube-system/karpenter")
		s.plan.Controller.Release.Present = false
		s.run(PartRelease) // not ours, so it stays
	})
	t.Run("a PriorityClass that nobody has made", func(t *testing.T) {
		s := begin(t)
		s.defined()
		s.run(PartRelease, "installed release karpenter 1.10.0")
		of := func(class string) {
			s.plan.Controller.Release.Values["priorityClassName"] = class
			for _, object := range s.plan.Controller.Release.Objects {
				if object["kind"] != "Deployment" {
					continue
				}
				if err := unstructured.SetNestedField(object, class, "spec", "template", "spec", "priorityClassName"); err != nil {
					t.Fatal(err)
				}
			}
		}
		of("system-cluster-critcal")
		s.rejectedFor("karpenter_controller_config", PartRelease, "no PriorityClass of that name")
		s.Create(class)
		before := s.versions()
		if progress := s.run(PartServe); progress.Wait != 0 || len(progress.Incidents) != 1 || s.versions() != before {
			t.Errorf("turning off takes the controller that runs: %+v", progress)
		}
		s.Create(k8stest.Object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": "platform"},
			"value": 1000})
		of("platform")
		s.run(PartRelease, "updated Deployment/kube-system/karpenter")
	})
	t.Run("a CRD that only another version has", func(t *testing.T) {
		s := begin(t)
		s.defined()
		s.Create(buffers)
		next, err := karpenter.Find("1.14.3")
		if err != nil {
			t.Fatal(err)
		}
		s.plan.Controller.CRDs.Version, s.plan.Controller.CRDs.Chart = next.Version, next.ChartDigests[ownership.ReleaseCRD]
		s.plan.Controller.CRDs.Definitions = next.CRDNames
		s.rejectedFor("karpenter_version", PartCRDs, "CustomResourceDefinition/capacitybuffers.autoscaling.x-k8s.io")
		if record := s.record(); record.CRDs != "1.10.0" {
			t.Errorf("with another version, the rack would still be rejected: %+v", record)
		}
	})
	t.Run("an object of the chart's name", func(t *testing.T) {
		s := begin(t)
		s.defined()
		s.Create(k8stest.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "karpenter",
			"namespace": "kube-system"}})
		s.rejected(PartRelease, "ServiceAccount/kube-system/karpenter")
	})
}

// buffers is a CRD of Karpenter 1.14 that Cluster Autoscaler has too.
var buffers = k8stest.Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": map[string]any{"name": "capacitybuffers.autoscaling.x-k8s.io",
		"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/autoscaler/pull/8151"}},
	"spec": map[string]any{"group": "autoscaling.x-k8s.io", "scope": "Namespaced",
		"names": map[string]any{"kind": "CapacityBuffer", "plural": "capacitybuffers", "listKind": "CapacityBufferList",
			"singular": "capacitybuffer"},
		"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}
