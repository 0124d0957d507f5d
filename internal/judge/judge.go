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
	// Plan reads the plan that is in force, nil where there is none; it is called where the pools or their networks are to be others.
	Plan func() (*plan.Plan, error)
	// Running adds to the facts what runs in the pools; it is called where there are pools that are to be others. Nil: nobody can look.
	Running func(*plan.Facts)
}

// Judge makes a verdict of parameters that have been read and facts that have been observed for them.
func Judge(parsed params.Result, facts plan.Facts, before InForce) (Verdict, error) {
	compiled := nodes.Compile(parsed.Config, facts)
	verdict := Verdict{Config: parsed.Config, Effective: parsed.Effective, Objects: compiled.Fingerprint()}
	others := verdict.Objects != before.Checked
	if others {
		parsed.Hinder(unless(parsed.Problems, compiled.Check())...)
	}
	outcome := plan.Build(parsed.Config, facts, compiled.Objects())
	verdict.Plan = outcome.Plan
	parsed.Add(outcome.Problems...)
	if before.Plan != nil && (others || reselects(outcome.Plan, facts.Records.Applied)) {
		if err := verdict.compare(&facts, before, len(parsed.Problems) == 0); err != nil {
			return verdict, err
		}
	}
	if others && len(parsed.Problems) == 0 {
		parsed.Advise(compiled.Exceeded(facts.Pools)...)
	}
	parsed.Advise(compiled.Advice()...)
	parsed.Advise(compiled.Overridden(parsed.Effective)...)
	if len(parsed.Problems) == 0 {
		parsed.Advise(compiled.Unused()...)
	}
	parsed.Advise(outcome.Warnings...)
	verdict.Problems, verdict.Warnings = parsed.Problems, parsed.Warnings
	return verdict, nil
}

// reselects tells whether a plan selects other subnets or security groups than those that were applied.
func reselects(p plan.Plan, applied map[string]string) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Name == "network" && applied[s.Name] != s.Fingerprint })
}

// compare tells what the plan does to the pools of the one in force. What has been refused is not compared: Karpenter's own code, which
// tells what drifts, counts on the checks, and ends the process where it cannot go on.
func (v *Verdict) compare(facts *plan.Facts, before InForce, good bool) error {
	last, err := before.Plan()
	if err != nil {
		return err
	}
	if last == nil {
		last = &plan.Plan{}
	}
	if before.Running != nil && len(last.NodePools.Objects) > 0 {
		before.Running(facts)
	}
	if good {
		v.Plan.Effects = nodes.Effects(*last, v.Plan, *facts)
	}
	if v.Plan.Cluster.Gone { // and with it the Karpenter that would drain
		for i := range v.Plan.Effects {
			v.Plan.Effects[i].Replaces = false
		}
	}
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
