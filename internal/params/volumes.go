package params

import (
	"cmp"
	"fmt"
)

// Limits of EBS for gp3 volumes: "Amazon EBS volume types" in its user guide. BaseIOPS is what a volume of any size has; the
// throughput is in MiB/s.
const (
	BaseIOPS        = 3000
	LeastThroughput = 125
	MostThroughput  = 2000

	gp3         = "gp3"
	iopsPerMiBs = 4
)

// IOPSLimits are EBS's limits of the IOPS of a volume type. PerGiB is the most for each GiB.
type IOPSLimits struct{ Least, Most, PerGiB int64 }

// ProvisionedIOPS returns the limits of a volume type. They are 0 if its IOPS are not provisioned.
func ProvisionedIOPS(volumeType string) IOPSLimits {
	switch volumeType {
	case gp3:
		return IOPSLimits{Least: BaseIOPS, Most: 80000, PerGiB: 500}
	case "io1":
		return IOPSLimits{Least: 100, Most: 64000, PerGiB: 50}
	case "io2":
		return IOPSLimits{Least: 100, Most: 256000, PerGiB: 1000}
	}
	return IOPSLimits{}
}

// SizeLimits returns the least and the most GiB of a volume type (the same page of EBS's user guide), or 0 for a type that is not known.
func SizeLimits(volumeType string) (least, most int64) {
	const tebi = 1 << 10
	switch volumeType {
	case "gp2":
		return 1, 16 * tebi
	case gp3:
		return 1, 64 * tebi
	case "io1":
		return 4, 16 * tebi
	case "io2":
		return 4, 64 * tebi
	case "st1", "sc1":
		return 125, 16 * tebi
	case "standard":
		return 1, tebi
	}
	return 0, 0
}

// OutOfSize returns what to write in place of a size in GiB that EBS does not make of a volume type, and the limits for a sentence.
// made is true if it makes it, or if the type is not known.
func OutOfSize(volumeType string, gib int64) (nearest int64, limits string, made bool) {
	least, most := SizeLimits(volumeType)
	return max(least, min(gib, most)), fmt.Sprintf("from %d to %d GiB", least, most), most == 0 || gib >= least && gib <= most
}

// MostOf returns the most IOPS that EBS provisions for the size of a volume.
func (l IOPSLimits) MostOf(gib int64) int64 { return max(l.Least, l.PerGiB*gib) }

// ThroughputOf returns the most throughput that EBS provisions for the IOPS of a gp3 volume.
func ThroughputOf(iops int64) int64 { return iops / iopsPerMiBs }

// IOPSOf returns the IOPS that a gp3 volume needs for a throughput.
func IOPSOf(throughput int64) int64 { return throughput * iopsPerMiBs }

// volume is what a pool's volume is to be. What was refused is unknown, and nothing follows from it.
type volume struct {
	kind                   string
	disk, iops, throughput int
	// iopsOf and throughputOf are the workload's parameters if the pool inherits from them.
	iopsOf, throughputOf string
	// named returns the parameter that a setting is in, or also the path in it.
	named func(setting string) (parameter, at string)
}

const unknown = -1

// volumes checks the IOPS and the throughput of the pools' volumes. They are never lowered: a volume that does less than what is
// written would be found out under load.
func (r *Result) volumes() {
	workload := r.workloadVolume()
	r.provision(workload)
	for i, pool := range r.Config.Additional {
		if pool.Has("volume_iops") || pool.Has("volume_throughput") || pool.Has("disk") { // else it is the same as the workload's
			r.provision(r.entryVolume(fmt.Sprintf("[%d]", i), pool, workload))
		}
	}
}

func (r *Result) workloadVolume() volume {
	pool := r.Config.Workload
	v := volume{pool.VolumeType, cmp.Or(pool.Disk, r.Config.NodeDisk), pool.VolumeIOPS, pool.VolumeThroughput, "", "",
		func(setting string) (parameter, at string) { return "karpenter_node_" + setting, "" }}
	if r.refused("karpenter_node_disk") || pool.Disk == 0 && r.refused("node_disk") {
		v.disk = unknown
	}
	if r.refused("karpenter_node_volume_iops") {
		v.iops = unknown
	}
	if r.refused("karpenter_node_volume_type") {
		v.kind = ""
	}
	return v
}

