package plan

import (
	"encoding/json"
	"fmt"
	"sync"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// karpenter is one version of Karpenter, with what a plan takes from it.
type karpenter struct {
	catalogue.Release
	// policies are the policies of the controller's role by name, with ${…} for what differs between clusters.
	policies map[string]Document
}

// current returns the version that Sawhorse installs.
var current = sync.OnceValue(func() karpenter { return carried(catalogue.Default()) })

// carried returns a version of the catalogue, with its policies decoded.
func carried(release catalogue.Release) karpenter {
	texts, err := release.Policies()
	if err != nil {
		panic("plan: " + err.Error()) // an embedded file
	}
	k := karpenter{Release: release, policies: map[string]Document{}}
	for name, text := range texts {
		var template Document
		if err := json.Unmarshal(text, &template); err != nil {
			panic(fmt.Sprintf("plan: policy %s: decode: %v", name, err)) // an embedded file
		}
		k.policies[name] = template
	}
	return k
}
