package autoscaler

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// deployment is Cluster Autoscaler's Deployment, as read or as wanted.
type deployment struct{ *unstructured.Unstructured }

func (d deployment) copy() deployment { return deployment{d.DeepCopy()} }

func (d deployment) key() string { return k8s.Key(d.Unstructured) }

// marked reports whether Sawhorse has changed the Deployment for this rack and not restored it yet.
func (d deployment) marked(rack string) bool {
	return d.GetAnnotations()[ownership.AnnotationAutoscaler] == rack
}

func (d deployment) replicas() int64 {
	replicas, ok, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	if !ok {
		return 1 // Kubernetes's default
	}
	return replicas
}

func (d deployment) scale(replicas int64) { d.set(replicas, "spec", "replicas") }

func (d deployment) line() line { return lineOf(d.container()) }

func lineOf(container map[string]any) line {
	command, _, _ := unstructured.NestedStringSlice(container, "command")
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	return line{command, args}
}

func (d deployment) setLine(l line) {
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	container := containers[d.index()].(map[string]any)
	for field, list := range map[string][]string{"command": l.Command, "args": l.Args} {
		delete(container, field)
		if len(list) > 0 {
			_ = unstructured.SetNestedStringSlice(container, slices.Clone(list), field)
		}
	}
	d.set(containers, "spec", "template", "spec", "containers")
}

// pin returns the value of the system label in the pods' nodeSelector; nil if there is none.
func (d deployment) pin() *string {
	if value, ok := k8s.NodeSelector(d.Unstructured)[ownership.LabelSystemNode]; ok {
		return &value
	}
	return nil
}

func (d deployment) setPin(value *string) { k8s.SetSystemNode(d.Unstructured, value) }

func (d deployment) container() map[string]any {
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	return containers[d.index()].(map[string]any)
}

// index returns the container that runs Cluster Autoscaler, found by its image. In a Deployment whose image has another name
// since it was handed over, it is the container with target flags, or else the first.
func (d deployment) index() int {
	if at := k8s.AutoscalerContainer(d.Unstructured); at >= 0 {
		return at
	}
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	return max(0, slices.IndexFunc(containers, func(each any) bool {
		container, _ := each.(map[string]any)
		return lineOf(container).targets()
	}))
}

// set writes a field. It fails only if a parent is not an object, which the API server's schema rules out.
func (d deployment) set(value any, path ...string) {
	_ = unstructured.SetNestedField(d.Object, value, path...)
}

// contest returns the name of the record of what others revert on a Cluster Autoscaler.
func contest(live deployment) string { return "autoscaler/" + live.key() }

// setting describes what Sawhorse sets: the replicas and, if there are any, the targets and the node placement. Other
// arguments are the owner's, and changes to them are no contest.
func (d deployment) setting() string {
	if d.replicas() == 0 {
		return "0 replicas"
	}
	where := ""
	if pin := d.pin(); pin != nil && *pin == "true" {
		where = " on system nodes"
	}
	return fmt.Sprintf("%d replica(s)%s with --nodes=%s", d.replicas(), where, strings.Join(d.line().values("nodes"), " --nodes="))
}

// contested warns of a Cluster Autoscaler whose settings others revert, and names who does it.
func (r *run) contested(live, wanted deployment, ruling outcome.Ruling) {
	path := k8s.SystemNodePath
	switch name, _ := live.container()["name"].(string); {
	case live.replicas() != wanted.replicas():
		path = []string{"spec", "replicas"}
	case !live.line().equal(wanted.line()):
		path = []string{"spec", "template", "spec", "containers", fmt.Sprintf(`k:{"name":%q}`, name), live.targetField()}
	}
	r.progress.Contest("cluster_autoscaler", ruling, k8s.Subject(live.Unstructured), k8s.SetBy(live.Unstructured, path...), wanted.setting())
}

// targetField returns the field of the container that holds the target flags.
func (d deployment) targetField() string {
	if (line{Command: d.line().Command}).targets() {
		return "command"
	}
	return "args"
}
