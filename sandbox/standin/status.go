package standin

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// settling is the delay between a write and the status that a controller would set. It is long enough that the writer
// has to read the object again, as in a real cluster.
const settling = time.Second

// statuses has the final status that controllers set, by kind.
var statuses = map[string]func(*unstructured.Unstructured) map[string]any{
	"Deployment": rolledOut,
	"CustomResourceDefinition": func(crd *unstructured.Unstructured) map[string]any {
		names, _, _ := unstructured.NestedMap(crd.Object, "spec", "names")
		return map[string]any{"acceptedNames": names, "conditions": conditions(crd, "NamesAccepted", "Established")}
	},
	"NodePool":     ready,
	"EC2NodeClass": ready,
}

func ready(object *unstructured.Unstructured) map[string]any {
	return map[string]any{"conditions": conditions(object, "Ready")}
}

func rolledOut(deployment *unstructured.Unstructured) map[string]any {
	replicas, set, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !set {
		replicas = 1
	}
	return map[string]any{
		"observedGeneration": deployment.GetGeneration(), "conditions": conditions(deployment, "Available", "Progressing"),
		"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
	}
}

func conditions(object *unstructured.Unstructured, kinds ...string) []any {
	var all []any
	for _, each := range kinds {
		all = append(all, map[string]any{
			"type": each, "status": "True", "reason": "StandIn", "message": "", "observedGeneration": object.GetGeneration(),
			"lastTransitionTime": object.GetCreationTimestamp().UTC().Format(time.RFC3339),
		})
	}
	return all
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Established" })
}

// unsettled is an object whose status is due.
type unsettled struct {
	kind kind
	key  types.NamespacedName
	at   time.Time
}

// settle sets every status that is due. Every reader sees the same state, and no goroutine is needed.
// The caller holds c.mu.
func (c *cluster) settle() {
	c.due = slices.DeleteFunc(c.due, func(u unsettled) bool {
		if c.now().Before(u.at) {
			return false
		}
		if live := c.objects[u.kind.GroupResource()][u.key]; live != nil {
			settled := live.DeepCopy()
			if pool := poolOf(u.kind, live); pool != "" {
				c.launch(settled, pool)
			} else {
				settled.Object["status"] = statuses[u.kind.name](live)
			}
			c.put(u.kind, settled)
		}
		return true
	})
}

// labelPool is Karpenter's label of the nodes of a NodePool.
const labelPool = "karpenter.sh/nodepool"

// poolOf returns the NodePool that a pod asks for a node of.
func poolOf(k kind, object *unstructured.Unstructured) string {
	if k.name != podKind.name {
		return ""
	}
	pool, _, _ := unstructured.NestedString(object.Object, "spec", "nodeSelector", labelPool)
	return pool
}

func nodeOf(pool string) string { return "node-of-" + pool }

// launch gives a pod a node of the pool that it asks for, with a network. The node goes with the pod. The caller holds c.mu.
func (c *cluster) launch(pod *unstructured.Unstructured, pool string) {
	node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node"}}
	node.SetName(nodeOf(pool))
	node.SetLabels(map[string]string{labelPool: pool, "karpenter.sh/registered": "true"})
	c.own(nodeKind, nil, node)
	node.Object["status"] = ready(node)
	c.put(nodeKind, node)
	_ = unstructured.SetNestedField(pod.Object, node.GetName(), "spec", "nodeName") // it has a spec with the selector
	pod.Object["status"] = map[string]any{"phase": "Running",
		"conditions": conditions(pod, string(corev1.PodReadyToStartContainers), string(corev1.PodReady))}
}
