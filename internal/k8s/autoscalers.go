package k8s

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Autoscalers returns the namespace/name of the Deployments that run Cluster Autoscaler, sorted. It is recognized by its
// image, in any namespace.
func Autoscalers(deployments []unstructured.Unstructured) (found []string) {
	for i := range deployments {
		if AutoscalerContainer(&deployments[i]) >= 0 {
			found = append(found, Key(&deployments[i]))
		}
	}
	slices.Sort(found)
	return found
}

// Find returns the object with that namespace/name, or nil.
func Find(objects []unstructured.Unstructured, key string) *unstructured.Unstructured {
	for i := range objects {
		if Key(&objects[i]) == key {
			return &objects[i]
		}
	}
	return nil
}

// AutoscalerImage is the last part of the repository of Cluster Autoscaler's image, in any registry.
const AutoscalerImage = "cluster-autoscaler"

// AutoscalerContainer returns the index of the container that runs Cluster Autoscaler's image, or -1.
func AutoscalerContainer(deployment *unstructured.Unstructured) int {
	return slices.IndexFunc(Images(deployment), func(image string) bool { return repository(image) == AutoscalerImage })
}

// Images returns the images of a Deployment's containers, in order.
func Images(deployment *unstructured.Unstructured) (all []string) {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, each := range containers {
		container, _ := each.(map[string]any)
		image, _ := container["image"].(string)
		all = append(all, image)
	}
	return all
}

// repository returns the last part of an image's repository: registry.k8s.io/autoscaling/{repository}:v1.35.0@sha256:…
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}
