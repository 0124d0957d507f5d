package nodes

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Karpenter's AMI families for Linux, in lower case. It knows no devices of custom.
const (
	familyAL2          = "al2"
	familyAL2023       = "al2023"
	familyBottlerocket = "bottlerocket"
	familyCustom       = "custom"
)

// bootFamily returns, in lower case, the AMI family that determines a node's devices. Karpenter uses amiFamily, else
// the family of the alias. With amiFamily Custom the user data are the user's own, and an alias still selects the AMI.
func bootFamily(spec map[string]any) string {
	family, _ := spec["amiFamily"].(string)
	family = strings.ToLower(family)
	if family != "" && family != familyCustom {
		return family
	}
	return cmp.Or(aliasFamily(spec), family)
}

// aliasFamily returns the family of the AMIs if an alias selects them, or "" if they may be the user's own, whose
// devices and disks are not known.
func aliasFamily(spec map[string]any) string {
	for _, term := range objects(spec["amiSelectorTerms"]) {
		if alias, _ := term["alias"].(string); alias != "" {
			family, _, _ := strings.Cut(alias, "@")
			return family
		}
	}
	return ""
}

// devices returns the block device mappings of a pool's nodes. They replace Karpenter's defaults
// (DefaultBlockDeviceMappings in its pkg/providers/amifamily), with the pool's size and volume type. Bottlerocket has
// its system on /dev/xvda, and images, logs and pods on /dev/xvdb. Every other Linux family has everything on
// /dev/xvda.
func (p pool) devices(family string) []any {
	device := func(name string, ebs map[string]any) any { return map[string]any{"deviceName": name, "ebs": ebs} }
	disk := map[string]any{"encrypted": true, "volumeSize": fmt.Sprintf("%dGi", p.Disk), "volumeType": p.VolumeType}
	if iops := provisionedIOPS(p.VolumeType, p.Disk); iops > 0 {
		disk["iops"] = iops
	}
	if p.VolumeType == "gp3" && p.VolumeIOPS > 0 {
		disk["iops"] = int64(p.VolumeIOPS)
	}
	if p.VolumeType == "gp3" && p.VolumeThroughput > 0 {
		disk["throughput"] = int64(p.VolumeThroughput)
	}
	if family == familyBottlerocket {
		system := map[string]any{"encrypted": true, "volumeSize": "4Gi", "volumeType": "gp3"}
		return []any{device(bootDevice, system), device(bottlerocketData, disk)}
	}
	return []any{device(bootDevice, disk)}
}

// provisionedIOPS returns the IOPS for io1 and io2, which EC2 requires: 3,000 as for gp3, but at most 50 for each GiB
// (the limit of io1) and at least 100. It returns 0 for other types.
func provisionedIOPS(volumeType string, gib int) int64 {
	if volumeType != "io1" && volumeType != "io2" {
		return 0
	}
	return min(params.BaseIOPS, params.ProvisionedIOPS("io1").MostOf(int64(gib)))
}
