package kubelet

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// resolve returns the values of a container's variables as a kubelet does, and expands $(NAME) of earlier
// variables. Sources that the Karpenter chart does not use by default (config maps, secrets, envFrom) are an error
// and are not ignored.
func resolve(pod *corev1.Pod, container *corev1.Container, allocatable corev1.ResourceList) (map[string]string, error) {
	if len(container.EnvFrom) > 0 {
		return nil, fmt.Errorf("container %s: read environment: envFrom is not supported in the sandbox", container.Name)
	}
	values := map[string]string{}
	lookup := expansion.MappingFuncFor(values)
	for _, variable := range container.Env {
		value, err := valueOf(variable, pod, container, allocatable)
		if err != nil {
			return nil, fmt.Errorf("variable %s: resolve: %w", variable.Name, err)
		}
		if variable.ValueFrom == nil {
			value = expansion.Expand(value, lookup)
		}
		values[variable.Name] = value
	}
	return values, nil
}

func valueOf(v corev1.EnvVar, pod *corev1.Pod, container *corev1.Container, allocatable corev1.ResourceList) (string, error) {
	switch {
	case v.ValueFrom == nil:
		return v.Value, nil
	case v.ValueFrom.FieldRef != nil:
		return fieldOf(pod, v.ValueFrom.FieldRef.FieldPath)
	case v.ValueFrom.ResourceFieldRef != nil:
		ref := v.ValueFrom.ResourceFieldRef
		return resource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, pod, cmp.Or(ref.ContainerName, container.Name), allocatable)
	}
	return "", fmt.Errorf("only value, fieldRef and resourceFieldRef are supported in the sandbox")
}

func fieldOf(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return podAddress(pod.UID), nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}
