package placement

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// key returns namespace/name, as the plan names Deployments.
func key(deployment *unstructured.Unstructured) string {
	return deployment.GetNamespace() + "/" + deployment.GetName()
}

// baselineKey names the record of a Deployment's nodeSelector, as JSON.
func baselineKey(deployment *unstructured.Unstructured) string { return "pin/" + key(deployment) }

func annotation(deployment *unstructured.Unstructured) string {
	return deployment.GetAnnotations()[ownership.AnnotationPin]
}

func annotate(deployment *unstructured.Unstructured, value string) {
	k8s.SetAnnotation(deployment, ownership.AnnotationPin, value)
}

var selectorPath = []string{"spec", "template", "spec", "nodeSelector"}

func selector(deployment *unstructured.Unstructured) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, selectorPath...)
	return labels
}

// setSelector sets the system label's value in the nodeSelector, or removes it.
func setSelector(deployment *unstructured.Unstructured, value *string) {
	labels := map[string]string{}
	maps.Copy(labels, selector(deployment))
	delete(labels, ownership.LabelSystemNode)
	if value != nil {
		labels[ownership.LabelSystemNode] = *value
	}
	if len(labels) == 0 {
		unstructured.RemoveNestedField(deployment.Object, selectorPath...)
		return
	}
	// It fails only if a parent is not an object, which the API server's schema rules out.
	_ = unstructured.SetNestedStringMap(deployment.Object, labels, selectorPath...)
}
