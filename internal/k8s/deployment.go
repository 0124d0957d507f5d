package k8s

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Key returns namespace/name, as the plan names Deployments.
func Key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

var selectorPath = []string{"spec", "template", "spec", "nodeSelector"}

// SystemNodePath is the path of the system label in the nodeSelector of a Deployment's pods.
var SystemNodePath = slices.Concat(selectorPath, []string{ownership.LabelSystemNode})

// NodeSelector returns the nodeSelector of a Deployment's pods.
func NodeSelector(deployment *unstructured.Unstructured) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, selectorPath...)
	return labels
}

// SetSystemNode sets the system label's value in the nodeSelector of a Deployment's pods, or removes the label.
func SetSystemNode(deployment *unstructured.Unstructured, value *string) {
	if value != nil {
		// It fails only if a parent is not an object, which the API server's schema rules out.
		_ = unstructured.SetNestedField(deployment.Object, *value, SystemNodePath...)
		return
	}
	unstructured.RemoveNestedField(deployment.Object, SystemNodePath...)
	if len(NodeSelector(deployment)) == 0 {
		unstructured.RemoveNestedField(deployment.Object, selectorPath...)
	}
}
