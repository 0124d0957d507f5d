package story

import "time"

// FirstPool creates a pod that requests a GPU. Without weights the workload pool launches its node, which has no taint
// to keep other pods away. With the weight that the warning recommends, the GPU pool launches it.
func FirstPool(s *Script) {
	const (
		parameter = "additional_karpenter_nodepools_config"
		warning   = "tries NodePool workload before NodePool gpu"
		image     = "public.ecr.aws/docker/library/python:3.13"
		// claims prints the pools of the NodeClaims for GPUs, and the taints of their nodes.
		claims = `kubectl get nodeclaims -o jsonpath='{range .items[?(@.spec.resources.requests.nvidia\.com/gpu)]}` +
			`{.metadata.labels.karpenter\.sh/nodepool} {.spec.taints[*].key}{end}'`
	)
	gpu := object{"name": "gpu", "instance_families": "g5,g6", "taints": "nvidia.com/gpu=true:NoSchedule"}
	container := object{"name": "model", "image": image, "resources": object{"limits": object{"nvidia.com/gpu": "1"}}}
	model := "kubectl -n shop run model --image=" + image + " --restart=Never --overrides=" +
		argument(object{"spec": object{"containers": []object{container}}})
	removeNode := func() {
		s.Type("kubectl -n shop delete pod model --ignore-not-found") // the taint of a node that is not registered yet may have evicted it
		s.Type("kubectl delete nodeclaims -l karpenter.sh/nodepool --timeout=60s")
		s.Until("nodes of NodePools", nodes, "", time.Minute)
	}
	s.Until("nodes of NodePools", nodes, "", 2*time.Minute)
	s.Chapter("A pool for GPUs, without a weight", func() {
		s.Reconciled(s.Put(parameter, encoded([]object{gpu})))
		s.Check("all pools are Ready", poolsReady, "build=True gpu=True workload=True")
		s.Says(warning)
		s.Type(model)
		s.Until("the pool of its node, and the node's taint", claims, "workload", time.Minute)
		removeNode()
	})

	s.Chapter("With a weight", func() {
		gpu["weight"] = 10
		s.Reconciled(s.Put(parameter, encoded([]object{gpu})))
		s.Check("its weight", "kubectl get nodepool gpu -o jsonpath='{.spec.weight}'", "10")
		s.Omits(warning)
		s.Type(model)
		s.Until("the pool of its node, and the node's taint", claims, "gpu nvidia.com/gpu", time.Minute)
		removeNode()
	})

	s.Unset(parameter)
	s.Reconciled()
	s.Check("pools", poolsReady, "build=True workload=True")
}
