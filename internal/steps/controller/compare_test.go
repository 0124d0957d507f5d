package controller

import (
	"context"
	"errors"
	"fmt"
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

func named(version, kind, name string) k8stest.Object {
	meta := map[string]any{"name": name}
	if kind != "ClusterRole" {
		meta["namespace"] = ownership.Namespace
	}
	return k8stest.Object{"apiVersion": version, "kind": kind, "metadata": meta}
}

// edits are what somebody changes by hand, and what an audit says about it.
var edits = []struct {
	object k8stest.Object
	change func(*unstructured.Unstructured)
	found  string
}{
	{deployment, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
	}, "Deployment/kube-system/karpenter: .spec.replicas"},
	{deployment, func(o *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		variables := containers[0].(map[string]any)["env"].([]any)
		for _, variable := range variables {
			if variable.(map[string]any)["name"] == "CLUSTER_NAME" {
				variable.(map[string]any)["value"] = "other"
			}
		}
		_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
	}, "Deployment/kube-system/karpenter: .spec.template.spec.containers[controller].env[CLUSTER_NAME].value"},
	{named("v1", "Service", "karpenter"), func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
			"name": "http-metrics", "port": int64(9999), "targetPort": "http-metrics", "protocol": "TCP",
		}}, "spec", "ports")
	}, "Service/kube-system/karpenter: .spec.ports[8080 TCP]"},
	{named("rbac.authorization.k8s.io/v1", "ClusterRole", "karpenter-core"), func(o *unstructured.Unstructured) {
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		_ = unstructured.SetNestedSlice(o.Object, rules[1:], "rules")
	}, "ClusterRole/karpenter-core: .rules"},
	{named("v1", "ServiceAccount", "karpenter"), func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		delete(labels, "app.kubernetes.io/instance")
		o.SetLabels(labels)
	}, "ServiceAccount/kube-system/karpenter: .metadata.labels.app.kubernetes.io/instance"},
}

// An audit finds a controller in order, with the rights that access gives it, and what was changed in it since.
func TestAuditOfTheController(t *testing.T) {
	s := begin(t)
	s.undefined()
	s.Create(node("one", "us-east-1a"))
	for part, want := range map[string]string{PartCRDs: "CustomResourceDefinition/", PartRelease: "/karpenter: it does not exist"} {
		if got := s.due(part); !strings.Contains(got, want) {
			t.Errorf("%s before it is installed: %q", part, got)
		}
	}
	s.defined()
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
	s.run(PartCRDs, "updated CustomResourceDefinition/nodepools.karpenter.sh")
	for _, edit := range edits {
		s.Change(edit.object, edit.change)
		if got := s.due(PartRelease); !strings.Contains(got, edit.found) {
			t.Errorf("found %q, want %q", got, edit.found)
		}
		s.run(PartRelease, "updated "+k8s.Subject(s.Get(edit.object)))
		s.RolledOut(deployment)
		if got := s.due(PartRelease); got != "" {
			t.Errorf("%s: repaired, and due: %q", edit.found, got)
		}
	}
	t.Log("what somebody changes again: it is left, and told, and an audit finds it")
	for _, edit := range []int{0, 2} { // a field of a map, and an element of a list that cannot be as wanted beside the other
		s.Change(edits[edit].object, edits[edit].change)
		progress := s.run(PartRelease)
		subject, field, _ := strings.Cut(edits[edit].found, ": ")
		want := subject + " " + field + " is contested: somebody has set it back 2 times"
		if !progress.Unfinished || !strings.Contains(fmt.Sprint(progress.Warnings), want) {
			t.Errorf("%v, want %s", progress.Warnings, want)
		}
		if got := s.due(PartRelease); !strings.Contains(got, edits[edit].found) {
			t.Errorf("left, and an audit finds %q", got)
		}
		s.Remove(edits[edit].object)
		s.run(PartRelease, "created "+subject)
		s.RolledOut(deployment)
	}
	service := named("v1", "Service", "karpenter")
	s.Remove(service)
	if got := s.due(PartRelease); !strings.Contains(got, "Service/kube-system/karpenter: it does not exist") {
		t.Errorf("%q", got)
	}
	s.run(PartRelease, "created Service/kube-system/karpenter")
	t.Log("a second zone")
	s.Create(node("two", "us-east-1b"))
	if got := s.due(PartRelease); !strings.Contains(got, ".spec.replicas") {
		t.Errorf("%q", got)
	}
	t.Log("turned off")
	s.plan.Controller.Release.Present = false
	if got := s.due(PartRelease); !strings.Contains(got, ": delete") {
		t.Errorf("%q", got)
	}
	s.run(PartRelease, "uninstalled release "+ownership.ReleaseController)
	if got := s.due(PartRelease); got != "" {
		t.Errorf("%q", got)
	}
}
