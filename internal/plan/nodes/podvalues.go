package nodes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// The API server's checks of the chart's values are in a library (pkg/apis/core/validation of Kubernetes) that has all of the API
// server with it. These are those of the values that are often wrong.

// podValues collects problems with values of the chart that are parts of a Deployment.
type podValues struct{ findings }

// wrong adds a problem with the value at a path.
func (v *podValues) wrong(at string, value any, allowed, instead string) {
	v.refuse(origin{parameter: params.ParamController, path: at}, "is %s; %s; %s", params.Shown(value), allowed, instead)
}

// word refuses a text that is none of the words.
func (v *podValues) word(at, text string, words []string, besides string) {
	if !slices.Contains(words, text) {
		last := len(words) - 1
		v.wrong(at, text, fmt.Sprintf("allowed is %s or %s%s", strings.Join(words[:last], ", "), words[last], besides),
			params.DidYouMean(text, words, "write one of these"))
	}
}

// label refuses what is no key of a label.
func (v *podValues) label(at, key string) {
	if len(validation.IsQualifiedName(key)) > 0 {
		v.wrong(at, key, "allowed is the key of a label", "write, for example, \"topology.kubernetes.io/zone\"")
	}
}

func (v *podValues) strategy(kind string) {
	if kind != "" {
		v.word("strategy.type", kind, []string{"Recreate", "RollingUpdate"}, "")
	}
}

// tolerations checks what ValidateTolerations does. written has null for elements that are refused for that.
func (v *podValues) tolerations(all []corev1.Toleration, written []any) {
	for i, t := range all {
		at := fmt.Sprintf("tolerations[%d].", i)
		if written[i] == nil {
			continue
		}
		if t.Key != "" {
			v.label(at+"key", t.Key)
		}
		exists := t.Operator == corev1.TolerationOpExists
		if t.Operator != "" {
			v.word(at+"operator", string(t.Operator), []string{"Exists", "Equal"}, "")
		}
		if t.Key == "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) {
			v.wrong(at+"operator", t.Operator, "without a key allowed is Exists, which tolerates every taint", "write a key, or Exists")
		}
		switch {
		case exists && t.Value != "":
			v.wrong(at+"value", t.Value, "with Exists allowed is none", "leave it out")
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			v.wrong(at+"value", t.Value, "allowed is the value of a label", "write, for example, \"true\"")
		}
		if t.Effect != "" {
			v.word(at+"effect", string(t.Effect), []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, ", or none for all of them")
		}
		if t.TolerationSeconds != nil && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule ||
			t.Effect == corev1.TaintEffectPreferNoSchedule) {
			v.wrong(at+"effect", t.Effect, "with tolerationSeconds allowed is NoExecute", "write it, or leave tolerationSeconds out")
		}
	}
}

// spread checks what validateTopologySpreadConstraints requires.
func (v *podValues) spread(all []corev1.TopologySpreadConstraint, written []any) {
	for i, c := range all {
		at := fmt.Sprintf("topologySpreadConstraints[%d].", i)
		if written[i] == nil {
			continue
		}
		if c.MaxSkew < 1 {
			v.wrong(at+"maxSkew", c.MaxSkew, "allowed is a whole number from 1 on", "write, for example, 1")
		}
		v.label(at+"topologyKey", c.TopologyKey)
		v.word(at+"whenUnsatisfiable", string(c.WhenUnsatisfiable), []string{"DoNotSchedule", "ScheduleAnyway"}, "")
		if same := slices.IndexFunc(all[:i], func(other corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey != "" && other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable
		}); same >= 0 {
			v.refuse(origin{parameter: params.ParamController, path: at + "topologyKey"}, "is %q, as in topologySpreadConstraints[%d] with the "+
				"same whenUnsatisfiable; allowed is one of these; leave one out", c.TopologyKey, same)
		}
	}
}
