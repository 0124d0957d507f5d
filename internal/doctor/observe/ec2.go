package observe

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: &name, Values: values}}
}

// network reads the subnets and the security groups of the nodes.
func (l *looker) network(ctx context.Context) {
	facts := plan.Facts{Cluster: &l.o.Cluster.ClusterFacts, NodeGroups: l.o.NodeGroups}
	l.look(doctor.Subnets, func() error {
		subnets, err := l.observer().Subnets(ctx, l.o.Config, facts)
		for _, s := range subnets {
			if aws.ToString(s.VpcId) == l.o.Cluster.VPC {
				l.o.Subnets = append(l.o.Subnets, doctor.Subnet{
					Tagged: observe.Subnet(s), Free: int(aws.ToInt32(s.AvailableIpAddressCount)),
				})
			}
		}
		return err
	})
	l.look(doctor.SecurityGroups, func() error {
		found, err := l.observer().SecurityGroups(ctx, l.o.Config, facts)
		l.o.SecurityGroups = slices.DeleteFunc(found, func(g plan.Tagged) bool { return g.VPC != l.o.Cluster.VPC })
		return err
	})
}

func (l *looker) endpoints(ctx context.Context) error {
	pages := ec2.NewDescribeVpcEndpointsPaginator(l.EC2, &ec2.DescribeVpcEndpointsInput{Filters: filter("vpc-id", l.o.Cluster.VPC)})
	return observe.EachPage(ctx, pages, func(page *ec2.DescribeVpcEndpointsOutput) {
		for _, e := range page.VpcEndpoints {
			l.o.Endpoints = append(l.o.Endpoints, doctor.Endpoint{
				Service: aws.ToString(e.ServiceName), Type: string(e.VpcEndpointType), State: string(e.State),
				PrivateDNS: aws.ToBool(e.PrivateDnsEnabled),
			})
		}
	})
}

// instances reads all instances of the account in the region, because EC2's quotas count them.
func (l *looker) instances(ctx context.Context) error {
	pages := ec2.NewDescribeInstancesPaginator(l.EC2, &ec2.DescribeInstancesInput{
		Filters: filter("instance-state-name", "pending", "running"),
	})
	return observe.EachPage(ctx, pages, func(page *ec2.DescribeInstancesOutput) {
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				l.o.Instances = append(l.o.Instances, instance(i))
			}
		}
	})
}

func instance(i types.Instance) doctor.Instance {
	found := doctor.Instance{
		ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType),
		Spot: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot, Tags: observe.Tags(i.Tags),
	}
	if c := i.CpuOptions; c != nil {
		found.VCPU = int(aws.ToInt32(c.CoreCount) * aws.ToInt32(c.ThreadsPerCore))
	}
	if m := i.MetadataOptions; m != nil {
		found.HopLimit = int(aws.ToInt32(m.HttpPutResponseHopLimit))
	}
	return found
}

// keys reads the keys of nodes' volumes: those that karpenter_config names, and the account's default for the others.
func (l *looker) keys(ctx context.Context) error {
	out, err := l.EC2.GetEbsDefaultKmsKeyId(ctx, &ec2.GetEbsDefaultKmsKeyIdInput{})
	if err != nil {
		return err
	}
	ids := []string{aws.ToString(out.KmsKeyId)}
	mappings, _ := l.o.Config.Override.EC2NodeClass["blockDeviceMappings"].([]any)
	for _, each := range mappings {
		mapping, _ := each.(map[string]any)
		volume, _ := mapping["ebs"].(map[string]any)
		if id, ok := volume["kmsKeyID"].(string); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		key, err := l.key(ctx, id)
		if err != nil {
			return err
		}
		l.o.Keys = append(l.o.Keys, key)
	}
	if !slices.ContainsFunc(l.o.Keys, func(k doctor.Key) bool { return !k.AWSManaged }) {
		return nil
	}
	return l.bounded(ctx)
}

// bounded finds the uses of a key that the permissions boundary of the controller's role does not allow. Before the
// role exists, there is no boundary to check.
func (l *looker) bounded(ctx context.Context) error {
	role, err := l.controllerRole(ctx)
	if err != nil || role == "" {
		return err
	}
	l.o.Bounded, err = l.simulate(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: doctor.KeyActions},
		func(r iamtypes.EvaluationResult) bool {
			return r.PermissionsBoundaryDecisionDetail != nil && !r.PermissionsBoundaryDecisionDetail.AllowedByPermissionsBoundary
		})
	return err
}

// ebsKey is the alias of EBS's own key. The key is created at its first use and does not exist before.
const ebsKey = "alias/aws/ebs"

func (l *looker) key(ctx context.Context, id string) (doctor.Key, error) {
	if id == ebsKey {
		return doctor.Key{ID: id, State: string(kmstypes.KeyStateEnabled), AWSManaged: true}, nil
	}
	described, err := l.KMS.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if err != nil {
		return doctor.Key{}, err
	}
	meta := described.KeyMetadata
	key := doctor.Key{ID: id, State: string(meta.KeyState), AWSManaged: meta.KeyManager == kmstypes.KeyManagerTypeAws}
	if key.AWSManaged {
		return key, nil
	}
	policy, err := l.KMS.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: meta.Arn})
	if err != nil {
		return key, err
	}
	key.Policy = aws.ToString(policy.Policy)
	err = observe.EachPage(ctx, kms.NewListGrantsPaginator(l.KMS, &kms.ListGrantsInput{KeyId: meta.Arn}), func(page *kms.ListGrantsOutput) {
		for _, g := range page.Grants {
			key.Grantees = append(key.Grantees, aws.ToString(g.GranteePrincipal))
		}
	})
	return key, err
}
