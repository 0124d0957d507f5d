package chaos

import (
	"context"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are compared in full, except for what the API server and the controllers write.
var kinds = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
	{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"},
	{Version: "v1", Resource: "services"},
}

// names are kinds of which only the object names are compared.
var names = []schema.GroupVersionResource{
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "configmaps"},
	{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"},
}

func (w *World) cluster(ctx context.Context, all *collection) error {
	for _, kind := range kinds {
		if err := w.each(ctx, kind, func(o *unstructured.Unstructured) error {
			if o.GetKind() == "Service" && o.GetName() == "kubernetes" {
				return nil // the API server's own service, whose port varies
			}
			return all.add(essence(o), "%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		}); err != nil {
			return err
		}
	}
	karpenters, err := w.karpenters(ctx)
	if err != nil {
		return err
	}
	for _, kind := range names {
		if err := w.each(ctx, kind, func(o *unstructured.Unstructured) error {
			if karpenters(o) {
				return nil
			}
			return all.add("", "%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		}); err != nil {
			return err
		}
	}
	if err := w.each(ctx, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, func(o *unstructured.Unstructured) error {
		return all.add("", "Secret %s/%s", o.GetNamespace(), o.GetName())
	}); err != nil {
		return err
	}
	if err := w.each(ctx, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, func(o *unstructured.Unstructured) error {
		if o.GetNamespace() != "sawhorse-proof" {
			return nil
		}
		return all.add("", "Pod %s/%s", o.GetNamespace(), o.GetName())
	}); err != nil {
		return err
	}
	return w.each(ctx, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, func(o *unstructured.Unstructured) error {
		if karpenters(o) {
			return nil
		}
		labels := o.GetLabels()
		unschedulable, _, _ := unstructured.NestedBool(o.Object, "spec", "unschedulable")
		return all.add([]any{labels["convox.io/system-node"], unschedulable}, "node of group %s", labels["eks.amazonaws.com/nodegroup"])
	})
}

// karpenters reports of an object whether it belongs to a node that Karpenter has launched, while there are NodePools. The first
// nodes of pools have nothing to run after the hand-over, and go when Karpenter finds the time. Without NodePools, none may be
// left.
func (w *World) karpenters(ctx context.Context) (func(*unstructured.Unstructured) bool, error) {
	on, err := w.on(ctx)
	return func(o *unstructured.Unstructured) bool {
		_, ofPool := o.GetLabels()["karpenter.sh/nodepool"]
		return on && (ofPool || strings.HasPrefix(o.GetName(), "kwok-aws-instances-"))
	}, err
}

// on reports whether there are NodePools.
func (w *World) on(ctx context.Context) (on bool, err error) {
	err = w.each(ctx, schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
		func(*unstructured.Unstructured) error { on = true; return nil })
	return on, err
}

func (w *World) each(ctx context.Context, kind schema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	list, err := w.objects.Resource(kind).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the kind does not exist yet
	}
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := do(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// transient lists annotations that record history and not the desired state.
var transient = []string{"deployment.kubernetes.io/revision", "sawhorse.dev/pods-deleted", "sawhorse.dev/validate-again"}

// essence returns an object without the fields that the API server and the controllers write.
func essence(o *unstructured.Unstructured) map[string]any {
	whole := maps.Clone(o.Object)
	delete(whole, "status")
	annotations := o.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool {
		for _, prefix := range transient {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	})
	whole["metadata"] = map[string]any{"labels": o.GetLabels(), "annotations": annotations, "deleted": o.GetDeletionTimestamp() != nil}
	if o.GetKind() == "Service" {
		spec, _ := whole["spec"].(map[string]any)
		spec = maps.Clone(spec)
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
		whole["spec"] = spec
	}
	return whole
}
