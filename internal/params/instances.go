package params

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// instanceTypes is a line for each EC2 instance family that Karpenter 1.10 knows, with its sizes. A test compares it with
// Karpenter's module, and writes it with -update-instances.
//
//go:embed instance_types.txt
var instanceTypes string

// instanceSizes are the sizes of each known family.
var instanceSizes = func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(instanceTypes) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all
}()

// graviton matches the names of EC2's ARM families: a g among the letters behind the generation (m7g, c6gn, im4gn), or the
// first of them, a1.
var graviton = regexp.MustCompile(`^(a1|[a-z]+[0-9]+[a-z-]*g[a-z0-9-]*)$`)

// ArchOf is the architecture of an instance type, or of a family, by its name: what EC2 says is not asked. A name that is
// not known counts as it is spelled.
func ArchOf(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	if graviton.MatchString(family) {
		return "arm64"
	}
	return "amd64"
}

// KnownType tells whether Karpenter 1.10 knows an instance type.
func KnownType(instanceType string) bool {
	family, size, _ := strings.Cut(instanceType, ".")
	return slices.Contains(instanceSizes[family], size)
}

// Families are the names of the EC2 instance families that Karpenter 1.10 knows, sorted.
var Families = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(instanceSizes)) })

// SizesOf are the sizes of a known EC2 instance family, nil for others.
func SizesOf(family string) []string { return instanceSizes[family] }

// Sizes are the sizes that any family has, sorted.
var Sizes = sync.OnceValue(func() []string {
	all := slices.Concat(slices.Collect(maps.Values(instanceSizes))...)
	slices.Sort(all)
	return slices.Compact(all)
})
