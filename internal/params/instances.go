package params

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// instanceTypes has one line for each EC2 instance family that Karpenter 1.10 knows, followed by the family's sizes. A
// test compares it with Karpenter's module, and writes it with -update.
//
//go:embed instance_types.txt
var instanceTypes string

var instanceSizes = func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(instanceTypes) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all
}()

// graviton matches the names of EC2's ARM families: those with a g among the letters after the generation (m7g, c6gn,
// im4gn), and a1, the first ARM family.
var graviton = regexp.MustCompile(`^(a1|[a-z]+[0-9]+[a-z-]*g[a-z0-9-]*)$`)

// ArchOf returns the architecture of an instance type or family. It is derived from the name alone, also for unknown
// names; EC2 is not asked.
func ArchOf(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	if graviton.MatchString(family) {
		return "arm64"
	}
	return "amd64"
}

// KnownType reports whether Karpenter 1.10 knows an instance type.
func KnownType(instanceType string) bool {
	family, size, _ := strings.Cut(instanceType, ".")
	return slices.Contains(instanceSizes[family], size)
}

// Families returns the sorted names of the EC2 instance families that Karpenter 1.10 knows.
var Families = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(instanceSizes)) })

// SizesOf returns the sizes of an EC2 instance family, or nil for an unknown one.
func SizesOf(family string) []string { return instanceSizes[family] }

// Sizes returns the sorted sizes of all families.
var Sizes = sync.OnceValue(func() []string {
	all := slices.Concat(slices.Collect(maps.Values(instanceSizes))...)
	slices.Sort(all)
	return slices.Compact(all)
})
