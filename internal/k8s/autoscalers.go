package k8s

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Autoscaler returns the Cluster Autoscaler among a cluster's Deployments, or nil if there is none. It is recognized by
// its image, in any namespace. If there are several, named (namespace/name) selects one. The error is a *outcome.Rejected
// if named does not exist or does not run Cluster Autoscaler's image, or if there are two and none is named. The image
// is checked because the Deployment may be scaled to zero.
func Autoscaler(deployments []unstructured.Unstructured, named string) (*unstructured.Unstructured, error) {
	if named != "" {
		found := Find(deployments, named)
		if found == nil {
			return nil, outcome.Reject("cluster_autoscaler", "cluster_autoscaler is %q, but the cluster has no Deployment of that name; "+
				"write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
				"or unset, and Sawhorse finds it by its image", named, suggestion(deployments))
		}
		if AutoscalerContainer(found) < 0 {
			return nil, outcome.Reject("cluster_autoscaler",
				"cluster_autoscaler is %q, a Deployment that runs %s and not an image named %s, and what hands over may be scaled "+
					"to zero; write the namespace/name of the Deployment that runs Cluster Autoscaler%s, "+
					"or unset, and Sawhorse finds it by its image; a mirror of the image must keep that name", named,
				strings.Join(images(found), ", "), autoscalerImage, suggestion(deployments))
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
	return nil, outcome.Reject("karpenter_enabled",
		"the cluster has %d Cluster Autoscalers: %s; Sawhorse hands over from one; name it in cluster_autoscaler, or delete the others",
		len(found), strings.Join(found, ", "))
}

// suggestion names the Deployments that run the image of Cluster Autoscaler.
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

// Find returns the object with that namespace/name, or nil.
func Find(objects []unstructured.Unstructured, key string) *unstructured.Unstructured {
	for i := range objects {
		if objects[i].GetNamespace()+"/"+objects[i].GetName() == key {
			return &objects[i]
		}
	}
	return nil
}

// autoscalerImage is the last part of the repository of Cluster Autoscaler's image, in any registry.
const autoscalerImage = "cluster-autoscaler"

// AutoscalerContainer returns the index of the container that runs Cluster Autoscaler's image, or -1.
func AutoscalerContainer(deployment *unstructured.Unstructured) int {
	return slices.IndexFunc(images(deployment), func(image string) bool { return repository(image) == autoscalerImage })
}

// images returns the images of a Deployment's containers, in order.
func images(deployment *unstructured.Unstructured) (all []string) {
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
