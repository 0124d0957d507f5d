package seed

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/sandbox/gateway/gatewaytest"
)

// TestAWS reads the account as an operator would.
func TestAWS(t *testing.T) {
	sandbox, err := gatewaytest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Stop()
	ctx, cfg := context.Background(), sandbox.Config()
	if err := AWS(ctx, cfg, ClusterName); err != nil {
		t.Fatal(err)
	}
	e, network, name := eks.NewFromConfig(cfg), ec2.NewFromConfig(cfg), aws.String(ClusterName)
	cluster, err := e.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	config := cluster.Cluster.ResourcesVpcConfig
	if mode := cluster.Cluster.AccessConfig.AuthenticationMode; mode != types.AuthenticationModeConfigMap || len(config.SubnetIds) != 6 {
		t.Errorf("mode %s, %d subnets", mode, len(config.SubnetIds))
	}
	arn, tags := cluster.Cluster.Arn, map[string]string{rackTag: "other"}
	if cluster.Cluster.Tags[rackTag] != ClusterName {
		t.Errorf("tags %v: the rack is not let in", cluster.Cluster.Tags)
	}
	if _, err := e.TagResource(ctx, &eks.TagResourceInput{ResourceArn: arn, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	if cluster, err = e.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: name}); err != nil ||
		cluster.Cluster.Tags[rackTag] != "other" {
		t.Errorf("tags %v, %v: not those that it was given", cluster.Cluster.Tags, err)
	}
	if _, err := e.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: arn, TagKeys: []string{rackTag}}); err != nil {
		t.Fatal(err)
	}
	if cluster, err = e.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: name}); err != nil || len(cluster.Cluster.Tags) > 0 {
		t.Errorf("tags %v, %v: not gone", cluster.Cluster.Tags, err)
	}
	for group, labels := range map[string]int{"system": 0, "build": 1} {
		waiter := eks.NewNodegroupActiveWaiter(e, func(o *eks.NodegroupActiveWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
		out, err := waiter.WaitForOutput(ctx, &eks.DescribeNodegroupInput{ClusterName: name, NodegroupName: &group}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if n := out.Nodegroup; len(n.Labels) != labels || len(n.Taints) != labels || len(n.Subnets) != 2 ||
			n.Status != types.NodegroupStatusActive {
			t.Errorf("%s: labels %v, taints %v, subnets %v, %s", group, n.Labels, n.Taints, n.Subnets, n.Status)
		}
		template, err := network.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateId: out.Nodegroup.LaunchTemplate.Id, Versions: []string{*out.Nodegroup.LaunchTemplate.Version}})
		if err != nil {
			t.Fatal(err)
		}
		groups := template.LaunchTemplateVersions[0].LaunchTemplateData.SecurityGroupIds
		if len(groups) != 2 || !slices.Contains(groups, *config.ClusterSecurityGroupId) {
			t.Errorf("%s: security groups %v, want two with %s", group, groups, *config.ClusterSecurityGroupId)
		}
	}
	agent, err := e.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: name, AddonName: aws.String("eks-pod-identity-agent")})
	if err != nil || agent.Addon.Status != types.AddonStatusActive {
		t.Errorf("add-on %v, %v", agent, err)
	}
}

func TestManifests(t *testing.T) {
	objects, err := Objects("other")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			names = append(names, object.GetNamespace()+"/"+object.GetName())
		}
	}
	text, err := json.Marshal(objects)
	if err != nil || !strings.Contains(string(text), ":role/other-node") || strings.Contains(string(text), "$(CLUSTER)") {
		t.Errorf("not the objects of cluster other: %s, %v", text, err)
	}
	if all, err := StandIn("other"); err != nil || len(all) <= len(objects) || all[len(all)-1].GetName() != "web" {
		t.Errorf("a stand-in has %d objects, %v", len(all), err)
	}
	if want := []string{"kube-system/cluster-autoscaler", "kube-system/metrics-server", "shop/web"}; !slices.Equal(names, want) {
		t.Errorf("Deployments %v, want %v", names, want)
	}
	if _, err := decode([]byte("kind: Pod\n")); err == nil {
		t.Error("a kind without a resource was taken")
	}
}
