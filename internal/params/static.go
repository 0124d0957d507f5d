package params

import (
	"fmt"
	"maps"
	"slices"
)

// Static reports whether a config makes its pool static: of a number of nodes, whatever pods there are.
func (o Override) Static() bool { return o.NodePool["replicas"] != nil }

// static checks the pools that have replicas.
func (r *Result) static() {
	on := r.Config.featureGate("staticCapacity") || r.refused(ParamController)
	r.staticPool(r.Config.Workload.Override, ParamOverride, "", "workload", on, r.writtenOf("karpenter_cpu_limit",
		"karpenter_memory_limit_gb", "karpenter_consolidation_enabled", "karpenter_consolidate_after"))
	r.staticPool(r.Config.Build.Override, ParamBuildConfig, "", "build", on, r.writtenOf("karpenter_build_cpu_limit",
		"karpenter_build_memory_limit_gb", "karpenter_build_consolidate_after"))
	for i, pool := range r.Config.Additional {
		at := fmt.Sprintf("[%d]", i)
		var set []Problem
		for _, field := range []string{"consolidate_after", "consolidation_policy", "cpu_limit", "memory_limit_gb", "weight"} {
			if pool.Has(field) && (field != "weight" || pool.Weight > 0) {
				set = append(set, Problem{Parameter: ParamAdditional, Path: Join(at, field)})
			}
		}
		r.staticPool(pool.Override, ParamAdditional, at, pool.Name, on, set)
	}
}

// writtenOf returns those of some parameters that are written.
func (r *Result) writtenOf(names ...string) (all []Problem) {
	for _, name := range names {
		if _, given := r.written[name]; given && !r.refused(name) {
			all = append(all, Problem{Parameter: name})
		}
	}
	return all
}

// staticPool refuses what a static pool does not take: set are the parameters, or fields of an entry, of the pool that do.
func (r *Result) staticPool(own Override, parameter, at, pool string, on bool, set []Problem) {
	if !own.Static() {
		return
	}
	replicas := Join(at, "nodePool", "replicas")
	if !on {
		r.problem(parameter, replicas, "%s makes pool %s static, and Karpenter's feature gate StaticCapacity is off; leave it out, or write "+
			"{\"settings\":{\"featureGates\":{\"staticCapacity\":true}}} into %s", replicas, pool, ParamController)
	}
	limits, _ := own.NodePool["limits"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if name != "nodes" {
			set = append(set, Problem{Parameter: parameter, Path: Join(at, "nodePool", "limits", name)})
		}
	}
	disruption, _ := own.NodePool["disruption"].(map[string]any)
	for _, name := range []string{"consolidateAfter", "consolidationPolicy"} {
		if disruption[name] != nil {
			set = append(set, Problem{Parameter: parameter, Path: Join(at, "nodePool", "disruption", name)})
		}
	}
	if own.NodePool["weight"] != nil {
		set = append(set, Problem{Parameter: parameter, Path: Join(at, "nodePool", "weight")})
	}
	for _, p := range set {
		name := p.Path
		if name == "" {
			name = p.Parameter
		}
		r.problem(p.Parameter, p.Path, "%s is set, and pool %s is static (%s): Karpenter takes no limits of cpu and memory, no weight and no "+
			"consolidation there; leave it out, or leave out replicas", name, pool, replicas)
	}
}

// featureGate reports whether the controller's values switch on a feature gate.
func (c Config) featureGate(name string) bool {
	settings, _ := c.ControllerValues["settings"].(map[string]any)
	gates, _ := settings["featureGates"].(map[string]any)
	on, _ := gates[name].(bool)
	return on
}
