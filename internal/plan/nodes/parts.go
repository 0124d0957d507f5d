package nodes

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// parts lists the fields below spec that a CRD validates independently: no rule on a field above one reads it. The API
// server therefore accepts a manifest if it accepts each of these fields, and has accepted the rest of the manifest
// before, in another manifest. New pools usually differ from known ones in these fields only, and checking a field
// takes a fraction of the time for a manifest.
var parts = map[string][][]string{
	"NodePool": {
		{"template", "metadata", "labels"},
		{"template", "spec", "requirements"},
		{"template", "spec", "taints"},
		{"template", "spec", "nodeClassRef", "name"},
		{"disruption"},
	},
	"EC2NodeClass": {{"tags"}, {"blockDeviceMappings"}},
}

// Indices in parts of a NodePool.
const (
	partLabels = iota
	partRequirements
)

// pieces is a manifest's spec in its independent parts. A part that the manifest does not have has the value nil and no
// hash.
type pieces struct {
	values []any
	parts  []hash
	rest   hash
	// whole identifies everything that the check of the manifest depends on.
	whole hash
}

func (d *draft) pieces() pieces {
	var p pieces
	rest, all := d.varying(), []any{d.api.Version, d.kind}
	for i, path := range parts[d.kind] {
		var value any
		var key hash
		if rest, value = cut(rest, path); value != nil {
			key = hashOf(d.api.Version, d.kind, i, value)
		}
		p.values, p.parts, all = append(p.values, value), append(p.parts, key), append(all, key)
	}
	p.rest = hashOf(d.api.Version, d.kind, rest)
	p.whole = hashOf(append(all, p.rest, d.guessed, d.expressions)...)
	return p
}

// cut returns the fields with a placeholder instead of the value at a path, and the value, or nil if there is none.
func cut(fields map[string]any, path []string) (rest map[string]any, value any) {
	name := path[0]
	if fields[name] == nil {
		return fields, nil
	}
	rest = maps.Clone(fields)
	if len(path) == 1 {
		rest[name] = true
		return rest, fields[name]
	}
	if within := inner(fields, name); within != nil {
		rest[name], value = cut(within, path[1:])
	}
	return rest, value
}

// validate returns what the check of the manifest's CRD returns.
func (d *draft) validate(definition crd, p pieces) (unknown []string, refused, broken field.ErrorList) {
	if definition.accepts(p) {
		return nil, nil, nil
	}
	unknown, refused, broken = definition.check(d.object)
	if len(unknown)+len(refused)+len(broken) == 0 {
		good.add(p.rest)
		for i, part := range p.parts {
			if p.values[i] != nil {
				good.add(part)
			}
		}
	}
	return unknown, refused, broken
}

// accepts reports whether the manifest is certainly valid, because its rest was valid before and its parts are valid.
// If not, the whole manifest must be checked.
func (c crd) accepts(p pieces) bool {
	if !good.has(p.rest) {
		return false
	}
	for i, part := range p.parts {
		if p.values[i] == nil || good.has(part) {
			continue
		}
		if unknown, refused, broken := c.parts[i].check(p.values[i]); len(unknown)+len(refused)+len(broken) > 0 {
			return false
		}
		good.add(part)
	}
	return true
}
