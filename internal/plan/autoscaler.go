package plan

import (
	"fmt"
	"slices"
)

// Autoscaler describes the desired state of Cluster Autoscaler.
type Autoscaler struct {
	State AutoscalerState `json:"state,omitempty"`
	// Deployment is the namespace/name of its Deployment. If empty, the Deployment is found by its image.
	Deployment string `json:"deployment,omitempty"`
	// Args are the arguments, one --nodes for each additional and build node group that it keeps scaling. They are set in
	// state "groups". The step adds those of the Auto Scaling groups outside of EKS that it scaled before.
	Args []string `json:"args,omitempty"`
	// Managed has the names of the Auto Scaling groups of all managed node groups. The step looks for other groups that
	// Cluster Autoscaler scaled before, and keeps them as targets.
	Managed []string `json:"managed,omitempty"`
	// FallbackArgs are the arguments used if Cluster Autoscaler is turned on again and there is no baseline.
	FallbackArgs []string `json:"fallbackArgs,omitempty"`
}

// AutoscalerState is the desired state of Cluster Autoscaler.
type AutoscalerState string

const (
	// AutoscalerOff means 0 replicas.
	AutoscalerOff AutoscalerState = "off"
	// AutoscalerGroups means 1 replica on system nodes, with explicit --nodes and no auto-discovery.
	AutoscalerGroups AutoscalerState = "groups"
	// AutoscalerBaseline means the state that was found before the first change.
	AutoscalerBaseline AutoscalerState = "baseline"
)

// AutoscaledGroup is an Auto Scaling group that Cluster Autoscaler scales, and its limits.
type AutoscaledGroup struct {
	Min int    `json:"min"`
	Max int    `json:"max"`
	ASG string `json:"asg"`
}

// Args returns the arguments of Cluster Autoscaler for groups.
func Args(groups []AutoscaledGroup) []string {
	var args []string
	for _, group := range groups {
		args = append(args, fmt.Sprintf("--nodes=%d:%d:%s", group.Min, group.Max, group.ASG))
	}
	return args
}

// autoscaler plans the state of Cluster Autoscaler: off, scaling the remaining groups, or as in the baseline.
func (b *builder) autoscaler() {
	b.plan.Autoscaler.Deployment = b.config.Autoscaler
	b.plan.Autoscaler.FallbackArgs = []string{
		"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/" + b.config.ClusterName,
		"--balance-similar-node-groups",
	}
	if b.config.Enabled {
		b.plan.Autoscaler.Managed = b.facts.scalingGroups()
	}
	scaled := b.scaled()
	switch {
	case !b.config.Enabled:
		b.plan.Autoscaler.State = AutoscalerBaseline
	case len(scaled) == 0:
		b.plan.Autoscaler.State = AutoscalerOff
	default:
		b.plan.Autoscaler.State = AutoscalerGroups
		var groups []AutoscaledGroup
		for _, g := range scaled {
			for _, asg := range g.Resources.AutoScalingGroups {
				groups = append(groups, AutoscaledGroup{Min: g.Scaling.Min, Max: g.Scaling.Max, ASG: asg.Name})
			}
		}
		b.plan.Autoscaler.Args = Args(groups)
	}
}

// scalingGroups returns the sorted names of the Auto Scaling groups of all managed node groups.
func (f Facts) scalingGroups() []string {
	var all []string
	for _, g := range f.NodeGroups {
		for _, asg := range g.Resources.AutoScalingGroups {
			all = append(all, asg.Name)
		}
	}
	slices.Sort(all)
	return all
}

// scaled returns the groups that Cluster Autoscaler keeps scaling beside Karpenter: the additional ones, and build
// groups that no pool replaces, with the size that they return to.
func (b *builder) scaled() []NodeGroup {
	groups := slices.Clone(b.facts.OfRole(b.config, RoleAdditional))
	if !b.plan.Nodegroups.BuildEmpty {
		groups = append(groups, b.facts.OfRole(b.config, RoleBuild)...)
	}
	for i, g := range groups {
		if before, emptied := b.facts.Records.Emptied[g.Name]; emptied {
			groups[i].Scaling = b.plan.Nodegroups.Back(g.Name, before, g.Scaling)
		}
	}
	return groups
}

// autoscalerSection leaves out Managed, which the step only uses for its search. A node group that is created or
// deleted does not make the step due.
func autoscalerSection(p *Plan) any {
	section := p.Autoscaler
	section.Managed = nil
	return section
}
