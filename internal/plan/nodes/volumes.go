package nodes

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// volumeLimits are EBS's limits of a volume type: "Amazon EBS volume types" in its user guide, and EbsBlockDevice in
// EC2's API reference.
type volumeLimits struct {
	// least and most are the size in GiB.
	least, most int64
	// leastIOPS and mostIOPS are zero for a type whose IOPS are not provisioned. perGiB is the most IOPS for each GiB.
	leastIOPS, mostIOPS, perGiB int64
	// cold volumes cannot be booted from.
	cold bool
}

var volumeTypes = map[string]volumeLimits{
	"gp2":      {least: 1, most: 16384},
	"gp3":      {least: 1, most: 65536, leastIOPS: baseIOPS, mostIOPS: 80000, perGiB: 500},
	"io1":      {least: 4, most: 16384, leastIOPS: 100, mostIOPS: 64000, perGiB: 50},
	"io2":      {least: 4, most: 65536, leastIOPS: 100, mostIOPS: 256000, perGiB: 1000},
	"sc1":      {least: 125, most: 16384, cold: true},
	"st1":      {least: 125, most: 16384, cold: true},
	"standard": {least: 1, most: 1024},
}

// baseIOPS is what a gp3 volume of any size has. leastThroughput and mostThroughput are the limits of its throughput
// in MiB/s, which is also at most a quarter of its IOPS.
const baseIOPS, leastThroughput, mostThroughput = 3000, 125, 2000

// snapshots are the sizes in GiB of the snapshots that AMIs boot from: EC2 refuses a smaller volume. Those of AL2023
// and AL2 are launch_block_device_mappings_volume_size in amazon-eks-ami. Those of Bottlerocket are 2 or 4, by
// variant.
var snapshots = map[string]int64{familyAL2: 4, familyAL2023: 20, familyBottlerocket: 2}

// bootDevice is the device that the AMIs of every Linux family that Karpenter knows boot from.
const bootDevice = "/dev/xvda"

// bottlerocketData is the device where Bottlerocket has images, logs and pods.
const bottlerocketData = "/dev/xvdb"

// volumes checks block device mappings that the CRD accepts and EC2 refuses when Karpenter launches a node.
func (d *draft) volumes() (found findings) {
	family := aliasFamily(d.spec())
	if family != bootFamily(d.spec()) {
		family = "" // the two contradict each other, which is refused
	}
	var seen []string
	for i, mapping := range objects(d.spec()["blockDeviceMappings"]) {
		at := []string{"blockDeviceMappings", strconv.Itoa(i)}
		name, _ := mapping["deviceName"].(string)
		switch {
		case mapping["deviceName"] == nil:
			found.refuse(d.blame(at...), "has no deviceName, and EC2 refuses such a volume; write, for example, \"deviceName\":%q", bootDevice)
		case slices.Contains(seen, name):
			found.refuse(d.blame(append(at, "deviceName")...), "is %s, which another mapping has too; EC2 takes one volume "+
				"for each device; keep one of them", params.Quoted(name))
		}
		seen = append(seen, name)
		ebs := inner(mapping, "ebs")
		v := volume{findings: &found, draft: d, at: append(at, "ebs"), ebs: ebs, boots: family != "" && name == bootDevice}
		v.kind, _ = ebs["volumeType"].(string)
		v.size()
		if v.boots {
			v.fits(family)
		}
		v.limits()
		v.keys()
	}
	return found
}

// volume checks one EBS volume. gib is 0 if the size is not known.
type volume struct {
	*findings
	draft *draft
	at    []string
	ebs   map[string]any
	boots bool
	kind  string
	gib   int64
}

// refuse adds a problem with one of the volume's fields.
func (v *volume) refuse(field, format string, args ...any) {
	v.findings.refuse(v.from(field), format, args...)
}

func (v *volume) from(field string) origin {
	return v.draft.blame(append(slices.Clone(v.at), field)...)
}

// gibs formats a size in GiB for a suggestion: as a number for a parameter or a pool, and as a quantity for
// karpenter_config.
func (v *volume) gibs(size int64) string {
	if v.from("volumeSize").parameter == params.ParamOverride {
		return fmt.Sprintf("%q", fmt.Sprintf("%dGi", size))
	}
	return strconv.FormatInt(size, 10)
}

// sized matches the sizes that Karpenter's CRD accepts, but does not check their upper limit.
var sized = regexp.MustCompile(`^[1-9][0-9]*(Gi|G|Ti|T)$`)

