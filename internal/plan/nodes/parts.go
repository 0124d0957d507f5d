package nodes

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// hash identifies something that was checked.
type hash = [sha256.Size]byte

// good has the hashes of manifests, and of parts of manifests, that passed the checks. The racks of a batch, and the
// passes of a rack, have most of them in common.
var good = lru.New(4096)

func isGood(key hash) bool {
	_, known := good.Get(key)
	return known
}

func hashOf(data ...any) hash { return canonical.Hash(data) }

// varying returns the spec without values that are always valid: those that Sawhorse derives from the names of rack and
// cluster, and limits that come from integer parameters. Without them, most racks have the same manifests.
func (d *draft) varying() map[string]any {
	spec := maps.Clone(inner(d.object, "spec"))
	for _, own := range []string{"role", "subnetSelectorTerms", "securityGroupSelectorTerms"} {
		delete(spec, own)
	}
	if tags := inner(spec, "tags"); tags != nil {
		tags = maps.Clone(tags)
		delete(tags, ownership.TagName)
		delete(tags, ownership.TagRackOfNode)
		spec["tags"] = tags
	}
	for _, resource := range []string{"cpu", "memory"} {
		if _, ofParameter := d.origins[place([]string{"limits", resource})]; ofParameter {
			limits := maps.Clone(inner(spec, "limits"))
			limits[resource] = "1"
			spec["limits"] = limits
		}
	}
	return spec
}

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
	rest := d.varying()
	for i, path := range parts[d.kind] {
		var value any
		var key hash
		if rest, value = cut(rest, path); value != nil {
			key = hashOf(d.api.Version, d.kind, i, value)
		}
		p.values, p.parts = append(p.values, value), append(p.parts, key)
	}
	p.rest = hashOf(d.api.Version, d.kind, rest)
	whole := slices.Clone(p.rest[:])
	for _, key := range p.parts {
		whole = append(whole, key[:]...)
	}
	p.whole = sha256.Sum256(strconv.AppendBool(strconv.AppendBool(whole, d.guessed), d.expressions))
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
		good.Add(p.rest, nil)
		for i, part := range p.parts {
			if p.values[i] != nil {
				good.Add(part, nil)
			}
		}
	}
	return unknown, refused, broken
}

// accepts reports whether the manifest is certainly valid, because its rest was valid before and its parts are valid.
// If not, the whole manifest must be checked.
func (c crd) accepts(p pieces) bool {
	if !isGood(p.rest) {
		return false
	}
	for i, part := range p.parts {
		if p.values[i] == nil || isGood(part) {
			continue
		}
		if unknown, refused, broken := c.parts[i].check(p.values[i]); len(unknown)+len(refused)+len(broken) > 0 {
			return false
		}
		good.Add(part, nil)
	}
	return true
}
