package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/sandbox/gateway/gatewaytest"
)

// sandbox is shared by all tests. Each test creates what it needs under names of its own.
var sandbox *gatewaytest.Sandbox

func TestMain(m *testing.M) {
	var err error
	if sandbox, err = gatewaytest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	sandbox.Stop()
	os.Exit(code)
}

// code returns the AWS error code of err, "" for none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func want(t *testing.T, what string, err error, wanted string) {
	t.Helper()
	if got := code(err); got != wanted {
		t.Errorf("%s: %q, want %q (%v)", what, got, wanted, err)
	}
}

// need ends the test on an error.
func need[T any](t *testing.T) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// eventually retries until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within 20 s", what)
}

const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com","AWS":"*"},` +
	`"Action":"sts:AssumeRole"}]}`

func role(t *testing.T, name string) string {
	t.Helper()
	client := iam.NewFromConfig(sandbox.Config())
	return aws.ToString(need[*iam.CreateRoleOutput](t)(client.CreateRole(context.Background(), &iam.CreateRoleInput{
		RoleName: &name, Path: aws.String("/sawhorse/"), AssumeRolePolicyDocument: aws.String(trust),
	})).Role.Arn)
}

// cluster creates a cluster in a VPC of its own.
func cluster(t *testing.T, name string) (*eks.Client, string) {
	t.Helper()
	ctx, e, network := context.Background(), eks.NewFromConfig(sandbox.Config()), ec2.NewFromConfig(sandbox.Config())
	vpc := need[*ec2.CreateVpcOutput](t)(network.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")}))
	subnet := need[*ec2.CreateSubnetOutput](t)(network.CreateSubnet(ctx, &ec2.CreateSubnetInput{
		VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/24"),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeSubnet, Tags: []ec2types.Tag{
			{Key: aws.String("Name"), Value: &name},
		}}},
	}))
	need[*eks.CreateClusterOutput](t)(e.CreateCluster(ctx, &eks.CreateClusterInput{
		Name: &name, RoleArn: aws.String(role(t, name+"-cluster")), Version: aws.String("1.35"),
		ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: []string{*subnet.Subnet.SubnetId}},
	}))
	eventually(t, "cluster active", func() bool {
		out, err := e.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
		return err == nil && out.Cluster.Status == ekstypes.ClusterStatusActive
	})
	return e, *vpc.Vpc.VpcId
}
