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

// good has the hashes of what passed the checks: manifests, parts of manifests, and keys of parts. The racks of a batch,
// and the passes of a rack, have most of them in common.
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

// parts lists the fields below spec that a CRD validates independently: no rule on a field above one reads it.
// Karpenter's own check looks at each label, taint and requirement alone, but for duplicate taints (twice finds these). A
// manifest is therefore accepted if each of these fields is, and the rest of the manifest was before, in another
// manifest. New pools usually differ from known ones in these fields only, and checking a field takes a fraction of the
// time for a manifest.
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
	p := pieces{values: make([]any, len(parts[d.kind])), parts: make([]hash, len(parts[d.kind]))}
	rest := d.varying()
	partTrees[d.kind].cut(rest, p.values)
	for i, value := range p.values {
		if value != nil {
			p.parts[i] = hashOf(d.api.Version, d.kind, i, value)
		}
	}
	p.rest = hashOf(d.api.Version, d.kind, rest)
	whole := slices.Clone(p.rest[:])
	for _, key := range p.parts {
		whole = append(whole, key[:]...)
	}
	p.whole = sha256.Sum256(strconv.AppendBool(strconv.AppendBool(whole, d.guessed), d.expressions))
	return p
}

// partTree has the paths in the list parts by the name of a field: below it are further fields, or it is the part of an
// index.
type partTree struct {
	below map[string]*partTree
	part  int
}

var partTrees = map[string]*partTree{"NodePool": treeOf("NodePool"), "EC2NodeClass": treeOf("EC2NodeClass")}

func treeOf(kind string) *partTree {
	tree := &partTree{}
	for i, path := range parts[kind] {
		at := tree
		for _, name := range path {
			if at.below == nil {
				at.below = map[string]*partTree{}
			}
			if at.below[name] == nil {
				at.below[name] = &partTree{part: i}
			}
			at = at.below[name]
		}
	}
	return tree
}

// cut moves the parts out of the fields into values and leaves placeholders. It clones the objects below the fields that
// it changes.
func (t *partTree) cut(fields map[string]any, values []any) {
	for name, field := range t.below {
		value := fields[name]
		if value == nil {
			continue
		}
		if field.below == nil {
			fields[name], values[field.part] = true, value
		} else if within, is := value.(map[string]any); is {
			within = maps.Clone(within)
			field.cut(within, values)
			fields[name] = within
		}
	}
}

// validate returns what the check of the manifest's CRD returns. known means that the CRD and Karpenter have accepted the
// rest of the manifest before, in another manifest, and accept its parts.
func (d *draft) validate(definition crd, p pieces) (unknown []string, refused, broken field.ErrorList, known bool) {
	if d.accepted(definition, p) {
		return nil, nil, nil, true
	}
	unknown, refused, broken = definition.check(d.object)
	return unknown, refused, broken, false
}

// remember records that the CRD and Karpenter accept the manifest.
func (p pieces) remember() {
	good.Add(p.rest, nil)
	for i, part := range p.parts {
		if p.values[i] != nil {
			good.Add(part, nil)
		}
	}
}

// accepted reports whether the manifest is certainly valid. If not, the whole manifest must be checked.
func (d *draft) accepted(definition crd, p pieces) bool {
	if !isGood(p.rest) {
		return false
	}
	for i, value := range p.values {
		if value == nil || isGood(p.parts[i]) {
			continue
		}
		if !d.acceptedPart(definition.parts[i], i, value) {
			return false
		}
		good.Add(p.parts[i], nil)
	}
	return true
}

// acceptedPart checks a value for the part with an index, as check and read do for a manifest. If the rules read only the
// keys of a map, they are evaluated once for the same keys. They do not see a key whose value is null.
func (d *draft) acceptedPart(definition crd, i int, value any) bool {
	fields, isMap := value.(map[string]any)
	once := isMap && definition.readsKeys && !slices.Contains(slices.Collect(maps.Values(fields)), nil)
	var keys hash
	if once {
		keys = hashOf("keys", d.api.Version, d.kind, i, slices.Sorted(maps.Keys(fields)))
		if isGood(keys) {
			definition.rules = nil
		}
	}
	if unknown, refused, broken := definition.check(value); len(unknown)+len(refused)+len(broken) > 0 {
		return false
	}
	if once {
		good.Add(keys, nil)
	}
	for _, name := range slices.Backward(append([]string{"spec"}, parts[d.kind][i]...)) {
		value = map[string]any{name: value}
	}
	alone := draft{kind: d.kind, api: d.api, object: value.(map[string]any)}
	return alone.read() == nil
}
