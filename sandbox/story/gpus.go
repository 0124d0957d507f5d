package story

import "time"

// GPUs runs a pod on a GPU of a pool's node, with the NVIDIA device plugin beside it, then four pods that share one GPU. The sandbox's
// nodes have their GPUs from the beginning, as if the plugin had reported them; the shares of a GPU are the script's own writing in the
// node's status, in place of the plugin's time slicing.
func GPUs(s *Script) {
	const (
		plugin  = "kubectl -n kube-system get pods -l name=nvidia-device-plugin-ds -o jsonpath='{.items[*].spec.nodeName}'"
		claimed = "kubectl get nodeclaims -l karpenter.sh/nodepool=gpu -o jsonpath='{.items[*].status.nodeName}'"
		overlay = `[{"name":"shared-gpus","requirements":[{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["g5"]},` +
			`{"key":"karpenter.k8s.aws/instance-gpu-count","operator":"In","values":["1"]}],"capacity":{"nvidia.com/gpu.shared":"4"}}]`
	)
	model := app{name: "model", replicas: 1, cpu: `"1"`, limits: `{nvidia.com/gpu: "1"}`}
	s.Chapter("A pod on a GPU", func() {
		s.Reconciled(s.Change(map[string]string{
			"nvidia_device_plugin_enable": "true", "karpenter_consolidate_after": "1s",
			"additional_karpenter_nodepools_config": `[{"name":"gpu","instance_families":"g5,g6","taints":"nvidia.com/gpu=true:NoSchedule",` +
				`"weight":10,"consolidate_after":"1s"}]`,
		}))
		model.start(s)
		s.Check("the NodePool of its node", model.where(), "gpu")
		s.Until("the nodes of the device plugin", plugin, s.Output(model.node()), time.Minute)
		model.end(s)
		s.Until("nodes of the pool", claimed, "", 3*time.Minute)
	})

	s.Chapter("Four pods that share a GPU", func() {
		s.Reconciled(s.Put("karpenter_node_overlays_config", overlay))
		shared := app{
			name: "shared", replicas: 4, cpu: `"100m"`, limits: `{nvidia.com/gpu.shared: "1"}`,
			spec: "tolerations: [{key: nvidia.com/gpu, operator: Exists}]", // EKS adds one of the name of the resource only
		}
		s.Type(shared.create())
		s.Until("nodes of the pool", claimed+" | wc -w", "1", time.Minute)
		s.Say("The sandbox's device plugin does not share: the script writes in the node's status what time slicing makes of a GPU.")
		s.Type("kubectl patch $(" + claimed + ` | xargs -I{} echo node/{}) --subresource=status ` +
			`-p '{"status":{"capacity":{"nvidia.com/gpu.shared":"4"},"allocatable":{"nvidia.com/gpu.shared":"4"}}}'`)
		s.Until("pods of shared that run", shared.runs(), "4", time.Minute)
		s.Check("nodes of the pool", claimed+" | wc -w", "1")
		shared.end(s)
		s.Until("nodes of the pool", claimed, "", 3*time.Minute)
	})

	s.Reconciled(s.Change(nil, "karpenter_node_overlays_config", "additional_karpenter_nodepools_config", "karpenter_consolidate_after",
		"nvidia_device_plugin_enable"))
	s.Check("pools", poolsReady, "build=True workload=True")
}

// GPUsNewest is GPUs under the newest version of Karpenter.
func GPUsNewest(s *Script) {
	s.Chapter("Up to 1.15.1", func() { changed(s, "1.15.1") })
	GPUs(s)
	s.Chapter("Down to 1.10.0", func() { changed(s, "1.10.0") })
}
