package params

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// leftAlone handles a rack whose parameters have all been deleted. Deleting parameters never turns Karpenter off, so
// the last applied parameters stay in force, also while Karpenter is being removed.
func (r *Result) leftAlone(in Input) Input {
	if len(in.Params) > 0 || in.Previous[enabled] != "true" && !in.Removing {
		return in
	}
	r.warning("rack", "", "the rack has no parameters any more, and stays as they were last applied, because deleting is no command; to "+
		"turn Karpenter off, write %s=false (and %s=%s), else write them again", enabled, clusterName, in.Previous[clusterName])
	in.Params = in.Previous
	return in
}

// keepOn keeps karpenter_auth_mode and karpenter_enabled true when they are no longer set, because deleting a parameter
// must not turn anything off.
func (r *Result) keepOn(in Input) {
	for _, name := range []string{authMode, enabled} {
		if _, given := r.written[name]; given || in.Previous[name] != "true" {
			continue
		}
		r.written[name] = "true"
		if name == authMode {
			r.warning(name, "", "%s is not set and counts as true, because it has been applied and is one-way; set it to true", name)
		} else {
			r.warning(name, "",
				"%s is not set and counts as true, because Karpenter is on; set it to true, or to false to turn Karpenter off", name)
		}
	}
}

// ofAnotherName ends a sentence about a rack's name, which is often that of its cluster.
const ofAnotherName = ", and sawhorse register RACK --cluster NAME for a cluster of another name"

// RackName returns the problem with a rack's name, or nil. A rack with Karpenter must have a shorter name.
func RackName(rack string, karpenter bool) *Problem {
	var wrong Problem
	switch {
	case !ownership.ValidRack(rack):
		wrong = NewProblem("rack", "", "the rack's name is %s; allowed is a-z first, then a-z, 0-9 and dashes, and no dash at the end; "+
			"use another name%s", Quoted(rack), ofAnotherName)
	case karpenter && len(rack) > ownership.MaxEnabledRack:
		wrong = NewProblem("rack", "", "the rack's name %s has %d characters, but with %s=true at most %d are allowed, "+
			"because names of AWS resources are made of it; use a shorter name%s", Quoted(rack), len(rack), enabled, ownership.MaxEnabledRack,
			ofAnotherName)
	default:
		return nil
	}
	return &wrong
}

// rules checks what involves several parameters.
func (r *Result) rules(in Input) {
	if wrong := RackName(in.Rack, r.Config.Enabled); wrong != nil {
		r.Problems = append(r.Problems, *wrong)
	}
	authGiven, authBefore := r.Effective[authMode], in.Previous[authMode]
	if authGiven == "false" && authBefore == "true" {
		r.problem(authMode, "", "%s is false, but it has been applied and EKS cannot go back to the CONFIG_MAP access mode; "+
			"write true (karpenter_enabled=false is what turns Karpenter off)", authMode)
	}
	if r.Config.Enabled && !r.Config.AuthMode && !r.refused(authMode) {
		r.problem(enabled, "",
			"%s is true, but %s is not; Karpenter needs the cluster's access entries; set %s to true too, both may be written at once",
			enabled, authMode, authMode)
	}
	r.disks()
	r.volumes()
	r.static()
	r.blocks()
	for _, group := range r.Config.BuildNodeGroups {
		if slices.Contains(r.Config.SystemNodeGroups, group) {
			r.problem(buildNodeGroups, "", "%s and %s both have the node group %s; a group is for one of them; take it out of one",
				buildNodeGroups, systemNodeGroups, group)
		}
	}
}

// cluster sets the cluster name that all other checks use. A rack whose access has been migrated keeps its cluster:
// another name is refused and not looked up.
func (r *Result) cluster(in Input) {
	name := r.Config.ClusterName
	if name == "" {
		name = in.Rack
		if !ownership.ValidRack(in.Rack) {
			name = "cluster" // rules() refuses the rack's name; the other checks need a valid one
		}
	}
	if has := in.Previous[clusterName]; in.Previous[authMode] == "true" && has != "" && name != has {
		if !r.refused(clusterName) {
			r.problem(clusterName, "", "%s is %s, but the rack's access to cluster %s has been migrated; "+
				"write %s, or make another rack for the other cluster", clusterName, Quoted(name), Quoted(has), has)
		}
		name = has
	}
	r.Config.ClusterName, r.Effective[clusterName] = name, name
}

// maxDisk is the largest volume in GiB that the pinned EC2NodeClass CRD accepts.
const maxDisk = 59000

// disks checks the volume sizes of the EC2NodeClasses, and reports each under the parameter that it comes from.
func (r *Result) disks() {
	name, size := "karpenter_node_disk", r.Config.Workload.Disk
	if size == 0 {
		name, size = "node_disk", r.Config.NodeDisk
	}
	if size > maxDisk {
		r.RejectUnlessDisabling(NewProblem(name, "", "%s is %d, but Karpenter makes no volume of more than %d GiB; write %d or less",
			name, size, maxDisk, maxDisk))
	} else if nearest, limits, made := OutOfSize(r.Config.Workload.VolumeType, int64(size)); !made {
		r.RejectUnlessDisabling(NewProblem(name, "", "%s is %d, and EBS makes volumes of type %s %s; write %s, or another "+
			"karpenter_node_volume_type", name, size, r.Config.Workload.VolumeType, limits, orBeyond(nearest, size)))
	}
	inherits := size
	for i, pool := range r.Config.Additional {
		if at := Join(fmt.Sprintf("[%d]", i), "disk"); pool.Disk > maxDisk {
			r.problem(ParamAdditional, at, "%s is %d, but Karpenter makes no volume of more than %d GiB; write %d or less", at, pool.Disk,
				maxDisk, maxDisk)
			continue
		}
		r.diskOfType(fmt.Sprintf("[%d]", i), pool, inherits)
	}
}

// diskOfType checks the size of an entry's volume for its type, where one of them is the entry's own.
func (r *Result) diskOfType(at string, pool Pool, inherits int) {
	disk, kind := Join(at, "disk"), Join(at, "volume_type")
	if nearest, limits, made := OutOfSize(pool.VolumeType, int64(cmp.Or(pool.Disk, inherits))); made {
		return
	} else if pool.Disk > 0 {
		r.problem(ParamAdditional, disk, "%s is %d, and EBS makes volumes of type %s %s; write %s, or another %s", disk, pool.Disk,
			pool.VolumeType, limits, orBeyond(nearest, pool.Disk), kind)
	} else if pool.Has("volume_type") {
		r.problem(ParamAdditional, kind, "%s is %s, and EBS makes volumes of this type %s, and the pool's disk has %d GiB; write another "+
			"type, or %s of %s", kind, pool.VolumeType, limits, inherits, disk, orBeyond(nearest, inherits))
	}
}

// orBeyond says of a limit on which side of it a size may be.
func orBeyond(limit int64, size int) string {
	if int64(size) < limit {
		return fmt.Sprintf("%d or more", limit)
	}
	return fmt.Sprintf("%d or less", limit)
}

// refused reports whether a parameter already has a problem.
func (r *Result) refused(parameter string) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Parameter == parameter })
}

// refusedAt reports whether a path in a parameter's JSON already has a problem.
func (r *Result) refusedAt(parameter, at string) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Parameter == parameter && p.Path == at })
}
