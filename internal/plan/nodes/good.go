package nodes

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// memory remembers manifests that were found good, by their hash: the racks of a batch, and the passes of a rack, share most of
// theirs. It forgets all when it is full, rather than grow.
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

// key is the hash of what the check of a manifest depends on. What Sawhorse itself makes of the names of rack and cluster,
// and the limits that are parameters' integers, are good whatever they are: without them most racks are alike.
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
	text, err := json.Marshal([]any{d.kind, spec})
	if err != nil {
		panic("nodes: " + d.kind + "/" + d.name + ": " + err.Error()) // plain data always marshals
	}
	return sha256.Sum256(text)
}
