package store

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Waiting is what pods have waited ten minutes or longer for, with one element for each cause.
type Waiting []events.Wait

// Pods returns how many pods wait.
func (w Waiting) Pods() (n int) {
	for _, one := range w {
		n += one.Pods
	}
	return n
}

func (w Waiting) degrade() bool { return slices.ContainsFunc(w, events.Wait.Degrades) }

// warnings returns the warnings about pods that no pool fits: what is wrong may be the pods or the pools.
func (w Waiting) warnings() (all []params.Problem) {
	for _, one := range w {
		if one.Cause == events.CauseUnfit {
			all = append(all, params.NewProblem("rack", "", "%s; change what the pods ask for, or let a pool allow it", one))
		}
	}
	return all
}
