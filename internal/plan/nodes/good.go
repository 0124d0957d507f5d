package nodes

import (
	"crypto/sha256"
	"maps"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// hash identifies something that was checked.
type hash = [sha256.Size]byte

// memory remembers the hashes of manifests, and of parts of manifests, that passed the checks. The racks of a batch,
// and the passes of a rack, have most of them in common. When it is full it is cleared.
type memory struct {
	mutex sync.Mutex
	known map[hash]bool
}

const mostRemembered = 4096

var good memory

func (m *memory) has(key hash) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.known[key]
}

func (m *memory) add(key hash) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known == nil || len(m.known) >= mostRemembered {
		m.known = map[hash]bool{}
	}
	m.known[key] = true
}

// hashOf returns a hash of plain data.
func hashOf(data ...any) hash {
	return canonical.Hash(data)
}

// varying returns the spec without values that are always valid: those that Sawhorse derives from the names of rack and
// cluster, and limits that come from integer parameters. Without them, most racks have the same manifests.
func (d *draft) varying() map[string]any {
	spec, _ := d.object["spec"].(map[string]any)
	spec = maps.Clone(spec)
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
		if _, ofParameter := d.origins[strings.Join([]string{"spec", "limits", resource}, "\x00")]; ofParameter {
			limits := maps.Clone(inner(spec, "limits"))
			limits[resource] = "1"
			spec["limits"] = limits
		}
	}
	return spec
}
