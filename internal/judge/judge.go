// Package judge makes a plan of a rack's parameters, or tells all that is wrong with them. A pass and the command line judge
// alike.
package judge

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

// Verdict is what became of a rack's parameters. With Problems, the Plan is not to be used.
type Verdict struct {
	Config    params.Config
	Effective map[string]string
	Plan      plan.Plan
	Problems  []params.Problem
	Warnings  []params.Problem
	// Objects are the fingerprint of the manifests that were checked.
	Objects string
}

// InForce is what an earlier verdict left behind.
type InForce struct {
	// Checked is the Objects of the last good verdict: the same manifests are good again, and are not checked twice.
	Checked string
	// Objects reads the manifests that are applied now; it is called where others are to be.
	Objects func() ([]plan.Object, error)
	// Running reads what runs in the pools; it is called where other manifests are to be. Nil: nobody can look.
	Running func() map[string]plan.PoolFacts
}

// Judge makes a verdict of parameters that have been read and facts that have been observed for them.
func Judge(parsed params.Result, facts plan.Facts, before InForce) (Verdict, error) {
	compiled := nodes.Compile(parsed.Config, facts)
	objects := compiled.Objects()
	verdict := Verdict{Config: parsed.Config, Effective: parsed.Effective, Objects: compiled.Fingerprint()}
	if verdict.Objects != before.Checked {
		parsed.Hinder(unless(parsed.Problems, compiled.Check())...)
		if err := verdict.compare(&facts, compiled, before); err != nil {
			return verdict, err
		}
		parsed.Advise(compiled.Exceeded(facts.Pools)...)
	}
	parsed.Advise(compiled.Advice()...)
	parsed.Advise(compiled.Overridden(parsed.Effective)...)
	if len(parsed.Problems) == 0 {
		parsed.Advise(compiled.Unused()...)
	}
	effects := verdict.Plan.Effects
	outcome := plan.Build(parsed.Config, facts, objects)
	verdict.Plan = outcome.Plan
	if outcome.Plan.Cluster.Gone { // and with it the Karpenter that would drain
		for i := range effects {
			effects[i].Replaces = false
		}
	}
	verdict.Plan.Effects = effects
	parsed.Add(outcome.Problems...)
	parsed.Advise(outcome.Warnings...)
	verdict.Problems, verdict.Warnings = parsed.Problems, parsed.Warnings
	return verdict, nil
}

// compare tells what the new manifests do to the pools.
func (v *Verdict) compare(facts *plan.Facts, compiled nodes.Compiled, before InForce) error {
	if before.Objects == nil {
		return nil
	}
	was, err := before.Objects()
	if err != nil {
		return err
	}
	if before.Running != nil && len(was) > 0 {
		facts.Pools = before.Running()
	}
	v.Plan.Effects = nodes.Effects(was, compiled.Objects(), facts.Pools)
	return nil
}

// unless leaves out problems with a place that has been refused already.
func unless(known, found []params.Problem) []params.Problem {
	return slices.DeleteFunc(found, func(p params.Problem) bool {
		return slices.ContainsFunc(known, func(k params.Problem) bool {
			return k.Parameter == p.Parameter && k.Path == p.Path
		})
	})
}
