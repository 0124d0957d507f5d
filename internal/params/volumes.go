package params

import (
	"cmp"
	"fmt"
)

// Limits of EBS for gp3: "Amazon EBS volume types" in its user guide.
const (
	gp3         = "gp3"
	baseIOPS    = 3000 // what a volume of any size has
	mostPerGiB  = 500
	iopsPerMiBs = 4
)

// volumes checks the IOPS and the throughput of the pools' volumes. They are never lowered: a volume that does less than what is
// written would be found out under load.
func (r *Result) volumes() {
	workload := r.Config.Workload
	disk := cmp.Or(workload.Disk, r.Config.NodeDisk)
	if !r.refused("karpenter_node_volume_type") {
		r.provision("karpenter_node_volume_iops", "", "karpenter_node_volume_throughput", "", workload, disk, "karpenter_node_disk",
			"karpenter_node_volume_type")
	}
	for i, pool := range r.Config.Additional {
		at := fmt.Sprintf("[%d]", i)
		named := func(field string) string { return Join(at, field) }
		if !pool.Has("volume_iops") && pool.VolumeType == gp3 && workload.VolumeType == gp3 {
			pool.VolumeIOPS = workload.VolumeIOPS
		}
		if !pool.Has("volume_throughput") && pool.VolumeType == gp3 && workload.VolumeType == gp3 {
			pool.VolumeThroughput = workload.VolumeThroughput
		}
		if !pool.Has("volume_iops") && !pool.Has("volume_throughput") && !pool.Has("disk") {
			continue // the same as the workload's
		}
		r.provision(ParamAdditional, named("volume_iops"), ParamAdditional, named("volume_throughput"), pool, cmp.Or(pool.Disk, disk),
			named("disk"), named("volume_type"))
	}
}

// provision checks one pool's volume. The names of disk and kind are for the sentences.
func (r *Result) provision(iopsOf, iopsAt, throughputOf, throughputAt string, pool Pool, disk int, diskName, kindName string) {
	iopsName, throughputName := cmp.Or(iopsAt, iopsOf), cmp.Or(throughputAt, throughputOf)
	if pool.VolumeType != gp3 {
		for _, given := range []struct {
			parameter, at, name string
			value               int
		}{{iopsOf, iopsAt, iopsName, pool.VolumeIOPS}, {throughputOf, throughputAt, throughputName, pool.VolumeThroughput}} {
			if given.value > 0 {
				r.problem(given.parameter, given.at, "%s is %d, and %s is %s: allowed is 0, because it is for volumes of type gp3 only; leave it "+
					"out, or write %s gp3", given.name, given.value, kindName, pool.VolumeType, kindName)
			}
		}
		return
	}
	if most := max(baseIOPS, mostPerGiB*disk); pool.VolumeIOPS > most {
		r.problem(iopsOf, iopsAt, "%s is %d, but EBS provisions at most %d IOPS for each GiB of a gp3 volume, and the pool's disk has %d GiB: "+
			"allowed are %d; write %d or less, or %s of %d", iopsName, pool.VolumeIOPS, mostPerGiB, disk, most, most, diskName,
			(pool.VolumeIOPS+mostPerGiB-1)/mostPerGiB)
	}
	if iops := cmp.Or(pool.VolumeIOPS, baseIOPS); pool.VolumeThroughput*iopsPerMiBs > iops {
		r.problem(throughputOf, throughputAt, "%s is %d MiB/s, but EBS provisions at most 0.25 MiB/s for each of the volume's IOPS, "+
			"which are %d: allowed are %d; write %d or less, or %s of %d", throughputName, pool.VolumeThroughput, iops, iops/iopsPerMiBs,
			iops/iopsPerMiBs,
			iopsName, pool.VolumeThroughput*iopsPerMiBs)
	}
}
