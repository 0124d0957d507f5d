package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s/k8stest"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// rejected checks that a part of the step is rejected with a problem that mentions a text, and changes nothing.
func (s *scene) rejected(part, mention string) {
	s.Helper()
	before := s.versions()
	_, err := s.step.Run(ctx, s.plan, part)
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), mention) || rejected.Problems[0].Parameter != "karpenter_enabled" {
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
		s.InstallCRDs()
		s.rejected(PartCRDs, "CustomResourceDefinition/nodepools.karpenter.sh")
	})
	t.Run("a release of another rack", func(t *testing.T) {
		s := begin(t)
		s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
		s.settle()
		s.run(PartRelease, "installed release karpenter 1.10.0")
		s.plan.Rack = "other"
		s.rejected(PartRelease, "Helm release kube-system/karpenter")
		s.rejected(PartCRDs, "Helm release kube-system/karpenter-crd")
		s.plan.Controller.Release.Present = false
		s.run(PartRelease) // not ours, so it stays
	})
	t.Run("an object of the chart's name", func(t *testing.T) {
		s := begin(t)
		s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
		s.settle()
		s.Create(k8stest.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "karpenter",
			"namespace": "kube-system"}})
		s.rejected(PartRelease, "ServiceAccount \"karpenter\"")
	})
}
