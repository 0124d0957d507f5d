package controller

import (
	"context"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// plugin installs the NVIDIA device plugin, or removes it if it is ours. It does not wait for pods: there may be no GPU
// node yet, and a later one gets its pod when it joins.
func (r *run) plugin(ctx context.Context) (steps.Progress, error) {
	if !r.plan.Controller.DevicePlugin {
		return r.progress, r.removePlugin(ctx)
	}
	if err := r.client.RefuseForeignDevicePlugin(ctx, r.plan.Rack); err != nil {
		return r.progress, err
	}
	applied, err := r.client.Apply(ctx, r.plan.Rack, devicePlugin(r.plan.Rack))
	if err != nil {
		return r.progress, err
	}
	if applied.Changed() {
		r.progress.Changed(applied.Action, "%s", applied.Subject)
	}
	if len(applied.Contested) > 0 {
		r.progress.Happened("nvidia_device_plugin_enable", "%s was changed by somebody else (%s) and is set back; stop that change, or write false and install a device plugin of your own.",
			applied.Subject, strings.Join(applied.Contested, ", "))
	}
	if applied.Action == k8s.Terminating {
		return r.progress.NotYet(poll, "%s: an earlier one of this name is being deleted", applied.Subject)
	}
	return r.progress, nil
}

func (r *run) removePlugin(ctx context.Context) error {
	live, err := r.client.Get(ctx, k8s.DaemonSet, names.Namespace, names.DevicePlugin)
	if err != nil || live == nil || k8s.Owned(live, r.plan.Rack) != nil || live.GetDeletionTimestamp() != nil {
		return err
	}
	if err := r.client.Delete(ctx, k8s.DaemonSet, live); err != nil {
		return err
	}
	r.progress.Changed("deleted", "%s", k8s.Subject(live))
	return nil
}

// devicePlugin returns the DaemonSet of NVIDIA's own static manifest, except for the nodes that it runs on.
func devicePlugin(rack string) plan.Object {
	const kubeletDir, volume = "/var/lib/kubelet/device-plugins", "kubelet-device-plugins-dir"
	selector := map[string]any{"name": "nvidia-device-plugin-ds"}
	container := map[string]any{
		"name": "nvidia-device-plugin-ctr", "image": names.DevicePluginImage,
		// Without a GPU or a driver the plugin idles, so its pods do not crash while a node is being set up.
		"env":             []any{map[string]any{"name": "FAIL_ON_INIT_ERROR", "value": "false"}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
		"volumeMounts":    []any{map[string]any{"name": volume, "mountPath": kubeletDir}},
	}
	return plan.Object{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": names.DevicePlugin, "namespace": names.Namespace, "labels": map[string]any{names.TagRack: rack}},
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
					"volumes":           []any{map[string]any{"name": volume, "hostPath": map[string]any{"path": kubeletDir, "type": "Directory"}}},
				},
			},
		},
	}
}

// onGPUNodes restricts the pods to nodes with an NVIDIA GPU. It is required because with their tolerations they would
// run on every node.
func onGPUNodes() map[string]any {
	term := map[string]any{"matchExpressions": []any{
		map[string]any{"key": names.LabelGPUMaker, "operator": "In", "values": []any{names.MakerNVIDIA}},
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
		map[string]any{"key": names.ResourceGPU, "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"operator": "Exists"},
	}
}
