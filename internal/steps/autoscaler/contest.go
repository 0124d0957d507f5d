package autoscaler

import (
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// contest is under which it is kept what others set back on a Cluster Autoscaler.
func contest(live deployment) string { return "autoscaler/" + live.key() }

// setting is what Sawhorse sets on it, as a text: replicas, and where there are some, its targets and its pin. Other arguments are its
// owner's, and their changes are no contest.
func (d deployment) setting() string {
	if d.replicas() == 0 {
		return "0 replicas"
	}
	return fmt.Sprintf("%d replica(s) on system nodes with --nodes=%s", d.replicas(), strings.Join(d.line().values("nodes"), " --nodes="))
}

// contested warns of a Cluster Autoscaler that others set back, and names who did that.
func (r *run) contested(live, wanted deployment, ruling steps.Ruling) {
	path := []string{"spec", "template", "spec", "nodeSelector", names.LabelSystemNode}
	switch name, _ := live.container()["name"].(string); {
	case live.replicas() != wanted.replicas():
		path = []string{"spec", "replicas"}
	case !live.line().equal(wanted.line()):
		path = []string{"spec", "template", "spec", "containers", fmt.Sprintf(`k:{"name":%q}`, name), live.targetField()}
	}
	r.progress.Contest("cluster_autoscaler", ruling, k8s.Subject(live.Unstructured), k8s.SetBy(live.Unstructured, path...), wanted.setting())
}

// targetField is the field of the container in which the target flags stand.
func (d deployment) targetField() string {
	if (line{Command: d.line().Command}).targets() {
		return "command"
	}
	return "args"
}
