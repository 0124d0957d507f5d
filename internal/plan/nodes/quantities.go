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

// farExponent matches a quantity with a large exponent, which Kubernetes and Karpenter take minutes to compute.
var farExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// quantities checks that Karpenter can read the quantities. The CRD checks their characters only. Karpenter cannot read
// any NodePool if one has an invalid limit, and it panics on an invalid quantity for the kubelet.
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
		{inner(kubelet, "evictionMinimumReclaim"), []string{"spec", "kubelet", "evictionMinimumReclaim"}},
	} {
		list := at.path[len(at.path)-1]
		for _, name := range slices.Sorted(maps.Keys(at.in)) {
			text, is := at.in[name].(string)
			if !is || readableQuantity(text) || strings.HasPrefix(list, "eviction") && strings.HasSuffix(text, "%") ||
				strings.HasSuffix(list, "Reserved") && d.expressions {
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
