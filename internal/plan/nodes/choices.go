package nodes

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Keys of requirements. The first six follow from an instance type's name.
const (
	keyFamily     = "karpenter.k8s.aws/instance-family"
	keySize       = "karpenter.k8s.aws/instance-size"
	keyCategory   = "karpenter.k8s.aws/instance-category"
	keyGeneration = "karpenter.k8s.aws/instance-generation"
	keyType       = "node.kubernetes.io/instance-type"
	keyArch       = "kubernetes.io/arch"
	keyCapacity   = "karpenter.sh/capacity-type"
	keyOS         = "kubernetes.io/os"
	keyTenancy    = "karpenter.k8s.aws/instance-tenancy"
	keyZone       = "topology.kubernetes.io/zone"
)

// requirement is a requirement of a NodePool, or a label of its nodes, which is a requirement too to Karpenter.
type requirement struct {
	karpenter.NodeSelectorRequirementWithMinValues
	// allows is the requirement as Karpenter evaluates it; nil if Karpenter refuses it.
	allows *scheduling.Requirement
	// label means that it is a label of the pool's nodes.
	label bool
	from  origin
}

func newRequirement(given karpenter.NodeSelectorRequirementWithMinValues, from origin) requirement {
	return requirement{NodeSelectorRequirementWithMinValues: given, allows: allowedBy(given), from: from}
}

// oneOf returns a requirement with the operator In.
func oneOf(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
	return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// allowedBy returns a requirement as Karpenter evaluates it; nil if its operator is not known or lacks its values, with
// which Karpenter's code panics.
func allowedBy(given karpenter.NodeSelectorRequirementWithMinValues) *scheduling.Requirement {
	switch given.Operator {
	case karpenter.NodeSelectorOpGte, karpenter.NodeSelectorOpLte, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(given.Values) != 1 {
			return nil
		}
		if _, err := strconv.Atoi(given.Values[0]); err != nil {
			return nil
		}
	case corev1.NodeSelectorOpIn:
		if len(given.Values) == 0 {
			return nil
		}
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	default:
		return nil
	}
	return scheduling.NewRequirement(given.Key, given.Operator, given.Values...)
}

// typeKeys are the keys whose value follows from an instance type's name.
var typeKeys = []string{keyFamily, keySize, keyCategory, keyGeneration, keyType, keyArch}

// text returns a text that is the same for two requirements with the same key, operator and values.
func (r requirement) text() string {
	return strings.Join(append([]string{r.Key, string(r.Operator)}, slices.Sorted(slices.Values(r.Values))...), "\x00")
}

// unknown reports whether the requirement asks for a value that no known instance type has.
func (r requirement) unknown() bool {
	return r.Operator == "In" && slices.Contains(typeKeys, r.Key) && slices.ContainsFunc(r.Values, func(value string) bool {
		_, known := columns()[r.Key].index[value]
		return !known
	})
}

// requirements returns the requirements of a finished draft, as readRequirements does. Callers must not change them.
func (d *draft) requirements() []requirement {
	all := d.demands()
	if labels := slices.IndexFunc(all, func(r requirement) bool { return r.label }); labels >= 0 {
		all = all[:labels]
	}
	return all
}

// readRequirements returns the requirements that the draft has now, without an architecture that is only guessed.
func (d *draft) readRequirements() []requirement {
	var given []karpenter.NodeSelectorRequirementWithMinValues
	// The CRD refuses what cannot be decoded. The rest is decoded all the same.
	_ = utiljson.Unmarshal(canonical.JSON(inner(d.spec(), "template", "spec")["requirements"]), &given)
	var all []requirement
	for i, one := range given {
		if one.Key != keyArch || !d.guessed {
			all = append(all, newRequirement(one, d.blame("template", "spec", "requirements", strconv.Itoa(i))))
		}
	}
	return all
}

// generation extracts an instance family's category and generation as Karpenter does: c6i has category c and generation
// 6.
var generation = regexp.MustCompile(`^([a-z]+)(-[0-9]+tb)?([0-9]+)`)

// column has the values of the known instance types for one requirement key: the distinct values, their indexes, and for
// each type the index of its value. So a requirement is compared with each value once, and not with each type.
type column struct {
	values []string
	index  map[string]int
	of     []int
}

func (c *column) add(value string) {
	i, known := c.index[value]
	if !known {
		i = len(c.values)
		c.index[value], c.values = i, append(c.values, value)
	}
	c.of = append(c.of, i)
}

// at returns the value of the type with this index.
func (c *column) at(i int) string { return c.values[c.of[i]] }

// columns has what follows from the names of the known instance types, by requirement key.
var columns = sync.OnceValue(func() map[string]*column {
	all := map[string]*column{}
	for _, key := range typeKeys {
		all[key] = &column{index: map[string]int{}}
	}
	for _, family := range params.Families() {
		parts := generation.FindStringSubmatch(family)
		if parts == nil {
			parts = make([]string, 4)
		}
		for _, size := range params.SizesOf(family) {
			for key, value := range map[string]string{
				keyFamily: family, keySize: size, keyType: family + "." + size, keyArch: params.ArchOf(family),
				keyCategory: parts[1], keyGeneration: parts[3],
			} {
				all[key].add(value)
			}
		}
	}
	return all
})

// choices counts the known instance types that meet the requirements about their name. known is false if another
// requirement may leave fewer, like one about the number of CPUs.
func choices(requirements []requirement) (count int, known bool) {
	for _, is := range remaining(requirements) {
		if is {
			count++
		}
	}
	return count, !slices.ContainsFunc(requirements, func(r requirement) bool {
		return strings.HasPrefix(r.Key, "karpenter.k8s.aws/") && !slices.Contains(typeKeys, r.Key)
	})
}

// remaining reports for each known instance type whether it meets the requirements that are about its name.
func remaining(requirements []requirement) []bool {
	all := slices.Repeat([]bool{true}, len(columns()[keyType].of))
	for _, r := range requirements {
		c, is := columns()[r.Key]
		if !is || r.allows == nil { // it is refused
			continue
		}
		met := make([]bool, len(c.values))
		for i, value := range c.values {
			met[i] = r.allows.Has(value)
		}
		for i, index := range c.of {
			all[i] = all[i] && met[index]
		}
	}
	return all
}
