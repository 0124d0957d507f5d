package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// karpenter is one version of Karpenter, with what a plan takes from it.
type karpenter struct {
	catalogue.Release
	// policies are the policies of the controller's role by name, with ${…} for what differs between clusters.
	policies map[string]Document
	// pattern matches the events that the version reads from its queue. One rule matches all of them, because an event bus
	// has a quota of 300 rules.
	pattern Document
	// values returns the default values of the controller's chart, which are decoded on first use. Callers must not
	// change them.
	values func() map[string]any
}

// usedVersions has the versions that were used, by name.
var usedVersions sync.Map

// versionOf returns a version of the catalogue with its files decoded, which is done once.
func versionOf(release catalogue.Release) karpenter {
	if known, is := usedVersions.Load(release.Version); is {
		return known.(karpenter)
	}
	texts, err := release.Policies()
	if err != nil {
		panic("plan: " + err.Error()) // an embedded file
	}
	k := karpenter{Release: release, policies: map[string]Document{}, pattern: interruptions(release)}
	k.values = sync.OnceValue(func() map[string]any {
		values, err := release.Values()
		if err != nil {
			panic("plan: " + err.Error()) // an embedded file
		}
		return values
	})
	for name, text := range texts {
		var policy Document
		if err := json.Unmarshal(text, &policy); err != nil {
			panic(fmt.Sprintf("plan: policy %s: decode: %v", name, err)) // an embedded file
		}
		k.policies[name] = policy
	}
	usedVersions.Store(release.Version, k)
	return k
}

// interruptions returns the pattern of the events that a version reads from its queue.
func interruptions(release catalogue.Release) Document {
	var sources, kinds []string
	for _, event := range release.Events {
		sources, kinds = append(sources, event.Source), append(kinds, event.DetailType)
	}
	slices.Sort(sources)
	return document(map[string]any{"source": slices.Compact(sources), "detail-type": kinds})
}
