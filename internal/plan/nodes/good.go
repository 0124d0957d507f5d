package nodes

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// memory remembers the hashes of manifests that passed the checks. The racks of a batch, and the passes of a rack, have
// most manifests in common. When it is full it is cleared.
type memory struct {
	mutex sync.Mutex
	known map[[sha256.Size]byte]bool
}

const mostRemembered = 4096

var good memory

func (m *memory) has(key [sha256.Size]byte) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.known[key]
}

func (m *memory) add(key [sha256.Size]byte) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known == nil || len(m.known) >= mostRemembered {
		m.known = map[[sha256.Size]byte]bool{}
	}
	m.known[key] = true
}

// key returns a hash of everything that the check of a manifest depends on. It leaves out values that are always valid:
// those that Sawhorse derives from the names of rack and cluster, and limits that come from integer parameters. Without
// them, most racks have the same manifests.
func (d *draft) key() [sha256.Size]byte {
	spec, _ := d.object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, own := range []string{"role", "subnetSelectorTerms", "securityGroupSelectorTerms"} {
		delete(spec, own)
	}
	if tags := inner(spec, "tags"); tags != nil {
		tags = maps.Clone(tags)
		delete(tags, names.TagName)
		delete(tags, names.TagRackOfNode)
		spec["tags"] = tags
	}
	for _, resource := range []string{"cpu", "memory"} {
		if _, ofParameter := d.origins[strings.Join([]string{"spec", "limits", resource}, "\x00")]; ofParameter {
			limits := maps.Clone(inner(spec, "limits"))
			limits[resource] = "1"
			spec["limits"] = limits
		}
	}
	text, err := json.Marshal([]any{d.kind, spec, d.guessed})
	if err != nil {
		panic("nodes: " + d.kind + "/" + d.name + ": " + err.Error()) // plain data always marshals
	}
	return sha256.Sum256(text)
}
