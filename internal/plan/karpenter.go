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

// carriers has the versions that were used, by name.
var carriers sync.Map

// carried returns a version of the catalogue, with its policies decoded. They are decoded once.
func carried(release catalogue.Release) karpenter {
	if known, is := carriers.Load(release.Version); is {
		return known.(karpenter)
	}
	k := withPolicies(release)
	carriers.Store(release.Version, k)
	return k
}

// withPolicies decodes the policies of a version.
func withPolicies(release catalogue.Release) karpenter {
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
