package story

import (
	"path"
	"strings"
)

// list is what kubectl prints of several objects.
type list[T any] struct{ Items []T }

// nodeClaim is what scripts read of a NodeClaim.
type nodeClaim struct {
	Metadata struct {
		Name                string
		Labels, Annotations map[string]string
		DeletionTimestamp   string
	}
	Spec   struct{ NodeClassRef struct{ Name string } }
	Status struct {
		NodeName, ProviderID string
		Conditions           []struct{ Type, Status, Reason string }
	}
}

// instance returns the ID of its instance.
func (c nodeClaim) instance() string { return path.Base(c.Status.ProviderID) }

// drifted returns the reason of the NodeClaim's condition Drifted, if that is true.
func (c nodeClaim) drifted() string {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Drifted" && condition.Status == "True" {
			return condition.Reason
		}
	}
	return ""
}

// is reports whether a condition of the NodeClaim is true.
func (c nodeClaim) is(condition string) bool {
	for _, of := range c.Status.Conditions {
		if of.Type == condition {
			return of.Status == "True"
		}
	}
	return false
}

// nodeClaims reads the cluster's NodeClaims, or those that a selector matches.
func nodeClaims(s *Script, selector ...string) list[nodeClaim] {
	return JSON[list[nodeClaim]](s, "kubectl get nodeclaims -o json "+strings.Join(selector, " "))
}
