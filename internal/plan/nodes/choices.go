package nodes

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

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

type requirement struct {
	key, operator string
	values        []string
	// atLeast means that the requirement has minValues, the least number of values to choose from.
	atLeast bool
	// label means that it is a label of the pool's nodes.
	label bool
	from  origin
}

// typeKeys are the keys whose value follows from an instance type's name.
var typeKeys = []string{keyFamily, keySize, keyCategory, keyGeneration, keyType, keyArch}

// same reports whether two requirements have the same key, operator and values.
func (r requirement) same(other requirement) bool {
	sorted := func(values []string) []string { return slices.Sorted(slices.Values(values)) }
	return r.key == other.key && r.operator == other.operator && slices.Equal(sorted(r.values), sorted(other.values))
}

// unknown reports whether the requirement asks for a value that no known instance type has.
func (r requirement) unknown() bool {
	return r.operator == "In" && slices.Contains(typeKeys, r.key) && slices.ContainsFunc(r.values, func(value string) bool {
		_, known := columns()[r.key].index[value]
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
	var all []requirement
	for i, each := range objects(inner(d.spec(), "template", "spec")["requirements"]) {
		r := requirement{from: d.blame("template", "spec", "requirements", strconv.Itoa(i))}
		r.key, _ = each["key"].(string)
		r.operator, _ = each["operator"].(string)
		r.atLeast = each["minValues"] != nil
		values, _ := each["values"].([]any)
		for _, value := range values {
			text, _ := value.(string)
			r.values = append(r.values, text)
		}
		if r.key != keyArch || !d.guessed {
			all = append(all, r)
		}
	}
	return all
}

// meets reports whether a value meets the requirement, according to Karpenter's semantics of the operators.
func (r requirement) meets(value string) bool {
	switch r.operator {
	case "In":
		return slices.Contains(r.values, value)
	case "NotIn":
		return !slices.Contains(r.values, value)
	case "DoesNotExist":
		return false
	case "Gt", "Gte", "Lt", "Lte":
		if len(r.values) != 1 {
			return false
		}
		has, err := strconv.Atoi(value)
		bound, wrong := strconv.Atoi(r.values[0])
		return err == nil && wrong == nil && map[string]bool{"Gt": has > bound, "Gte": has >= bound, "Lt": has < bound,
			"Lte": has <= bound}[r.operator]
	default:
		return true // Exists
	}
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
	for _, is := range left(requirements) {
		if is {
			count++
		}
	}
	return count, !slices.ContainsFunc(requirements, func(r requirement) bool {
		return strings.HasPrefix(r.key, "karpenter.k8s.aws/") && !slices.Contains(typeKeys, r.key)
	})
}

// left reports for each known instance type whether it meets the requirements that are about its name.
func left(requirements []requirement) []bool {
	all := slices.Repeat([]bool{true}, len(columns()[keyType].of))
	for _, r := range requirements {
		c, is := columns()[r.key]
		if !is {
			continue
		}
		met := make([]bool, len(c.values))
		for i, value := range c.values {
			met[i] = r.meets(value)
		}
		for i, index := range c.of {
			all[i] = all[i] && met[index]
		}
	}
	return all
}
