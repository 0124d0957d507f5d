package register

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// clusters replaces EKS: it maps cluster names to tags.
type clusters map[string]map[string]string

const arn = "arn:aws:eks:eu-central-1:123456789012:cluster/"

func (c clusters) DescribeCluster(_ context.Context, in *eks.DescribeClusterInput,
	_ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	tags, known := c[*in.Name]
	if !known {
		return nil, &ekstypes.ResourceNotFoundException{}
	}
	return &eks.DescribeClusterOutput{Cluster: &ekstypes.Cluster{Arn: new(arn + *in.Name), Tags: tags}}, nil
}

func (c clusters) TagResource(_ context.Context, in *eks.TagResourceInput, _ ...func(*eks.Options)) (*eks.TagResourceOutput, error) {
	maps.Copy(c[strings.TrimPrefix(*in.ResourceArn, arn)], in.Tags)
	return &eks.TagResourceOutput{}, nil
}

// deniedClusters refuses to tag clusters and, if unseen, also to describe them.
type deniedClusters struct {
	clusters
	unseen bool
}

var errDenied = &smithy.GenericAPIError{Code: "AccessDeniedException"}

func (c deniedClusters) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput,
	o ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	if c.unseen {
		return nil, errDenied
	}
	return c.clusters.DescribeCluster(ctx, in, o...)
}

func (c deniedClusters) TagResource(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error) {
	return nil, errDenied
}

// The operator lets the rack into its cluster: the one that is named, the one that the rack has, or the one with the
// rack's name. If these credentials cannot do that, register prints the command, and registers the parameters
// nevertheless.
func TestLetsTheRackIn(t *testing.T) {
	const in = ownership.TagRack
	here := func(tags map[string]string) clusters {
		return clusters{"demo": {"team": "a"}, "prod": tags, "east": {}}
	}
	for _, c := range []struct {
		what    string
		eks     EKS
		cluster string // --cluster
		param   string // cluster_name, if it exists
		tagged  string // the cluster that carries the tag at the end
		left    string
		err     string
	}{
		{what: "the rack's own name", eks: here(nil), tagged: "demo"},
		{what: "--cluster", eks: here(map[string]string{}), cluster: "prod", tagged: "prod"},
		{what: "cluster_name", eks: here(nil), param: "east", tagged: "east"},
		{what: "cluster_name that is unset", eks: here(nil), param: params.Unset, tagged: "demo"},
		{what: "--cluster, which is what unset means", eks: here(nil), cluster: "demo", param: params.Unset, tagged: "demo"},
		{what: "both, and alike", eks: here(nil), cluster: "east", param: "east", tagged: "east"},
		{what: "in already", eks: deniedClusters{clusters: here(map[string]string{in: "demo"})}, cluster: "prod", tagged: "prod"},
		{what: "another rack's", eks: here(map[string]string{in: "other"}), cluster: "prod",
			err: "lets rack other in and no other; nothing was written"},
		{what: "another rack's by cluster_name", eks: here(map[string]string{in: "other"}), param: "prod",
			err: "lets rack other in and no other; nothing was written"},
		{what: "no such cluster", eks: here(nil), cluster: "west",
			left: "describe-cluster --name west --query cluster.arn --output text)\" --tags sawhorse.dev/rack=demo`"},
		{what: "may not tag", eks: deniedClusters{clusters: here(map[string]string{})}, cluster: "prod",
			left: "(eks:TagResource) must write `aws eks tag-resource --resource-arn " + arn + "prod --tags sawhorse.dev/rack=demo`"},
		{what: "may not look", eks: deniedClusters{clusters: here(nil), unseen: true},
			left: "unless it carries the tag sawhorse.dev/rack=demo already"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := &store{versions: map[string][]types.ParameterHistory{}}
			if c.param != "" {
				s.add(user("/sawhorse/racks/demo/params/cluster_name", c.param))
			}
			r := Register{SSM: s, EKS: c.eks, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(string, string) {}}
			left, err := r.Run(t.Context(), "demo", Wanted{Cluster: c.cluster})
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(left, c.left) ||
				(left == "") != (c.left == "") {
				t.Errorf("left %q, %v", left, err)
			}
			if wrote := s.last("/sawhorse/racks/demo/params/karpenter_auth_mode") != nil; wrote != (c.err == "") {
				t.Errorf("wrote parameters: %v", wrote)
			}
			all, _ := c.eks.(clusters)
			if d, ok := c.eks.(deniedClusters); ok {
				all = d.clusters
			}
			for name, tags := range all {
				if (tags[in] == "demo") != (name == c.tagged) {
					t.Errorf("cluster %s: %v", name, tags)
				}
			}
			if all["demo"]["team"] != "a" {
				t.Error("the owner's own tag has gone")
			}
		})
	}
}

// If cluster_name is a SecureString, its value is unknown and no cluster is tagged.
func TestAClusterNameThatIsSecret(t *testing.T) {
	s, all := &store{versions: map[string][]types.ParameterHistory{}}, clusters{"demo": {}}
	secret := user("/sawhorse/racks/demo/params/cluster_name", "AQICAHg")
	secret.Type = types.ParameterTypeSecureString
	s.add(secret)
	r := Register{SSM: s, EKS: all, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(string, string) {}}
	if _, err := r.Run(t.Context(), "demo", Wanted{}); err == nil || !strings.Contains(err.Error(), "is a SecureString") ||
		s.writes+len(all["demo"]) > 0 {
		t.Errorf("%v, %d writes, %v", err, s.writes, all)
	}
}
