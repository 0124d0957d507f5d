package nodes

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// layer is a config, which is shaped like the specs of a NodePool and an EC2NodeClass, and where it stands: in a parameter, and
// for an entry of additional_karpenter_nodepools_config at a path in it.
type layer struct {
	parameter, at string
	params.Override
}

// from returns the origin of a path in the config.
func (l layer) from(path ...string) origin {
	return origin{parameter: l.parameter, path: params.Join(l.at, path...), config: true}
}

// nodePool lays the config's nodePool over what is there. Labels and the keys of disruption are merged; every other field
// replaces what is there completely.
func (l layer) nodePool(d *draft) {
	for _, section := range []struct{ path, merged []string }{
		{nil, []string{"template", "disruption"}},
		{[]string{"template"}, []string{"metadata", "spec"}},
		{[]string{"template", "metadata"}, []string{"labels"}},
		{[]string{"template", "metadata", "labels"}, nil},
		{[]string{"template", "spec"}, nil},
		{[]string{"disruption"}, nil},
	} {
		l.replace(d, "nodePool", l.NodePool, section.path, section.merged)
	}
}

// nodeClass lays ec2NodeClass over what is there in the same way. Tags are merged.
func (l layer) nodeClass(d *draft) {
	l.replace(d, "ec2NodeClass", l.EC2NodeClass, nil, []string{"tags"})
	l.replace(d, "ec2NodeClass", l.EC2NodeClass, []string{"tags"}, nil)
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

// replace sets each field of the section at a path in place of what is there, except the fields that are merged separately.
func (l layer) replace(d *draft, top string, config map[string]any, path, merged []string) {
	fields := inner(config, path...)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(merged, key) {
			continue
		}
		at := append(slices.Clone(path), key)
		// A copy, because what comes over the config is set in it, and other pools have the same config.
		d.override(l.from(append([]string{top}, at...)...), runtime.DeepCopyJSONValue(fields[key]), at...)
	}
}