// entryVolume returns the volume of an entry's pool. A gp3 volume inherits from the workload's what the entry does not set.
func (r *Result) entryVolume(at string, pool Pool, workload volume) volume {
	v := volume{pool.VolumeType, cmp.Or(pool.Disk, workload.disk), pool.VolumeIOPS, pool.VolumeThroughput, "", "",
		func(setting string) (parameter, path string) { return ParamAdditional, Join(at, setting) }}
	wrong := func(field string) bool { return r.refusedAt(ParamAdditional, Join(at, field)) }
	inherits := pool.VolumeType == gp3 && workload.kind == gp3
	if inherits && !pool.Has("volume_iops") {
		v.iops, v.iopsOf = workload.iops, "karpenter_node_volume_iops"
	}
	if inherits && !pool.Has("volume_throughput") {
		v.throughput, v.throughputOf = workload.throughput, "karpenter_node_volume_throughput"
	}
	if wrong("disk") {
		v.disk = unknown
	}
	if wrong("volume_iops") || !pool.Has("volume_iops") && workload.kind == "" {
		v.iops = unknown
	}
	if wrong("volume_throughput") {
		v.throughput = unknown
	}
	if wrong("volume_type") {
		v.kind = ""
	}
	return v
}

// provision checks one volume.
func (r *Result) provision(v volume) {
	switch v.kind {
	case "": // unknown
	case gp3:
		r.provisionIOPS(v)
		r.provisionThroughput(v)
	default:
		r.unprovisioned(v, "volume_iops", v.iops)
		r.unprovisioned(v, "volume_throughput", v.throughput)
	}
}

// unprovisioned refuses what only a gp3 volume has.
func (r *Result) unprovisioned(v volume, setting string, value int) {
	if parameter, at := v.named(setting); value > 0 {
		r.problem(parameter, at, "%s is %d, and %s is %s: allowed is 0, because it is for volumes of type gp3 only; leave it "+
			"out, or write %[3]s gp3", v.name(setting), value, v.name("volume_type"), v.kind)
	}
}

func (r *Result) provisionIOPS(v volume) {
	parameter, at := v.named("volume_iops")
	limits, iops := ProvisionedIOPS(gp3), int64(v.iops)
	if most := limits.MostOf(int64(v.disk)); iops > most && v.disk != unknown {
		r.problem(parameter, at, "%s is %d%s, but EBS provisions at most %d IOPS for each GiB of a gp3 volume, and the pool's disk has %d GiB: "+
			"allowed are %d; write %[6]d or less, or %[7]s of %[8]d", v.name("volume_iops"), iops, inherited(v.iopsOf), limits.PerGiB, v.disk,
			most, v.name("disk"), (iops+limits.PerGiB-1)/limits.PerGiB)
	}
}

func (r *Result) provisionThroughput(v volume) {
	parameter, at := v.named("volume_throughput")
	iops, throughput := int64(cmp.Or(v.iops, BaseIOPS)), int64(v.throughput)
	if most := ThroughputOf(iops); throughput > most && iops != unknown {
		r.problem(parameter, at, "%s is %d MiB/s%s, but EBS provisions at most 0.25 MiB/s for each of the volume's IOPS, "+
			"which are %d: allowed are %d; write %[5]d or less, or %[6]s of %[7]d", v.name("volume_throughput"), throughput,
			inherited(v.throughputOf), iops, most, v.name("volume_iops"), IOPSOf(throughput))
	}
}

// name returns a setting's name for a sentence.
func (v volume) name(setting string) string {
	parameter, at := v.named(setting)
	return cmp.Or(at, parameter)
}

// inherited says of a value that it is a parameter's, if it is.
func inherited(from string) string {
	if from == "" {
		return ""
	}
	return ", as " + from + " says"
}
