package placement

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// baselineKey names the record of a Deployment's nodeSelector, as JSON.
func baselineKey(deployment *unstructured.Unstructured) string { return "pin/" + k8s.Key(deployment) }

func annotation(deployment *unstructured.Unstructured) string {
	return deployment.GetAnnotations()[ownership.AnnotationPin]
}

func annotate(deployment *unstructured.Unstructured, value string) {
	k8s.SetAnnotation(deployment, ownership.AnnotationPin, value)
}
