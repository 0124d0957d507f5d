package plan

import "github.com/sawhorse-io/sawhorse/internal/ownership"

// devicePlugin returns the DaemonSet of NVIDIA's own static manifest, except for the nodes that it runs on.
func devicePlugin(rack string) Object {
	const kubeletDir, volume = "/var/lib/kubelet/device-plugins", "kubelet-device-plugins-dir"
	selector := map[string]any{"name": "nvidia-device-plugin-ds"}
	container := map[string]any{
		"name": "nvidia-device-plugin-ctr", "image": ownership.DevicePluginImage,
		// Without a GPU or a driver the plugin idles, so its pods do not crash while a node is being set up.
		"env":             []any{map[string]any{"name": "FAIL_ON_INIT_ERROR", "value": "false"}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
		"volumeMounts":    []any{map[string]any{"name": volume, "mountPath": kubeletDir}},
	}
	return Object{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": ownership.DevicePlugin, "namespace": ownership.Namespace,
			"labels": map[string]any{ownership.TagRack: rack}},
		"spec": map[string]any{
			"selector":       map[string]any{"matchLabels": selector},
			"updateStrategy": map[string]any{"type": "RollingUpdate"},
			"template": map[string]any{
				"metadata": map[string]any{"labels": selector},
				"spec": map[string]any{
					"priorityClassName": "system-node-critical",
					"affinity":          onGPUNodes(),
					"tolerations":       pluginTolerations(),
					"containers":        []any{container},
					"volumes": []any{map[string]any{
						"name": volume, "hostPath": map[string]any{"path": kubeletDir, "type": "Directory"},
					}},
				},
			},
		},
	}
}

// onGPUNodes restricts the pods to nodes with an NVIDIA GPU. It is required because with their tolerations they would
// run on every node.
func onGPUNodes() map[string]any {
	term := map[string]any{"matchExpressions": []any{
		map[string]any{"key": ownership.LabelGPUMaker, "operator": "In", "values": []any{ownership.MakerNVIDIA}},
	}}
	return map[string]any{"nodeAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{term}}}}
}

// pluginTolerations returns NVIDIA's own toleration for nvidia.com/gpu and one for every other taint.
//
// A GPU pool may carry any taint (dedicated-node=…, a tenant's). On a node that the plugin cannot enter, the GPUs are
// never offered: Karpenter considers the node uninitialized, and the pods stay pending beside an instance that costs
// money. To list the taints of today's pools instead would change the DaemonSet, and restart every plugin pod, with
// each new pool.
//
// A pod that tolerates karpenter.sh/disrupted is not drained either, so the GPUs stay available while workloads drain.
// kube-proxy and the CNI tolerate everything for the same reasons.
func pluginTolerations() []any {
	return []any{
		map[string]any{"key": ownership.ResourceGPU, "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"operator": "Exists"},
	}
}

// pluginSection has the DaemonSet alone. It is not part of Karpenter's release.
func pluginSection(p *Plan) any {
	return struct {
		DevicePlugin Object `json:"devicePlugin,omitempty"`
	}{p.Controller.DevicePlugin}
}
