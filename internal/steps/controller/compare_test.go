package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// audited is the step with a read-only client and the rights of the function audit.
func (s *scene) audited() *Step {
	s.Helper()
	connect := s.Connector("audit")
	self := admin.Function{Name: "controller", Principal: principal, EKS: s.eks}
	return &Step{Connect: k8s.ReadOnly(connect), Checkpoints: s.checkpoints, Self: self, Now: s.step.Now}
}

// due runs a part as an audit does. It returns "" if the part has nothing to do, and else why.
func (s *scene) due(part string) string {
	s.Helper()
	progress, err := s.audited().Run(context.Background(), s.plan, part)
	switch {
	case errors.Is(err, readonly.ErrWouldWrite):
		return err.Error()
	case err != nil:
		s.Fatal(err)
	}
	return progress.Note
}

// An audit finds a release in order that Helm has installed, with the rights that access gives it, and what was changed in it since.
func TestAuditOfTheReleases(t *testing.T) {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	for part, want := range map[string]string{PartCRDs: "CustomResourceDefinition/", PartRelease: "/karpenter: it does not exist"} {
		if got := s.due(part); !strings.Contains(got, want) {
			t.Errorf("%s before it is installed: %q", part, got)
		}
	}
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	if got := s.due(PartRelease); !strings.Contains(got, "Deployment/kube-system/karpenter: ") {
		t.Errorf("a rollout: %q", got)
	}
	s.RolledOut(deployment)
	before := s.versions()
	for _, part := range []string{PartCRDs, PartRelease, PartPlugin, PartServe} {
		if got := s.due(part); got != "" {
			t.Errorf("%s in order: %q", part, got)
		}
	}
	if after := s.versions(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	t.Log("what somebody changes")
	s.Change(crd("nodepools.karpenter.sh"), func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	if got := s.due(PartCRDs); !strings.Contains(got, "CustomResourceDefinition/nodepools.karpenter.sh: .metadata.annotations.") {
		t.Errorf("%q", got)
	}
	s.Change(deployment, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
	})
	if got := s.due(PartRelease); !strings.Contains(got, "Deployment/kube-system/karpenter: .spec.replicas") {
		t.Errorf("%q", got)
	}
	s.run(PartRelease, "repaired Deployment/kube-system/karpenter")
	s.RolledOut(deployment)
	s.Remove(k8stest.Object{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "karpenter", "namespace": "kube-system"},
	})
	if got := s.due(PartRelease); !strings.Contains(got, "Service/kube-system/karpenter: it does not exist") {
		t.Errorf("%q", got)
	}
	t.Log("a second zone")
	s.run(PartRelease, "repaired Service/kube-system/karpenter")
	s.Create(node("two", "us-east-1b"))
	if got := s.due(PartRelease); !strings.Contains(got, ".spec.replicas") {
		t.Errorf("%q", got)
	}
	t.Log("turned off")
	s.plan.Controller.Release.Present = false
	if got := s.due(PartRelease); !strings.Contains(got, "it is left of release karpenter") {
		t.Errorf("%q", got)
	}
	s.run(PartRelease, "uninstalled release "+ownership.ReleaseController)
	if got := s.due(PartRelease); got != "" {
		t.Errorf("%q", got)
	}
}
