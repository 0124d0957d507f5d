package events

import "slices"

// The words with which a request or a change overrides one guard each. What a guard refuses names its word.
const (
	// ForceRoom turns Karpenter off although the pods of its nodes fit nowhere else.
	ForceRoom = "room"
	// ForceForeignPools turns Karpenter off although the cluster has NodePools that Sawhorse did not make.
	ForceForeignPools = "foreign-pools"
	// ForceInstances leaves instances running that a NodeClaim of the rack names and that lack Karpenter's tags.
	ForceInstances = "instances"
	// ForceVersion tries again a version of Karpenter that has failed.
	ForceVersion = "version"
	// ForceNewDefaults replaces nodes because another release of Sawhorse would make their pools otherwise.
	ForceNewDefaults = "new-defaults"
)

// ForceWords are all of them.
var ForceWords = []string{ForceRoom, ForceForeignPools, ForceInstances, ForceVersion, ForceNewDefaults}

// Force has the words of a request.
type Force []string

// Has reports whether the request overrides a guard.
func (f Force) Has(word string) bool { return slices.Contains(f, word) }
