package k8s_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

// entry is one of an object's managedFields: manager, time, subresource, and the fields as JSON.
func entry(manager, second, subresource, fields string) any {
	return map[string]any{
		"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:" + second + "Z",
		"fieldsType":  "FieldsV1",
		"subresource": subresource, "fieldsV1": parsed(fields),
	}
}

func parsed(fields string) map[string]any {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","f":` + fields + `}`)); err != nil {
		panic(fmt.Sprint(fields, err))
	}
	return object.Object["f"].(map[string]any)
}

func TestSetBy(t *testing.T) {
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	const command = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"ca\"}":{"f:command":{}}}}}}}`
	scale, line := []string{"spec", "replicas"}, []string{"spec", "template", "spec", "containers", `k:{"name":"ca"}`, "command"}
	for _, c := range []struct {
		what    string
		path    []string
		entries []any
		want    string
	}{
		{"who holds the field, not who wrote last", scale,
			[]any{entry("argocd-controller", "05", "", replicas), entry("kubectl", "09", "", command)}, "argocd-controller"},
		{"the latest of two holders", scale,
			[]any{entry("helm", "05", "", replicas), entry("kubectl", "09", "scale", replicas)}, "kubectl"},
		{"an element of a list", line, []any{entry("kubectl", "09", "", replicas), entry("flux", "05", "", command)}, "flux"},
		{"a field that was taken out: who wrote last", line,
			[]any{entry("helm", "05", "", replicas), entry("terraform", "09", "", replicas)}, "terraform"},
		{"not Sawhorse, and not the status", scale,
			[]any{entry("kubectl", "05", "", command), entry("sawhorse", "09", "", replicas),
				entry("kube-controller-manager", "09", "status", replicas)}, "kubectl"},
		{"nobody", scale, []any{entry("sawhorse", "09", "", replicas)}, "another manager"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": c.entries}}}
		if got := k8s.SetBy(object, c.path...); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
