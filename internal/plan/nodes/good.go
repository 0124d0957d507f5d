package nodes

import (
	"crypto/sha256"
	"maps"

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

// hashOf returns a hash of plain data.
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
