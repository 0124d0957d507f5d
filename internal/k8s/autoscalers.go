package k8s

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Autoscaler is the Cluster Autoscaler among a cluster's Deployments: the one whose image says so, in whatever namespace, and of several
// the one that is named (namespace/name); nil where there is none. A name that leads nowhere, or to a Deployment that is no Cluster
// Autoscaler, and two of them without a name, are a *steps.Rejected: what hands over is scaled to zero, so a name alone is not enough.
func Autoscaler(deployments []unstructured.Unstructured, named string) (*unstructured.Unstructured, error) {
	if named != "" {
		found := Find(deployments, named)
		if found == nil {
			return nil, steps.Reject("cluster_autoscaler", "cluster_autoscaler is %q, but the cluster has no Deployment of that name; write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
				"or unset, and Sawhorse finds it by its image", named, suggestion(deployments))
		}
		if AutoscalerContainer(found) < 0 {
			return nil, steps.Reject("cluster_autoscaler", "cluster_autoscaler is %q, a Deployment that runs %s and not an image named %s, and what hands over may be scaled to zero; write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
				"or unset, and Sawhorse finds it by its image; a mirror of the image must keep that name", named, strings.Join(images(found), ", "), autoscalerImage, suggestion(deployments))
		}
		return found, nil
	}
	found := byImage(deployments)
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return Find(deployments, found[0]), nil
	}
	return nil, steps.Reject("karpenter_enabled", "the cluster has %d Cluster Autoscalers: %s; Sawhorse hands over from one; name it in cluster_autoscaler, or delete the others",
		len(found), strings.Join(found, ", "))
}

// suggestion names the Deployments that look like it.
func suggestion(deployments []unstructured.Unstructured) string {
	if found := byImage(deployments); len(found) > 0 {
		return " (" + strings.Join(found, " or ") + " looks like it)"
	}
	return ""
}

func byImage(deployments []unstructured.Unstructured) (found []string) {
	for i := range deployments {
		if AutoscalerContainer(&deployments[i]) >= 0 {
			found = append(found, deployments[i].GetNamespace()+"/"+deployments[i].GetName())
		}
	}
	slices.Sort(found)
	return found
}

// Find is the object of that namespace/name; nil where there is none.
func Find(objects []unstructured.Unstructured, key string) *unstructured.Unstructured {
	for i := range objects {
		if objects[i].GetNamespace()+"/"+objects[i].GetName() == key {
			return &objects[i]
		}
	}
	return nil
}

// autoscalerImage is how the repository of Cluster Autoscaler's image ends, wherever it is mirrored.
const autoscalerImage = "cluster-autoscaler"

// AutoscalerContainer is the index of the container that runs Cluster Autoscaler, by its image; -1 where none does.
func AutoscalerContainer(deployment *unstructured.Unstructured) int {
	return slices.IndexFunc(images(deployment), func(image string) bool { return repository(image) == autoscalerImage })
}

// images are those of a Deployment's containers, in their order.
func images(deployment *unstructured.Unstructured) (all []string) {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, each := range containers {
		container, _ := each.(map[string]any)
		image, _ := container["image"].(string)
		all = append(all, image)
	}
	return all
}

// repository is the last element of an image's repository: registry.k8s.io/autoscaling/{repository}:v1.35.0@sha256:…
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}
