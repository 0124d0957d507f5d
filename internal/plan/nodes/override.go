package nodes

import (
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// overridden returns the origin of a path in karpenter_config.
func overridden(path ...string) origin {
	return origin{params.ParamOverride, params.Join("", path...)}
}

// overrideNodePool applies karpenter_config's nodePool to the defaults. Labels and the keys of disruption are merged;
// every other field replaces the default completely.
func (p pool) overrideNodePool(d *draft) {
	for _, section := range []struct{ path, merged []string }{
		{nil, []string{"template", "disruption"}},
		{[]string{"template"}, []string{"metadata", "spec"}},
		{[]string{"template", "metadata"}, []string{"labels"}},
		{[]string{"template", "metadata", "labels"}, nil},
		{[]string{"template", "spec"}, nil},
		{[]string{"disruption"}, nil},
	} {
		replace(d, "nodePool", p.override.NodePool, section.path, section.merged)
	}
}

// overrideNodeClass applies ec2NodeClass in the same way. Tags are merged.
func (p pool) overrideNodeClass(d *draft) {
	replace(d, "ec2NodeClass", p.override.EC2NodeClass, nil, []string{"tags"})
	replace(d, "ec2NodeClass", p.override.EC2NodeClass, []string{"tags"}, nil)
}

// inner returns the object at a path, or nil if there is none.
func inner(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// objects returns the elements of a list of objects, nil for one that is no object.
func objects(list any) []map[string]any {
	entries, _ := list.([]any)
	all := make([]map[string]any, len(entries))
	for i, entry := range entries {
		all[i], _ = entry.(map[string]any)
	}
	return all
}

// replace sets each field of the section at a path in place of its default, except the fields that are merged separately.
func replace(d *draft, top string, override map[string]any, path, merged []string) {
	fields := inner(override, path...)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(merged, key) {
			continue
		}
		at := append(slices.Clone(path), key)
		d.override(overridden(append([]string{top}, at...)...), fields[key], at...)
	}
}
