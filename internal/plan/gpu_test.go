package plan_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The DaemonSet is NVIDIA's own. It runs on every node with an NVIDIA GPU, whatever the pool's taints, and on no other
// node.
func TestDevicePluginRunsOnAllGPUNodesOnly(t *testing.T) {
	text, err := json.Marshal(build(t, with(on, "nvidia_device_plugin_enable", "true"), facts()).Plan.Controller.DevicePlugin)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var live appsv1.DaemonSet
	if err := decoder.Decode(&live); err != nil {
		t.Fatal(err)
	}
	pod, container := live.Spec.Template.Spec, live.Spec.Template.Spec.Containers[0]
	const image = "nvcr.io/nvidia/k8s-device-plugin:v0.17.4@sha256:3c54348fe5a57e5700e7d8068e7531d2ef2d5f3ccb70c8f6bac0953432527abd"
	if live.Labels[ownership.TagRack] != "demo" || container.Image != image || pod.PriorityClassName != "system-node-critical" {
		t.Errorf("labels %v, image %s, priority %s", live.Labels, container.Image, pod.PriorityClassName)
	}
	if len(container.Env) != 1 || container.Env[0].Name != "FAIL_ON_INIT_ERROR" || container.Env[0].Value != "false" {
		t.Errorf("environment %v", container.Env)
	}
	secured := container.SecurityContext
	if *secured.AllowPrivilegeEscalation || secured.Privileged != nil ||
		!slices.Equal(secured.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("security context %+v", secured)
	}
	if container.VolumeMounts[0].MountPath != "/var/lib/kubelet/device-plugins" ||
		pod.Volumes[0].HostPath.Path != "/var/lib/kubelet/device-plugins" ||
		container.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("mounts %v, volumes %v", container.VolumeMounts, pod.Volumes)
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 {
		t.Fatalf("terms %v: they are alternatives, so one more would let the pods onto other nodes", terms)
	}
	if e := terms[0].MatchExpressions[0]; e.Key != "karpenter.k8s.aws/instance-gpu-manufacturer" ||
		e.Operator != corev1.NodeSelectorOpIn || !slices.Equal(e.Values, []string{"nvidia"}) {
		t.Errorf("expression %v", e)
	}
	for _, taint := range []corev1.Taint{
		{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule},
		{Key: "dedicated-node", Value: "gpu", Effect: corev1.TaintEffectNoSchedule},
		{Key: "tenant", Value: "a", Effect: corev1.TaintEffectNoExecute},
	} {
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			t.Errorf("%v is not tolerated", taint)
		}
	}
}

// tolerates applies the scheduler's rule for tolerations without a value.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == taint.Key) && (t.Effect == "" || t.Effect == taint.Effect)
}

// The DaemonSet is absent if the rack does not ask for it, or has Karpenter off.
func TestNoDevicePlugin(t *testing.T) {
	for _, written := range []texts{on, {"karpenter_auth_mode": "true", "nvidia_device_plugin_enable": "true"}} {
		if got := build(t, written, facts()); got.Plan.Controller.DevicePlugin != nil {
			t.Errorf("%v: %v", written, got.Plan.Controller.DevicePlugin)
		}
	}
}
