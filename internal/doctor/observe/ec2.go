package observe

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
)

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: &name, Values: values}}
}

// endpoints reads the VPC's endpoints, and whether the API server has a public one.
func (r *reader) endpoints(ctx context.Context) error {
	described, err := r.observer().Cluster(ctx, r.o.Facts.Cluster.Name)
	if err != nil {
		return err
	}
	r.o.PublicAPI = described != nil && described.ResourcesVpcConfig != nil && described.ResourcesVpcConfig.EndpointPublicAccess
	pages := ec2.NewDescribeVpcEndpointsPaginator(r.EC2, &ec2.DescribeVpcEndpointsInput{Filters: filter("vpc-id", r.o.Facts.Cluster.VPC)})
	return observe.EachPage(ctx, pages, func(page *ec2.DescribeVpcEndpointsOutput) {
		for _, e := range page.VpcEndpoints {
			r.o.Endpoints = append(r.o.Endpoints, doctor.Endpoint{
				Service: aws.ToString(e.ServiceName), Type: string(e.VpcEndpointType), State: string(e.State),
				PrivateDNS: aws.ToBool(e.PrivateDnsEnabled),
			})
		}
	})
}

// instances reads all instances of the account in the region, because EC2's quotas count them.
func (r *reader) instances(ctx context.Context) error {
	pages := ec2.NewDescribeInstancesPaginator(r.EC2, &ec2.DescribeInstancesInput{
		Filters: filter("instance-state-name", "pending", "running"),
	})
	return observe.EachPage(ctx, pages, func(page *ec2.DescribeInstancesOutput) {
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				r.o.Instances = append(r.o.Instances, instance(i))
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

// keys reads the keys of nodes' volumes: those that pools name, and the account's default for the others.
func (r *reader) keys(ctx context.Context) error {
	out, err := r.EC2.GetEbsDefaultKmsKeyId(ctx, &ec2.GetEbsDefaultKmsKeyIdInput{})
	if err != nil {
		return err
	}
	ids := []string{aws.ToString(out.KmsKeyId)}
	ids = append(ids, slices.DeleteFunc(r.volumeKeys, func(id string) bool { return id == ids[0] })...)
	for _, id := range ids {
		key, err := r.key(ctx, id)
		if err != nil {
			return err
		}
		r.o.Keys = append(r.o.Keys, key)
	}
	if !slices.ContainsFunc(r.o.Keys, func(k doctor.Key) bool { return !k.AWSManaged }) {
		return nil
	}
	return r.bounded(ctx)
}

// ebsKey is the alias of EBS's own key. The key is created at its first use and does not exist before.
const ebsKey = "alias/aws/ebs"

func (r *reader) key(ctx context.Context, id string) (doctor.Key, error) {
	if id == ebsKey {
		return doctor.Key{ID: id, State: string(kmstypes.KeyStateEnabled), AWSManaged: true}, nil
	}
	described, err := r.KMS.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if err != nil {
		return doctor.Key{}, err
	}
	meta := described.KeyMetadata
	key := doctor.Key{ID: id, State: string(meta.KeyState), AWSManaged: meta.KeyManager == kmstypes.KeyManagerTypeAws}
	if key.AWSManaged {
		return key, nil
	}
	policy, err := r.KMS.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: meta.Arn})
	if err != nil {
		return key, err
	}
	key.Policy = aws.ToString(policy.Policy)
	err = observe.EachPage(ctx, kms.NewListGrantsPaginator(r.KMS, &kms.ListGrantsInput{KeyId: meta.Arn}), func(page *kms.ListGrantsOutput) {
		for _, g := range page.Grants {
			key.Grantees = append(key.Grantees, aws.ToString(g.GranteePrincipal))
		}
	})
	return key, err
}
