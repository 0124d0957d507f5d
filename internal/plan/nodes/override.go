package nodes

import (
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// overridden returns the origin of a path in karpenter_config.
func overridden(path ...string) origin {
	at := ""
	for _, part := range path {
		at = params.Join(at, part)
	}
	return origin{overrideParameter, at}
}

// overrideNodePool applies karpenter_config's nodePool to the defaults. Labels and the keys of disruption are merged;
// every other field replaces the default completely.
func (p pool) overrideNodePool(d *draft) {
	template, _ := p.override.NodePool["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	for _, section := range []struct {
		from   map[string]any
		path   []string
		merged []string
	}{
		{p.override.NodePool, nil, []string{"template", "disruption"}},
		{template, []string{"template"}, []string{"metadata", "spec"}},
		{metadata, []string{"template", "metadata"}, []string{"labels"}},
		{inner(metadata, "labels"), []string{"template", "metadata", "labels"}, nil},
		{spec, []string{"template", "spec"}, nil},
		{inner(p.override.NodePool, "disruption"), []string{"disruption"}, nil},
	} {
		replace(d, "nodePool", section.from, section.path, section.merged)
	}
}

// overrideNodeClass applies ec2NodeClass in the same way. Tags are merged.
func (p pool) overrideNodeClass(d *draft) {
	replace(d, "ec2NodeClass", p.override.EC2NodeClass, nil, []string{"tags"})
	replace(d, "ec2NodeClass", inner(p.override.EC2NodeClass, "tags"), []string{"tags"}, nil)
}

func inner(object map[string]any, key string) map[string]any {
	found, _ := object[key].(map[string]any)
	return found
}

// replace sets each field of a section in place of its default, except the fields that are merged separately.
func replace(d *draft, top string, fields map[string]any, path, merged []string) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(merged, key) {
			continue
		}
		at := append(slices.Clone(path), key)
		d.override(overridden(append([]string{top}, at...)...), fields[key], at...)
	}
}
