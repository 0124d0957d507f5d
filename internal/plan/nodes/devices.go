package nodes

import (
	"fmt"
	"strings"
)

// AMI families of Karpenter that have devices of their own, or whose devices it does not know.
const (
	familyBottlerocket = "bottlerocket"
	familyCustom       = "custom"
)

// bootFamily is the AMI family whose devices a node of the EC2NodeClass boots from, in lower case: Karpenter takes amiFamily, else the
// family of the alias. With Custom the user data are the user's own, and an alias still tells the AMI.
func bootFamily(spec map[string]any) string {
	family, _ := spec["amiFamily"].(string)
	family = strings.ToLower(family)
	if family != "" && family != familyCustom {
		return family
	}
	terms, _ := spec["amiSelectorTerms"].([]any)
	for _, entry := range terms {
		term, _ := entry.(map[string]any)
		if alias, _ := term["alias"].(string); alias != "" {
			family, _, _ = strings.Cut(alias, "@")
		}
	}
	return family
}

// devices are the block device mappings of a pool's nodes. They stand in for Karpenter's own defaults (DefaultBlockDeviceMappings in
// its pkg/providers/amifamily), with the pool's size and volume type: Bottlerocket has its system on /dev/xvda, and images, logs and
// pods on /dev/xvdb; every other Linux family has all of it on /dev/xvda.
func (p pool) devices(family string) []any {
	device := func(name string, ebs map[string]any) any { return map[string]any{"deviceName": name, "ebs": ebs} }
	disk := map[string]any{"encrypted": true, "volumeSize": fmt.Sprintf("%dGi", p.Disk), "volumeType": p.VolumeType}
	if iops := provisionedIOPS(p.VolumeType, p.Disk); iops > 0 {
		disk["iops"] = iops
	}
	if family == familyBottlerocket {
		system := map[string]any{"encrypted": true, "volumeSize": "4Gi", "volumeType": "gp3"}
		return []any{device("/dev/xvda", system), device("/dev/xvdb", disk)}
	}
	return []any{device("/dev/xvda", disk)}
}

// provisionedIOPS is what EC2 must be told for io1 and io2, and refuses to guess: gp3's 3,000, within io1's 50 for each GiB
// and the least of 100.
func provisionedIOPS(volumeType string, gib int) int64 {
	if volumeType != "io1" && volumeType != "io2" {
		return 0
	}
	return int64(max(100, min(3000, 50*gib)))
}
