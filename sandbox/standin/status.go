package standin

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
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
	"Pod": func(pod *unstructured.Unstructured) map[string]any {
		return map[string]any{"phase": "Running", "conditions": conditions(pod, "PodScheduled", "PodReadyToStartContainers", "Ready")}
	},
	"NodePool":     ready,
	"EC2NodeClass": ready,
	"NodeOverlay":  ready,
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

// launch gives a pod that asks for a node of a NodePool a node of its own, as Karpenter does. It goes with the pod.
// The caller holds c.mu.
func (c *cluster) launch(pod *unstructured.Unstructured) {
	pool, asks, _ := unstructured.NestedString(pod.Object, "spec", "nodeSelector", labelPool)
	if !asks {
		return
	}
	name := nodeOf(pod)
	_ = unstructured.SetNestedField(pod.Object, name, "spec", "nodeName")
	node := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions(pod, "Ready")}}}
	node.SetGroupVersionKind(nodes.groupVersionKind())
	node.SetName(name)
	node.SetLabels(map[string]string{labelPool: pool, "karpenter.sh/registered": "true"})
	node.SetUID(uuid.NewUUID())
	node.SetCreationTimestamp(metav1.NewTime(c.now()))
	c.put(nodes, node)
}

const labelPool = "karpenter.sh/nodepool"

// nodeOf returns the name of the node that launch gives a pod.
func nodeOf(pod *unstructured.Unstructured) string { return pod.GetNamespace() + "-" + pod.GetName() }

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
			settled.Object["status"] = statuses[u.kind.name](live)
			if u.kind == pods {
				c.launch(settled)
			}
			c.put(u.kind, settled)
		}
		return true
	})
}
