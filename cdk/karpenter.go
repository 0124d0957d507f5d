package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// permission is what a statement of a policy of Karpenter's controller allows.
type permission struct{ actions, resources []string }

// permissions returns what the policies of a version of Karpenter allow, with ${…} for what differs between clusters.
func permissions(release karpenter.Release) (all []permission) {
	documents, err := release.Policies()
	if err != nil {
		panic(err) // embedded files, which tests read too
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		var policy struct {
			Statement []struct{ Action, Resource any }
		}
		if err := json.Unmarshal(documents[name], &policy); err != nil {
			panic(fmt.Errorf("karpenter %s: policy %s: %w", release.Version, name, err))
		}
		for _, s := range policy.Statement {
			all = append(all, permission{oneOrMore(s.Action), oneOrMore(s.Resource)})
		}
	}
	return all
}

// oneOrMore returns the texts of a policy's element, which may be a text or a list of them.
func oneOrMore(value any) (all []string) {
	list, several := value.([]any)
	if !several {
		list = []any{value}
	}
	for _, each := range list {
		all = append(all, fmt.Sprint(each))
	}
	return all
}

// readable returns the actions that the policies allow on every resource: those of all versions of the catalogue, because
// a rack may choose any.
func readable() []string {
	all := map[string]bool{}
	for _, release := range karpenter.All() {
		for _, p := range permissions(release) {
			if !slices.Equal(p.resources, anything) {
				continue
			}
			for _, action := range p.actions {
				all[action] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
