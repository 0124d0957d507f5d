package nodes

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// farExponent matches a quantity with a large exponent, which Kubernetes and Karpenter take minutes to compute.
var farExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// quantities checks that Karpenter can read the quantities. The CRD checks their characters only. Karpenter cannot read
// any NodePool if one has an invalid limit, and it panics on an invalid quantity for the kubelet.
func (d *draft) quantities() (found findings) {
	for _, path := range [][]string{
		{"limits"}, {"kubelet", "systemReserved"}, {"kubelet", "kubeReserved"}, {"kubelet", "evictionHard"}, {"kubelet", "evictionSoft"},
	} {
		quantities := inner(d.spec(), path...)
		for _, name := range slices.Sorted(maps.Keys(quantities)) {
			text, is := quantities[name].(string)
			if !is || readableQuantity(text) || strings.HasSuffix(text, "%") {
				continue
			}
			found.refuse(d.blame(append(slices.Clone(path), name)...),
				"is %q, which is no quantity that Karpenter can read; write, for example, %s", text, cmp.Or(examples[name], `"100Mi"`))
		}
	}
	return found
}

func readableQuantity(text string) bool {
	if farExponent.MatchString(text) {
		return false
	}
	_, err := resource.ParseQuantity(text)
	return err == nil
}
