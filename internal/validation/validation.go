// Package validation turns a rack's parameters into a plan, or reports all problems with them. Passes and the command
// line both use it.
package validation

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

// Result is the result of Validate. If there are Problems, the Plan must not be used. If Validate had no InForce.Plan, the
// fingerprints are empty: Objects, and those of the plan's steps.
type Result struct {
	Config    params.Config
	Effective map[string]string
	Plan      plan.Plan
	Problems  []params.Problem
	Warnings  []params.Problem
	// Objects is the fingerprint of the manifests that were checked.
	Objects string
}

// InForce gives access to what an earlier pass left in force.
type InForce struct {
	// Checked is the Objects of the last Result without problems. The same manifests are not checked again.
	Checked string
	// Plan reads the plan in force, or returns nil if there is none. It is called only if the pools or their networks
	// change.
	Plan func() (*plan.Plan, error)
	// Running adds what runs in the pools to the facts. It is called only if existing pools may change. If it is nil,
	// nothing is known.
	Running func(*plan.Facts)
}

// plan returns the plan in force, or nil if there is none or none can be read.
func (i InForce) plan() (*plan.Plan, error) {
	if i.Plan == nil {
		return nil, nil
	}
	return i.Plan()
}

// Validate validates parsed parameters against the facts observed for them.
func Validate(parsed params.Result, facts plan.Facts, before InForce) (Result, error) {
	compiled := nodes.Compile(parsed.Config, facts)
	outcome := plan.Build(parsed.Config, facts, compiled.Objects())
	result := Result{Config: parsed.Config, Effective: parsed.Effective, Plan: outcome.Plan}
	compares := before.Plan != nil
	if compares {
		result.Objects = compiled.Fingerprint()
		result.Plan.SetFingerprints()
	}
	others := !compares || result.Objects != before.Checked
	if others {
		parsed.RejectUnlessDisabling(unless(parsed.Problems, compiled.Check())...)
	}
	foreign, known, err := compiled.Images(facts, before.plan)
	if err != nil {
		return result, err
	}
	parsed.RejectUnlessDisabling(unless(parsed.Problems, foreign)...)
	parsed.Advise(known...)
	parsed.Add(outcome.Problems...)
	if compares && (others || reselects(result.Plan, facts.Records.Applied)) {
		if err := result.compare(&facts, before, len(parsed.Problems) == 0); err != nil {
			return result, err
		}
	}
	if others && len(parsed.Problems) == 0 {
		parsed.Advise(compiled.Exceeded(facts.Pools)...)
	}
	parsed.Advise(compiled.Advice()...)
	if len(parsed.Problems) == 0 {
		parsed.Advise(compiled.Unused()...)
		parsed.Advise(compiled.Surprises()...)
	}
	parsed.Advise(outcome.Warnings...)
	result.Problems, result.Warnings = parsed.Problems, parsed.Warnings
	return result, nil
}

// reselects reports whether a plan selects other subnets or security groups than those that were applied.
func reselects(p plan.Plan, applied map[string]string) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Name == "network" && applied[s.Name] != s.Fingerprint })
}

// compare sets the plan's effects on the pools in force. It leaves out plans with problems: Karpenter's drift code
// relies on valid manifests, and ends the process on some invalid ones.
func (v *Result) compare(facts *plan.Facts, before InForce, good bool) error {
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
	if v.Plan.Cluster.Gone { // Karpenter is gone with the cluster and drains nothing
		for i := range v.Plan.Effects {
			v.Plan.Effects[i].Replaces = false
		}
	}
	return nil
}

// unless returns the found problems without those about paths that have a known problem.
func unless(known, found []params.Problem) []params.Problem {
	return slices.DeleteFunc(found, func(p params.Problem) bool {
		return slices.ContainsFunc(known, func(k params.Problem) bool {
			return k.Parameter == p.Parameter && k.Path == p.Path
		})
	})
}
