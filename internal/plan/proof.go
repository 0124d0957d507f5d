package plan

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Proof shows that pools can launch nodes, before capacity is handed over to them. That a NodePool is Ready says nothing of
// quotas, of service-linked roles or of the network.
type Proof struct {
	// Pods has a pod for each pool that takes over: the workload pool from Cluster Autoscaler, the build pool from the
	// build groups. Its name is the pool's, and only the pool's nodes take it.
	Pods []Object `json:"pods,omitempty"`
}

// proof plans the pods that ask for first nodes.
func (b *builder) proof() {
	pools := []string{ownership.WorkloadPool}
	if b.plan.Nodegroups.BuildEmpty {
		pools = append(pools, ownership.BuildPool)
	}
	for _, object := range b.plan.NodePools.Objects {
		name, _ := fields(object["metadata"])["name"].(string)
		if object["kind"] == "NodePool" && slices.Contains(pools, name) {
			b.plan.Proof.Pods = append(b.plan.Proof.Pods, proofPod(b.config.Rack, name, object))
		}
	}
}

// proofPod returns the pod that asks for a node of a pool. Its node proves the pool as soon as the pod has a network:
// no image is pulled for it, and nothing runs in it. If everything that would delete it fails, it ends by itself.
func proofPod(rack, pool string, nodePool Object) Object {
	tolerations := []any{}
	taints, _ := fields(fields(fields(nodePool["spec"])["template"])["spec"])["taints"].([]any)
	for _, each := range taints {
		taint := fields(each)
		toleration := Object{"key": taint["key"], "effect": taint["effect"], "operator": "Exists"}
		if value, _ := taint["value"].(string); value != "" {
			toleration["operator"], toleration["value"] = "Equal", value
		}
		tolerations = append(tolerations, toleration)
	}
	return Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": Object{
			"name": pool, "namespace": ownership.ProofNamespace, "labels": Object{ownership.TagRack: rack},
			"annotations": Object{"karpenter.sh/do-not-disrupt": "true"},
		},
		"spec": Object{
			"nodeSelector": Object{ownership.LabelPool: pool}, "tolerations": tolerations,
			"activeDeadlineSeconds": int64(1800), "terminationGracePeriodSeconds": int64(1),
			"automountServiceAccountToken": false, "enableServiceLinks": false,
			"securityContext": Object{"runAsNonRoot": true, "runAsUser": int64(65535), "seccompProfile": Object{"type": "RuntimeDefault"}},
			"containers": []any{Object{
				"name": "none", "image": "registry.k8s.io/pause:3.10", "imagePullPolicy": "Never",
				"resources":       Object{"requests": Object{"cpu": "1m", "memory": "1Mi"}},
				"securityContext": Object{"allowPrivilegeEscalation": false, "capabilities": Object{"drop": []any{"ALL"}}},
			}},
		},
	}
}

// proofNamespace returns the namespace of these pods. Pod Security keeps pods there from whatever reaches beyond them.
func proofNamespace(rack string) Object {
	return Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{
		"name":   ownership.ProofNamespace,
		"labels": Object{ownership.TagRack: rack, "pod-security.kubernetes.io/enforce": "restricted"},
	}}
}
