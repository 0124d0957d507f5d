package register

import (
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

var errDenied = &smithy.GenericAPIError{Code: "AccessDeniedException"}

// The operator lets the rack into its cluster: the one that is named, the one that the rack has, or the one with the
// rack's name. If these credentials cannot do that, register prints the command, and registers the parameters
// nevertheless.
func TestLetsTheRackIn(t *testing.T) {
	const in, tagging, arn = ownership.TagRack, "EKS.TagResource", "arn:aws:eks:eu-central-1:123456789012:cluster/"
	for _, c := range []struct {
		what    string
		prod    string // the rack that cluster prod lets in
		denied  string // the call that is denied
		cluster string // --cluster
		param   string // cluster_name, if it exists
		tagged  string // the cluster that carries the tag at the end
		left    string
		err     string
	}{
		{what: "the rack's own name", tagged: "demo"},
		{what: "--cluster", cluster: "prod", tagged: "prod"},
		{what: "cluster_name", param: "east", tagged: "east"},
		{what: "cluster_name that is unset", param: params.Unset, tagged: "demo"},
		{what: "cluster_name that is the default", param: params.Default, tagged: "demo"},
		{what: "--cluster, which is what unset means", cluster: "demo", param: params.Unset, tagged: "demo"},
		{what: "both, and alike", cluster: "east", param: "east", tagged: "east"},
		{what: "in already", prod: "demo", denied: tagging, cluster: "prod", tagged: "prod"},
		{what: "another rack's", prod: "other", cluster: "prod",
			err: "lets rack other in and no other; nothing was written"},
		{what: "another rack's by cluster_name", prod: "other", param: "prod",
			err: "lets rack other in and no other; nothing was written"},
		{what: "no such cluster", cluster: "west",
			left: "describe-cluster --name west --query cluster.arn --output text)\" --tags sawhorse.dev/rack=demo`"},
		{what: "may not tag", denied: tagging, cluster: "prod",
			left: "(eks:TagResource) must write `aws eks tag-resource --resource-arn " + arn + "prod --tags sawhorse.dev/rack=demo`"},
		{what: "may not look", denied: "EKS.DescribeCluster",
			left: "unless it carries the tag sawhorse.dev/rack=demo already"},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, r := begin(silent)
			cloud.EKS.Other("east", nil)
			if c.prod != "" {
				cloud.EKS.Other("prod", map[string]string{in: c.prod})
			}
			if c.param != "" {
				cloud.SSM.Values[folder+"cluster_name"] = c.param
			}
			cloud.Fail(c.denied, errDenied)
			left, err := r.Run(t.Context(), "demo", Wanted{Cluster: c.cluster})
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(left, c.left) ||
				(left == "") != (c.left == "") {
				t.Errorf("left %q, %v", left, err)
			}
			if wrote := cloud.SSM.Values[folder+"karpenter_auth_mode"] != ""; wrote != (c.err == "") {
				t.Errorf("wrote parameters: %v", wrote)
			}
			tags := map[string]map[string]string{"demo": cloud.EKS.Cluster.Tags}
			for name, cluster := range cloud.EKS.Others {
				tags[name] = cluster.Tags
			}
			for name, tags := range tags {
				if (tags[in] == "demo") != (name == c.tagged) {
					t.Errorf("cluster %s: %v", name, tags)
				}
			}
			if tags["demo"]["team"] != "a" {
				t.Error("the owner's own tag has gone")
			}
		})
	}
}

// If cluster_name is a SecureString, its value is unknown and no cluster is tagged.
func TestAClusterNameThatIsSecret(t *testing.T) {
	cloud, r := begin(silent)
	cloud.SSM.Values[folder+"cluster_name"], cloud.SSM.Secure[folder+"cluster_name"] = "secret", true
	if _, err := r.Run(t.Context(), "demo", Wanted{}); err == nil || !strings.Contains(err.Error(), "is a SecureString") ||
		len(cloud.Writes()) > 0 {
		t.Errorf("%v, %v", err, cloud.Writes())
	}
}
