package story

import "time"

// FirstPool creates a pod that requests a GPU. Without weights the workload pool launches its node, which has no taint
// to keep other pods away. With the weight that the warning recommends, the GPU pool launches it.
func FirstPool(t *Teller) {
	const (
		more = `aws ssm put-parameter --overwrite --name /sawhorse/racks/demo/params/additional_karpenter_nodepools_config ` +
			`--type String --value `
		gpu     = `"name":"gpu","instance_families":"g5,g6","taints":"nvidia.com/gpu=true:NoSchedule"`
		warning = status + " | grep -c 'tries NodePool workload before NodePool gpu' || true"
		image   = "public.ecr.aws/docker/library/python:3.13"
		model   = `kubectl -n shop run model --image=` + image +
			` --restart=Never --overrides='{"spec":{"containers":[{"name":"model","image":"` + image +
			`","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}'`
		// claimed prints the pool of the NodeClaim for a GPU, and the taint of its node.
		claimed = `kubectl get nodeclaims -o json | python3 -c '
import json, sys
for claim in json.load(sys.stdin)["items"]:
    if "nvidia.com/gpu" in claim["spec"]["resources"]["requests"]:
        print(claim["metadata"]["labels"]["karpenter.sh/nodepool"], *[t["key"] for t in claim["spec"].get("taints", [])])'`
	)
	gone := func() {
		t.Type("kubectl -n shop delete pod model --ignore-not-found") // the taint of a node that is not registered yet may have evicted it
		t.Type("kubectl delete nodeclaims -l karpenter.sh/nodepool --timeout=60s")
		t.Until("nodes of NodePools", nodes, "", time.Minute)
	}
	t.Chapter("A pool for GPUs, without a weight")
	t.Until("nodes of NodePools", nodes, "", 2*time.Minute)
	t.Type(more + `'[{` + gpu + `}]'`)
	t.Until("all pools are Ready", poolsReady, "build=True gpu=True workload=True", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("the warning", warning, "1")
	t.Type(model)
	t.Until("who launches a node for it, and with which taint", claimed, "workload", time.Minute)
	gone()

	t.Chapter("With a weight")
	t.Type(more + `'[{` + gpu + `,"weight":10}]'`)
	t.Until("its weight", "kubectl get nodepool gpu -o jsonpath='{.spec.weight}'", "10", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("the warning", warning, "0")
	t.Type(model)
	t.Until("who launches a node for it, and with which taint", claimed, "gpu nvidia.com/gpu", time.Minute)
	gone()

	t.Type(put + "additional_karpenter_nodepools_config --value unset")
	t.Until("pools", poolsReady, "build=True workload=True", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}
