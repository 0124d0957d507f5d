package nodes

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// A pool with an overridden AMI family has the devices that the family boots from, unless the devices are overridden
// too.
func TestDevicesFollowTheAMIFamily(t *testing.T) {
	xvda := func(size, kind string) object {
		return object{"deviceName": "/dev/xvda", "ebs": object{"encrypted": true, "volumeSize": size, "volumeType": kind}}
	}
	bottlerocket := []any{
		xvda("4Gi", "gp3"),
		object{"deviceName": "/dev/xvdb", "ebs": object{"encrypted": true, "volumeSize": "70Gi", "volumeType": "io2", "iops": 3000.0}},
	}
	one := []any{object{"deviceName": "/dev/xvda", "ebs": object{"encrypted": true, "volumeSize": "70Gi", "volumeType": "io2",
		"iops": 3000.0}}}
	for _, c := range []struct {
		what, config string
		want         []any
	}{
		{"the default family", `{}`, one},
		{"Bottlerocket by alias", `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"bottlerocket@latest"}]}}`, bottlerocket},
		{"Bottlerocket by family", `{"ec2NodeClass":{"amiFamily":"Bottlerocket","amiSelectorTerms":[{"id":"ami-0123456789abcdef0"}]}}`,
			bottlerocket},
		{"Bottlerocket's AMI with a user's own start",
			`{"ec2NodeClass":{"amiFamily":"Custom","amiSelectorTerms":[{"alias":"bottlerocket@v1.50.0"}]}}`, bottlerocket},
		{"AL2", `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2@latest"}]}}`, one},
		{"a family of one's own", `{"ec2NodeClass":{"amiFamily":"Custom","amiSelectorTerms":[{"id":"ami-0123456789abcdef0"}]}}`, one},
		{"devices overridden too", `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"bottlerocket@latest"}],` +
			`"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"9Gi"}}]}}`,
			[]any{object{"deviceName": "/dev/xvda", "ebs": object{"volumeSize": "9Gi"}}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			places(t, rendered(t, plan.Facts{}, map[string]string{"karpenter_node_disk": "70", "karpenter_node_volume_type": "io2",
				"karpenter_config": c.config}), map[string]any{
				"EC2NodeClass/workload spec.blockDeviceMappings": c.want,
			})
		})
	}
}
