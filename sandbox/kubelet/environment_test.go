package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func amount(name, divisor string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: name, Divisor: resource.MustParse(divisor)}}
}

func TestResolve(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter-0", UID: "7", Annotations: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "karpenter", Containers: []corev1.Container{{
			Name: "controller",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("1500m")},
			},
		}}},
	}
	allocatable := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	for _, c := range []struct {
		what string
		env  corev1.EnvVar
		want string
	}{
		{"a plain value", corev1.EnvVar{Value: "x"}, "x"},
		{"an earlier variable", corev1.EnvVar{Value: "$(EARLIER)/y"}, "e/y"},
		{"an unknown variable stays", corev1.EnvVar{Value: "$(LATER)"}, "$(LATER)"},
		{"an escaped reference", corev1.EnvVar{Value: "$$(EARLIER)"}, "$(EARLIER)"},
		{"the namespace", corev1.EnvVar{ValueFrom: field("metadata.namespace")}, "kube-system"},
		{"an annotation", corev1.EnvVar{ValueFrom: field("metadata.annotations['a']")}, "b"},
		{"the node", corev1.EnvVar{ValueFrom: field("spec.nodeName")}, "node-1"},
		{"the service account", corev1.EnvVar{ValueFrom: field("spec.serviceAccountName")}, "karpenter"},
		{"requested cpu in thousandths", corev1.EnvVar{ValueFrom: amount("requests.cpu", "1m")}, "200"},
		{"requested cpu, rounded up", corev1.EnvVar{ValueFrom: amount("requests.cpu", "0")}, "1"},
		{"limited cpu, rounded up", corev1.EnvVar{ValueFrom: amount("limits.cpu", "1")}, "2"},
		{"requested memory", corev1.EnvVar{ValueFrom: amount("requests.memory", "1Mi")}, "256"},
		{"memory without a limit is the node's", corev1.EnvVar{ValueFrom: amount("limits.memory", "0")}, "4294967296"},
		{"what is not requested is nothing", corev1.EnvVar{ValueFrom: amount("requests.ephemeral-storage", "0")}, "0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.env.Name = "TESTED"
			container := &pod.Spec.Containers[0]
			container.Env = []corev1.EnvVar{{Name: "EARLIER", Value: "e"}, c.env, {Name: "LATER", Value: "l"}}
			got, err := resolve(pod, container, allocatable)
			if err != nil || got["TESTED"] != c.want {
				t.Errorf("got %q, %v; want %q", got["TESTED"], err, c.want)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	secret := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
	elsewhere := amount("limits.cpu", "1")
	elsewhere.ResourceFieldRef.ContainerName = "absent"
	for name, c := range map[string]struct {
		container corev1.Container
		says      string
	}{
		"envFrom":              {corev1.Container{EnvFrom: []corev1.EnvFromSource{{Prefix: "x"}}}, "envFrom"},
		"a secret":             {corev1.Container{Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: secret}}}, "PASSWORD"},
		"an unknown field":     {corev1.Container{Env: []corev1.EnvVar{{Name: "F", ValueFrom: field("spec.nothing")}}}, "spec.nothing"},
		"an unknown container": {corev1.Container{Env: []corev1.EnvVar{{Name: "C", ValueFrom: elsewhere}}}, "absent"},
	} {
		if _, err := resolve(&corev1.Pod{}, &c.container, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error that names %s", name, err, c.says)
		}
	}
}
