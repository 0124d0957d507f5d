package nodes

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
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

// key is the hash of a draft's manifest.
func (d *draft) key() [sha256.Size]byte {
	text, err := json.Marshal(d.object)
	if err != nil {
		panic("nodes: " + d.kind + "/" + d.name + ": " + err.Error()) // plain data always marshals
	}
	return sha256.Sum256(text)
}
