package params

import (
	"fmt"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// leftAlone applies "deleting is never a command" to a tree that has been deleted altogether: the rack stays as it was last
// applied, also on its way to Karpenter's end.
func (r *Result) leftAlone(in Input) Input {
	if len(in.Params) > 0 || in.Previous[enabled] != "true" && !in.Removing {
		return in
	}
	r.warning("rack", "", "the rack has no parameters any more, and stays as they were last applied, because deleting is no command; to turn Karpenter off, write %s=false (and %s=%s), else write them again",
		enabled, clusterName, in.Previous[clusterName])
	in.Params = in.Previous
	return in
}

// keepOn applies "deleting is never a command": what was turned on stays on until a value says otherwise.
func (r *Result) keepOn(in Input) {
	for _, name := range []string{authMode, enabled} {
		if _, given := r.written[name]; given || in.Previous[name] != "true" {
			continue
		}
		r.written[name] = "true"
		if name == authMode {
			r.warning(name, "", "%s is not set and counts as true, because it has been applied and is one-way; set it to true", name)
		} else {
			r.warning(name, "", "%s is not set and counts as true, because Karpenter is on; set it to true, or to false to turn Karpenter off", name)
		}
	}
}

// RackName is what is wrong with a rack's name, nil with a good one. Karpenter, where it is to be on, wants a shorter one.
func RackName(rack string, karpenter bool) *Problem {
	var wrong Problem
	switch {
	case !names.ValidRack(rack):
		wrong = NewProblem("rack", "", "the rack's name is %s; allowed is a-z first, then a-z, 0-9 and dashes, and no dash at the end; "+
			"use another name", short(rack))
	case karpenter && len(rack) > names.MaxEnabledRack:
		wrong = NewProblem("rack", "", "the rack's name %s has %d characters, but with %s=true at most %d are allowed, "+
			"because names of AWS resources are made of it; use a shorter name", short(rack), len(rack), enabled, names.MaxEnabledRack)
	default:
		return nil
	}
	return &wrong
}

// rules are what only the whole rack shows.
func (r *Result) rules(in Input) {
	if wrong := RackName(in.Rack, r.Config.Enabled); wrong != nil {
		r.Problems = append(r.Problems, *wrong)
	}
	authGiven, authBefore := r.Effective[authMode], in.Previous[authMode]
	if authGiven == "false" && authBefore == "true" {
		r.problem(authMode, "", "%s is false, but it has been applied and EKS cannot go back to the CONFIG_MAP access mode; write true (karpenter_enabled=false is what turns Karpenter off)", authMode)
	}
	if r.Config.Enabled && !r.Config.AuthMode && !r.refused(authMode) {
		r.problem(enabled, "", "%s is true, but %s is not; Karpenter needs the cluster's access entries; set %s to true too, both may be written at once", enabled, authMode, authMode)
	}
	r.disks()
	for _, group := range r.Config.BuildNodeGroups {
		if slices.Contains(r.Config.SystemNodeGroups, group) {
			r.problem(buildNodeGroups, "", "%s and %s both have the node group %s; a group is for one of them; take it out of one", buildNodeGroups, systemNodeGroups, group)
		}
	}
}

// cluster is the cluster that everything else is judged with. A rack whose access has been migrated keeps the one that it has: another
// name is refused as that, and not looked up.
func (r *Result) cluster(in Input) {
	name := r.Config.ClusterName
	if name == "" {
		name = in.Rack
		if !names.ValidRack(in.Rack) {
			name = "cluster" // the rules refuse the rack's name; the rest is judged with a good one
		}
	}
	if has := in.Previous[clusterName]; in.Previous[authMode] == "true" && has != "" && name != has {
		if !r.refused(clusterName) {
			r.problem(clusterName, "", "%s is %s, but the rack's access to cluster %s has been migrated; "+
				"write %s, or make another rack for the other cluster", clusterName, short(name), short(has), has)
		}
		name = has
	}
	r.Config.ClusterName, r.Effective[clusterName] = name, name
}

// maxDisk is the largest volume that the pinned EC2NodeClass CRD takes, in GiB.
const maxDisk = 59000

// disks checks the sizes that end up in EC2NodeClasses, under the parameter that each comes from.
func (r *Result) disks() {
	name, size := "karpenter_node_disk", r.Config.Workload.Disk
	if size == 0 {
		name, size = "node_disk", r.Config.NodeDisk
	}
	if size > maxDisk {
		r.hindrance(name, "", "%s is %d, but Karpenter makes no volume of more than %d GiB; write %d or less", name, size, maxDisk, maxDisk)
	}
	for i, pool := range r.Config.Additional {
		if at := Join(fmt.Sprintf("[%d]", i), "disk"); pool.Disk > maxDisk {
			r.problem(additionalConfig, at, "%s is %d, but Karpenter makes no volume of more than %d GiB; write %d or less", at, pool.Disk, maxDisk, maxDisk)
		}
	}
}

// hindrance is a problem, but for a rack that turns Karpenter off: that is never held up by what only Karpenter's nodes need.
func (r *Result) hindrance(parameter, path, format string, args ...any) {
	if r.turningOff {
		r.warning(parameter, path, format, args...)
		return
	}
	r.problem(parameter, path, format, args...)
}

// refused tells whether a parameter has a problem already.
func (r *Result) refused(parameter string) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Parameter == parameter })
}
