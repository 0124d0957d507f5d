package autoscaler

import (
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// contest returns the name of the record of what others revert on a Cluster Autoscaler.
func contest(live deployment) string { return "autoscaler/" + live.key() }

// setting describes what Sawhorse sets: the replicas and, if there are any, the targets and the node placement. Other
// arguments are the owner's, and changes to them are no contest.
func (d deployment) setting() string {
	if d.replicas() == 0 {
		return "0 replicas"
	}
	return fmt.Sprintf("%d replica(s) on system nodes with --nodes=%s", d.replicas(), strings.Join(d.line().values("nodes"), " --nodes="))
}

// contested warns of a Cluster Autoscaler whose settings others revert, and names who does it.
func (r *run) contested(live, wanted deployment, ruling outcome.Ruling) {
	path := []string{"spec", "template", "spec", "nodeSelector", ownership.LabelSystemNode}
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
