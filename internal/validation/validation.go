// Package validation turns a rack's parameters into a plan, or reports all problems with them. Passes and the command
// line both use it.
package validation

import (
	"cmp"
	"slices"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

// Input is all that a rack is judged by.
type Input struct {
	Parsed params.Result
	// Facts are those that were observed for the parameters. Their records say which manifests were checked already.
	Facts plan.Facts
	// Compare asks for what a pass needs: the charts' objects, the fingerprints, and the effects on the pools of the plan in force.
	Compare bool
	// InForce is the plan in force, or nil if there is none.
	InForce *plan.Plan
	// Applied is the plan whose pools are in force (Plan.Pooled); nil if that is the plan in force.
	Applied *plan.Plan
	// Earlier are the plans that pools stay as where only Sawhorse has changed since: the plan in force first, then that whose
	// pools are. What is not known to be made from which parameters is left out.
	Earlier []Earlier
}

// Earlier is a plan that pools may stay as, and the configuration that it was made from.
type Earlier = nodes.Earlier

// pooled returns the plan whose pools are in force; nil if there is none.
func (in Input) pooled() *plan.Plan { return cmp.Or(in.Applied, in.InForce) }

// last is pooled, or a plan without pools.
func (in Input) last() plan.Plan { return *cmp.Or(in.pooled(), &plan.Plan{}) }

// Result is the result of Validate. If there are Problems, the Plan must not be used. If the Input does not ask to Compare,
// the plan lacks the charts' objects, and the fingerprints are empty: Objects, and those of the plan's steps.
type Result struct {
	Config    params.Config
	Effective map[string]string
	Plan      plan.Plan
	Problems  []params.Problem
	Warnings  []params.Problem
	// Objects is the fingerprint of the manifests that were checked.
	Objects string
}

// draft is what the parameters ask for, before it is judged.
type draft struct {
	Result
	outcome  plan.Outcome
	compiled nodes.Compiled
	// others means that the manifests are not those that were checked last.
	others bool
	// compares means that the pools, their networks or the age of their nodes may differ from those in force.
	compares bool
}

func (in Input) draft() draft {
	d := draft{compiled: nodes.Compile(in.Parsed.Config, in.Facts)}
	d.outcome = plan.Build(in.Parsed.Config, in.Facts, d.compiled.Objects())
	d.Result = Result{Config: in.Parsed.Config, Effective: in.Parsed.Effective, Plan: d.outcome.Plan}
	if in.Compare {
		d.Objects = d.compiled.Fingerprint()
		d.Plan.SetFingerprints()
	}
	d.others = !in.Compare || d.Objects != in.Facts.Records.Checked
	d.compares = in.Compare && (d.others || reselects(d.Plan, in.Facts.Records.Applied) || nodes.Rotates(in.last(), d.Plan) > 0)
	return d
}

// Needs are what a judgement takes into account of what runs in a cluster, beside the other facts.
type Needs struct {
	// Pools are the status of the NodePools, and the NodeClaims: the plan may change pools in force. PoolPods are how many pods run
	// in each: it retires one of them.
	Pools, PoolPods bool
	// GroupPods are how many pods run in each node group: the plan empties one that the plan in force does not.
	GroupPods bool
}

// Needs returns what else is to be observed.
func (in Input) Needs() Needs {
	d := in.draft()
	needs := Needs{GroupPods: len(plan.Emptied(in.InForce, d.Plan, in.Facts)) > 0}
	if in.InForce != nil {
		names, inForce := d.Plan.NodePools.Names(), in.pooled().NodePools
		gone := func(name string) bool { return !slices.Contains(names, name) }
		needs.Pools = len(inForce.Objects) > 0 && d.compares
		needs.PoolPods = needs.Pools && in.Parsed.Config.Enabled && slices.ContainsFunc(inForce.Names(), gone)
	}
	return needs
}

// Validate judges parameters. It reads nothing, so the same Input has the same Result.
func Validate(in Input) Result {
	d, parsed := in.draft(), in.Parsed
	var unfit []params.Problem
	if d.others || parsed.TurningOff() {
		unfit = d.compiled.Check()
	}
	var unrendered error
	if in.Compare {
		if parsed.TurningOff() && in.InForce != nil && refusesController(parsed.Config, unfit, d.outcome.Problems) {
			d.Plan.Controller.Release.Values = in.InForce.Controller.Release.Values
		}
		unrendered = charts.Add(&d.Plan, in.Facts)
		d.Plan.SetFingerprints()
	}
	judge := func(problems, warnings []params.Problem) {
		parsed.RejectUnlessDisabling(unless(parsed.Problems, problems)...)
		parsed.Advise(warnings...)
	}
	judge(unfit, nil)
	judge(d.compiled.Closed(in.Facts, in.InForce))
	judge(d.compiled.Launches(in.Facts, in.pooled()), nil)
	judge(d.compiled.Taken(in.Facts, in.pooled()), nil)
	judge(d.compiled.Static(in.Facts, in.pooled()), nil)
	judge(d.compiled.Images(in.Facts, in.pooled()))
	judge(d.compiled.Aliases(in.Facts, in.pooled()))
	judge(d.compiled.Offered(in.Facts, in.pooled()))
	judge(d.compiled.Reserved(in.Facts, in.pooled()))
	judge(slices.Clone(in.Facts.Refused), nil)
	parsed.Add(d.outcome.Problems...)
	if unrendered != nil {
		parsed.RejectUnlessDisabling(params.NewProblem(params.ParamController, "", "Karpenter's chart refuses these values (%v); write others, "+
			"or leave them out", unrendered))
	}
	if len(parsed.Problems) == 0 {
		parsed.Advise(d.inherit(in)...)
	}
	if d.compares && len(parsed.Problems) == 0 { // Karpenter's drift code relies on valid manifests, and ends the process on some others
		d.Plan.Effects = effects(d.Plan, in)
	}
	if in.Compare && len(parsed.Problems) == 0 {
		d.Plan.Effects = append(d.Plan.Effects, plan.Emptied(in.InForce, d.Plan, in.Facts)...)
	}
	observed := plan.Facts{}
	if d.others && len(parsed.Problems) == 0 {
		observed = in.Facts
		parsed.Advise(d.compiled.Exceeded(in.Facts.Pools)...)
	}
	parsed.Advise(d.compiled.Blocked(observed.NodeClaims)...)
	parsed.Advise(d.compiled.Rotation(observed.Pools)...)
	parsed.Advise(d.compiled.Advice()...)
	if len(parsed.Problems) == 0 && !parsed.TurningOff() { // while it is turned off, what is refused is no problem
		parsed.Advise(d.compiled.Unused()...)
		parsed.Advise(d.compiled.Surprises()...)
	}
	parsed.Advise(d.outcome.Warnings...)
	d.Problems, d.Warnings = parsed.Problems, parsed.Warnings
	return d.Result
}

// refusesController reports whether values of the controller's chart are refused. While Karpenter is turned off they are only warned of,
// and the controller, which runs until the last node is gone, keeps those in force.
func refusesController(config params.Config, found ...[]params.Problem) bool {
	return config.HasRefused(params.ParamController) || slices.ContainsFunc(slices.Concat(found...), func(p params.Problem) bool {
		return p.Parameter == params.ParamController
	})
}

// inherit leaves pools as they are in an earlier plan if another release of Sawhorse would make them otherwise, and Karpenter
// would replace their nodes. It returns a warning for each.
func (d *draft) inherit(in Input) (warnings []params.Problem) {
	if !in.Compare || in.Facts.Force.Has(events.ForceNewDefaults) {
		return nil
	}
	for _, pool := range Keep(&d.Plan, in.Earlier, in.Facts) {
		warnings = append(warnings, params.NewProblem("rack", "", "pool %s stays as it was applied: this release of Sawhorse would make it "+
			"otherwise, and Karpenter would replace its nodes, though no parameter of the pool has changed; to have them replaced, as the "+
			"pool's disruption budget allows, send Rack Reconcile Requested with \"force\": [\"new-defaults\"]", pool))
	}
	return warnings
}

// Keep leaves the pools of a plan as they are in earlier ones, as inherit does, and returns their names.
func Keep(p *plan.Plan, earlier []Earlier, facts plan.Facts) (kept []string) {
	objects, kept := nodes.Inherit(earlier, *p, facts)
	if len(kept) > 0 {
		p.NodePools.Objects = objects
		p.SetFingerprints()
	}
	return kept
}

// reselects reports whether a plan selects other subnets or security groups than those that were applied.
func reselects(p plan.Plan, applied map[string]string) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Name == "network" && applied[s.Name] != s.Fingerprint })
}

// effects returns the effects of a plan on the pools in force.
func effects(p plan.Plan, in Input) []plan.Effect {
	all := nodes.Effects(in.last(), p, in.Facts)
	if p.Cluster.Gone { // Karpenter is gone with the cluster and drains nothing
		for i := range all {
			all[i].Replaces = false
		}
	}
	return all
}

// unless returns the found problems without those about paths that have a known problem.
func unless(known, found []params.Problem) []params.Problem {
	return slices.DeleteFunc(found, func(p params.Problem) bool {
		return slices.ContainsFunc(known, func(k params.Problem) bool {
			return k.Parameter == p.Parameter && k.Path == p.Path
		})
	})
}
