package controller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

var (
	monitors = k8stest.Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "servicemonitors.monitoring.coreos.com"},
		"spec": map[string]any{"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": map[string]any{
				"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor", "listKind": "ServiceMonitorList",
			},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}
	monitor = k8stest.Object{"apiVersion": plan.MonitorAPI, "kind": "ServiceMonitor",
		"metadata": map[string]any{"name": "karpenter", "namespace": ownership.Namespace}}
)

// A ServiceMonitor is made if the plan has one, and goes with the plan's or with the controller. One that somebody else made
// stays.
func TestOptionalObjects(t *testing.T) {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.defined()
	s.run(PartRelease, "installed release karpenter 1.10.0")
	s.RolledOut(deployment)

	t.Log("the operator is installed")
	s.Create(monitors)
	k8stest.Eventually(t, func() bool {
		conditions, _, _ := unstructured.NestedSlice(s.Get(monitors).Object, "status", "conditions")
		return len(conditions) >= 2
	})
	monitoring := params.Config{HighAvailability: true, ControllerValues: map[string]any{"serviceMonitor": map[string]any{"enabled": true}}}
	s.plan = wanted(monitoring, plan.MonitorAPI)
	if got := s.due(PartRelease); !strings.Contains(got, "ServiceMonitor/kube-system/karpenter: it does not exist") {
		t.Errorf("an audit: %q", got)
	}
	s.run(PartRelease, "created ServiceMonitor/kube-system/karpenter")
	if got := s.due(PartRelease); got != "" {
		t.Errorf("an audit: %q", got)
	}

	t.Log("not asked for any more")
	s.plan = wanted(params.Config{HighAvailability: true})
	if got := s.due(PartRelease); !strings.Contains(got, "ServiceMonitor/kube-system/karpenter: delete") {
		t.Errorf("an audit: %q", got)
	}
	s.run(PartRelease, "deleted ServiceMonitor/kube-system/karpenter")
	theirs := s.Create(monitor)
	s.run(PartRelease)
	if live := s.Get(monitor); live == nil || live.GetUID() != theirs.GetUID() {
		t.Error("somebody else's was deleted")
	}
	s.Remove(monitor)

	t.Log("with the controller")
	s.plan = wanted(monitoring, plan.MonitorAPI)
	s.run(PartRelease, "created ServiceMonitor/kube-system/karpenter")
	s.plan = wanted(params.Config{HighAvailability: true})
	s.plan.Controller.Release.Present = false
	s.run(PartRelease, "uninstalled release karpenter")
	if s.Get(monitor) != nil {
		t.Error("it is left")
	}
}
