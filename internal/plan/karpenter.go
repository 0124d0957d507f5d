package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// karpenter is one version of Karpenter, with what a plan takes from it.
type karpenter struct {
	catalogue.Release
	// policies are the policies of the controller's role by name, with ${…} for what differs between clusters.
	policies map[string]template
	// values returns the default values of the controller's chart, which are decoded on first use. Callers must not
	// change them.
	values func() map[string]any
}

// carriers has the versions that were used, by name.
var carriers sync.Map

// carried returns a version of the catalogue. Its files are decoded once.
func carried(release catalogue.Release) karpenter {
	if known, is := carriers.Load(release.Version); is {
		return known.(karpenter)
	}
	texts, err := release.Policies()
	if err != nil {
		panic("plan: " + err.Error()) // an embedded file
	}
	k := karpenter{Release: release, policies: map[string]template{}, values: sync.OnceValue(func() map[string]any {
		values, err := release.Values()
		if err != nil {
			panic("plan: " + err.Error()) // an embedded file
		}
		return values
	})}
	for name, text := range texts {
		var policy Document
		if err := json.Unmarshal(text, &policy); err != nil {
			panic(fmt.Sprintf("plan: policy %s: decode: %v", name, err)) // an embedded file
		}
		k.policies[name] = templateOf(policy)
	}
	carriers.Store(release.Version, k)
	return k
}

// template is a document in which some values differ between clusters: text and the name of a value in turns.
type template []string

// templateOf splits a document with ${name} in the place of values.
func templateOf(d Document) template {
	var parts template
	for text := string(d); ; {
		before, after, found := strings.Cut(text, "${")
		if parts = append(parts, before); !found {
			return parts
		}
		var name string
		name, text, _ = strings.Cut(after, "}")
		parts = append(parts, name)
	}
}

// document puts the values into the template, as they stand within a JSON string.
func (t template) document(values map[string]string) Document {
	parts := slices.Clone(t)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = values[parts[i]]
	}
	return Document(strings.Join(parts, ""))
}
