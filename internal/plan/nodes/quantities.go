package nodes

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// farExponent is that of a quantity which Kubernetes, and so Karpenter, computes digit by digit, for minutes.
var farExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// quantities asks whether Karpenter can read quantities: the definition knows their letters only. With a limit that it cannot read it
// reads no NodePool any more, and at one for the kubelet it panics.
func (d *draft) quantities() []params.Problem {
	kubelet := inner(d.spec(), "kubelet")
	var problems []params.Problem
	for _, at := range []struct {
		in   map[string]any
		path []string
	}{
		{inner(d.spec(), "limits"), []string{"spec", "limits"}},
		{inner(kubelet, "systemReserved"), []string{"spec", "kubelet", "systemReserved"}},
		{inner(kubelet, "kubeReserved"), []string{"spec", "kubelet", "kubeReserved"}},
		{inner(kubelet, "evictionHard"), []string{"spec", "kubelet", "evictionHard"}},
		{inner(kubelet, "evictionSoft"), []string{"spec", "kubelet", "evictionSoft"}},
	} {
		for _, name := range slices.Sorted(maps.Keys(at.in)) {
			text, is := at.in[name].(string)
			if !is || readableQuantity(text) || strings.HasSuffix(text, "%") {
				continue
			}
			problems = append(problems, d.blame(append(slices.Clone(at.path), name)).problem(
				"is %q, which is no quantity that Karpenter can read; write, for example, %s", text, cmp.Or(examples[name], `"100Mi"`)))
		}
	}
	return problems
}

func readableQuantity(text string) bool {
	if farExponent.MatchString(text) {
		return false
	}
	_, err := resource.ParseQuantity(text)
	return err == nil
}
