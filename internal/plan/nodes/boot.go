package nodes

import (
	"context"
	"strconv"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// mostUserData is how many bytes of user data EC2 takes. Karpenter adds its own.
const mostUserData = 16 << 10

// boot refuses settings that the CRD accepts but with which no node joins the cluster or takes a pod.
func (d *draft) boot() (found findings) {
	if d.kind != "EC2NodeClass" {
		return nil
	}
	if inner(d.spec(), "metadataOptions")["httpEndpoint"] == "disabled" {
		found.refuse(d.blame("metadataOptions", "httpEndpoint"), "is disabled, and without the metadata service a node cannot read its user "+
			"data, and never joins the cluster; leave it out")
	}
	userData, _ := d.spec()["userData"].(string)
	if len(userData) > mostUserData && bootFamily(d.spec()) != familyBottlerocket { // whose TOML Karpenter writes anew, without comments
		found.refuse(d.blame("userData"), "has %d bytes, and EC2 takes %d, so it would launch no node; write less, and have the nodes load the "+
			"rest from S3", len(userData), mostUserData)
	}
	switch err := addsTo(userData, d.spec()); {
	case err != nil && bootFamily(d.spec()) == familyBottlerocket:
		found.refuse(d.blame("userData"), "is no TOML that Karpenter can read (%v), and Bottlerocket takes nothing else, so it would launch no "+
			"node; write, for example, \"[settings.kernel]\\nlockdown = \\\"integrity\\\"\"", err)
	case err != nil:
		found.refuse(d.blame("userData"), "is no MIME archive to which Karpenter can add its own part (%s), so it would launch no node; correct "+
			"it, or write a NodeConfig or a shell script alone", params.Quoted(err.Error())) // which may have a line of it
	}
	kubelet := inner(d.spec(), "kubelet")
	if pods, is := kubelet["maxPods"].(int64); is && pods == 0 {
		found.refuse(d.blame("kubelet", "maxPods"), "is 0, and nodes would take no pods; write, for example, 110, or leave it out")
	}
	addresses, _ := kubelet["clusterDNS"].([]any)
	for i, entry := range addresses {
		if text, is := entry.(string); is && len(validation.IsValidIP(nil, text)) > 0 {
			found.refuse(d.blame("kubelet", "clusterDNS", strconv.Itoa(i)), "is %s, which is no IP address, and the kubelet would not start; "+
				"write, for example, 172.20.0.10, or leave it out", params.Quoted(text))
		}
	}
	return found
}

// addsTo returns the error with which Karpenter refuses to add its own to a class's user data. The class then gets no condition that says
// so: it never becomes Ready, and the reason is only in the controller's log.
func addsTo(userData string, spec map[string]any) error {
	options := bootstrap.Options{ClusterCIDR: new("172.20.0.0/16"), KubeletConfig: new(ec2.KubeletConfiguration), CustomUserData: &userData}
	var adds bootstrap.Bootstrapper
	switch family := bootFamily(spec); {
	case userData == "" || spec["amiFamily"] == "Custom": // they stay as they are
		return nil
	case family == familyBottlerocket:
		adds = bootstrap.Bottlerocket{Options: options}
	case family == familyAL2023:
		adds = bootstrap.Nodeadm{Options: options}
	case family == familyAL2:
		adds = bootstrap.EKS{Options: options}
	default:
		return nil
	}
	_, err := adds.Script(context.Background())
	return err
}