// size reads the volume's size in GiB, as Karpenter rounds it.
func (v *volume) size() {
	text, is := v.ebs["volumeSize"].(string)
	if number, bare := v.ebs["volumeSize"].(int64); bare {
		text, is = strconv.FormatInt(number, 10), true
	}
	switch digits := firstDigits.FindString(text); {
	case !is || text == "":
	case !sized.MatchString(text):
		v.refuse("volumeSize", "is %s; allowed is a text of a whole number and Gi, G, Ti or T; write, for example, \"%sGi\"",
			params.Quoted(text), cmp.Or(digits[:min(len(digits), 5)], "100"))
	case readableQuantity(text):
		quantity := resource.MustParse(text)
		v.gib = int64(math.Ceil(float64(quantity.Value()) / (1 << 30)))
	}
}

var firstDigits = regexp.MustCompile(`^[1-9][0-9]*`)

// fits checks that the AMI's snapshot fits on the volume.
func (v *volume) fits(family string) {
	if least := snapshots[family]; v.gib > 0 && v.gib < least {
		v.refuse("volumeSize", "makes a volume of %d GiB, which is smaller than the snapshot of the AMIs of %s: EC2 launches no node from "+
			"them; write %s or more", v.gib, display(family), v.gibs(least))
	}
}

func (v *volume) limits() {
	limits, known := volumeTypes[v.kind]
	if !known {
		return // the type is the AMI's, or refused
	}
	switch {
	case v.boots && limits.cold:
		v.refuse("volumeType", "is %s, and nodes cannot boot from such a volume; write, for example, gp3", v.kind)
	case v.gib == 0:
	case v.gib < limits.least:
		v.refuse("volumeSize", "makes a volume of %d GiB, and EBS makes none of %s below %d GiB; write %s or more, or another volume type",
			v.gib, v.kind, limits.least, v.gibs(limits.least))
	case v.gib > limits.most:
		v.refuse("volumeSize", "makes a volume of %d GiB, and EBS makes none of %s above %d GiB; write %s or less, or another volume type",
			v.gib, v.kind, limits.most, v.gibs(limits.most))
	}
	iops, given := v.ebs["iops"].(int64)
	v.iops(limits, iops, given)
	v.throughput(cmp.Or(iops, int64(baseIOPS)))
}

func (v *volume) iops(limits volumeLimits, iops int64, given bool) {
	switch most := max(limits.leastIOPS, limits.perGiB*v.gib); {
	case limits.mostIOPS == 0 && given:
		v.refuse("iops", "is %d, and IOPS of a volume of type %s cannot be provisioned; leave it out, or write the volumeType gp3",
			iops, v.kind)
	case limits.mostIOPS == 0:
	case !given && v.kind != "gp3":
		v.refuse("iops", "is missing, and EC2 makes no volume of type %s without; write, for example, %d",
			v.kind, min(int64(baseIOPS), most))
	case !given:
	case iops < limits.leastIOPS || iops > limits.mostIOPS:
		v.refuse("iops", "is %d; a volume of type %s has from %d to %d; write one of these",
			iops, v.kind, limits.leastIOPS, limits.mostIOPS)
	case v.gib > 0 && iops > most:
		v.refuse("iops", "is %d, and EBS provisions at most %d for each GiB of a volume of type %s, and this one has %d GiB; write %d or less, "+
			"or a larger volumeSize", iops, limits.perGiB, v.kind, v.gib, most)
	}
}

func (v *volume) throughput(iops int64) {
	throughput, given := v.ebs["throughput"].(int64)
	switch {
	case !given:
	case v.kind != "gp3":
		v.refuse("throughput", "is %d, and only that of a gp3 volume can be provisioned; leave it out, or write the volumeType gp3",
			throughput)
	case throughput < leastThroughput || throughput > mostThroughput:
		v.refuse("throughput", "is %d; a gp3 volume has from %d to %d MiB/s; write one of these",
			throughput, leastThroughput, mostThroughput)
	case throughput*4 > iops:
		v.refuse("throughput", "is %d MiB/s, and EBS provisions at most a quarter of the volume's IOPS, which are %d; write %d or less, or "+
			"iops of %d", throughput, iops, iops/4, throughput*4)
	}
}

// keys checks the KMS key. EC2 accepts one only for an encrypted volume.
func (v *volume) keys() {
	if encrypted, _ := v.ebs["encrypted"].(bool); v.ebs["kmsKeyID"] != nil && !encrypted {
		v.refuse("kmsKeyID", "is given, but the volume is not to be encrypted, and EC2 refuses that; write \"encrypted\":true too")
	}
}

// display returns an AMI family as Karpenter spells it.
func display(family string) string {
	if family == familyBottlerocket {
		return "Bottlerocket"
	}
	return strings.ToUpper(family)
}
