package k8s

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Autoscalers finds the Deployments that run Cluster Autoscaler, by their image, in all namespaces.
func (c *Client) Autoscalers(ctx context.Context) ([]unstructured.Unstructured, error) {
	deployments, err := c.List(ctx, Deployment, "", "")
	if err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for _, deployment := range deployments {
		if AutoscalerContainer(&deployment) >= 0 {
			found = append(found, deployment)
		}
	}
	return found, nil
}

// AutoscalerContainer is the index of the container that runs Cluster Autoscaler; -1 where none does.
func AutoscalerContainer(deployment *unstructured.Unstructured) int {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for i, each := range containers {
		container, _ := each.(map[string]any)
		if image, _ := container["image"].(string); repository(image) == "cluster-autoscaler" {
			return i
		}
	}
	return -1
}

// repository is the last element of an image's repository: registry.k8s.io/autoscaling/{repository}:v1.35.0@sha256:…
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}
