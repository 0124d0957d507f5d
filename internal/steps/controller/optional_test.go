package controller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

var (
	monitors = k8stest.Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": monitorCRD},
		"spec": map[string]any{"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": map[string]any{
				"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor", "listKind": "ServiceMonitorList",
			},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}
	monitor = k8stest.Object{"apiVersion": monitorAPI, "kind": "ServiceMonitor",
		"metadata": map[string]any{"name": "karpenter", "namespace": ownership.Namespace}}
)

// A ServiceMonitor is made if the values ask for it and the cluster has the Prometheus Operator, and goes with the values
// or with the release. One that somebody else made stays.
func TestOptionalObjects(t *testing.T) {
	s := begin(t)
	s.Create(node("one", "us-east-1a"))
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	s.plan.Controller.Release.Values["serviceMonitor"] = map[string]any{"enabled": true}
	progress := s.run(PartRelease, "installed release karpenter 1.10.0")
	last := progress.Warnings[len(progress.Warnings)-1]
	if last.Parameter != "karpenter_controller_config" || !strings.Contains(last.Message, "install the Prometheus Operator") {
		t.Errorf("warnings %v", progress.Warnings)
	}
	s.RolledOut(deployment)

	t.Log("the operator is installed")
	s.Create(monitors)
	k8stest.Eventually(t, func() bool {
		conditions, _, _ := unstructured.NestedSlice(s.Get(monitors).Object, "status", "conditions")
		return len(conditions) >= 2
	})
	if got := s.due(PartRelease); !strings.Contains(got, "ServiceMonitor/kube-system/karpenter: it does not exist") {
		t.Errorf("an audit: %q", got)
	}
	s.run(PartRelease, "repaired ServiceMonitor/kube-system/karpenter")
	if s.Get(monitor).GetLabels()[ownership.TagRack] != "demo" {
		t.Errorf("labels %v", s.Get(monitor).GetLabels())
	}
	if got := s.due(PartRelease); got != "" {
		t.Errorf("an audit: %q", got)
	}

	t.Log("not asked for any more")
	s.plan.Controller.Release.Values["serviceMonitor"] = map[string]any{"enabled": false}
	s.run(PartRelease, "updated: serviceMonitor.enabled=false (was true) release karpenter 1.10.0",
		"deleted ServiceMonitor/kube-system/karpenter")
	theirs := s.Create(monitor)
	s.run(PartRelease)
	if live := s.Get(monitor); live == nil || live.GetUID() != theirs.GetUID() {
		t.Error("somebody else's was deleted")
	}
	s.Remove(monitor)

	t.Log("with the release")
	s.plan.Controller.Release.Values["serviceMonitor"] = map[string]any{"enabled": true}
	s.run(PartRelease, "updated: serviceMonitor.enabled=true (was false) release karpenter 1.10.0")
	if s.Get(monitor) == nil {
		t.Fatal("none was made")
	}
	s.plan.Controller.Release.Present = false
	s.run(PartRelease, "uninstalled release karpenter", "deleted ServiceMonitor/kube-system/karpenter")
}
