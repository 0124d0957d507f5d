package events

import (
	"regexp"
	"slices"
)

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
	// ForceContested sets back once more what others keep setting in the objects of pools.
	ForceContested = "contested"
	// ForceRetire, followed by the name of a pool, deletes a retiring pool with its nodes at once.
	ForceRetire = "retire:"
)

// ForceWords are all of them, as messages name them.
var ForceWords = []string{ForceRoom, ForceForeignPools, ForceInstances, ForceVersion, ForceNewDefaults, ForceContested,
	ForceRetire + "{pool}"}

// ForcePattern matches the words, and MostForce is how many a request may have: the state machine writes each to an attribute of
// its own.
const (
	ForcePattern = "^(room|foreign-pools|instances|version|new-defaults|contested|retire:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$"
	MostForce    = 20
)

var forcePattern = regexp.MustCompile(ForcePattern)

// IsForce reports whether a text is one of the words.
func IsForce(word string) bool { return forcePattern.MatchString(word) }

// Force has the words of a request.
type Force []string

// Has reports whether the request overrides a guard.
func (f Force) Has(word string) bool { return slices.Contains(f, word) }

// Retires reports whether the request deletes a retiring pool at once.
func (f Force) Retires(pool string) bool { return f.Has(ForceRetire + pool) }

// Generation returns the generation of a pass whose request overrides a guard, and 0 for another.
func (f Force) Generation(word string, generation int64) int64 {
	if f.Has(word) {
		return generation
	}
	return 0
}
