package gateway_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// as assumes a new role with a policy.
func as(t *testing.T, name, policy string) aws.Config {
	t.Helper()
	ctx, arn := context.Background(), role(t, name)
	need[*iam.PutRolePolicyOutput](t)(iam.NewFromConfig(sandbox.Config()).PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: &name, PolicyName: aws.String("p"), PolicyDocument: &policy}))
	c := need[*sts.AssumeRoleOutput](t)(sts.NewFromConfig(sandbox.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &arn, RoleSessionName: aws.String("s")})).Credentials
	return sandbox.Config(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
}

func TestPoliciesHoldForEachService(t *testing.T) {
	ctx := context.Background()
	_, _ = cluster(t, "policies")
	subnet := *need[*ec2.DescribeSubnetsOutput](t)(ec2.NewFromConfig(sandbox.Config()).DescribeSubnets(ctx,
		&ec2.DescribeSubnetsInput{Filters: tagged("Name", "policies")})).Subnets[0].SubnetId
	cfg := as(t, "least", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["ec2:DescribeSubnets"],"Resource":"*"},
		{"Effect":"Allow","Action":["ec2:CreateTags"],"Resource":"arn:aws:ec2:us-east-1:000000000000:subnet/*",
		 "Condition":{"ForAllValues:StringEquals":{"aws:TagKeys":["karpenter.sh/discovery"]}}},
		{"Effect":"Allow","Action":["ssm:GetParametersByPath"],"Resource":"arn:aws:ssm:us-east-1:000000000000:parameter/least/*"},
		{"Effect":"Allow","Action":["iam:GetRole"],"Resource":"arn:aws:iam::000000000000:role/sawhorse/least"},
		{"Effect":"Allow","Action":["eks:DescribeCluster"],"Resource":"arn:aws:eks:us-east-1:000000000000:cluster/policies"}]}`)
	network, parameters := ec2.NewFromConfig(cfg), ssm.NewFromConfig(cfg)

	_, err := network.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	want(t, "describe subnets", err, "")
	_, err = network.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	want(t, "describe VPCs", err, "UnauthorizedOperation")
	for key, wanted := range map[string]string{"karpenter.sh/discovery": "", "Name": "UnauthorizedOperation"} {
		_, err = network.CreateTags(ctx, &ec2.CreateTagsInput{
			Resources: []string{subnet}, Tags: []types.Tag{{Key: &key, Value: aws.String("x")}},
		})
		want(t, "tag "+key, err, wanted)
	}
	for path, wanted := range map[string]string{"/least/demo": "", "/other": "AccessDeniedException"} {
		_, err = parameters.GetParametersByPath(ctx, &ssm.GetParametersByPathInput{Path: &path})
		want(t, "parameters "+path, err, wanted)
	}
	for name, wanted := range map[string]string{"least": "", "policies-cluster": "AccessDenied"} {
		_, err = iam.NewFromConfig(cfg).GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		want(t, "role "+name, err, wanted)
	}
	_, err = eks.NewFromConfig(cfg).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("policies")})
	want(t, "describe cluster", err, "")
	_, err = eks.NewFromConfig(cfg).ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("policies")})
	want(t, "list node groups", err, "AccessDeniedException")
	own := need[aws.Credentials](t)(cfg.Credentials.Retrieve(ctx))
	forged := sandbox.Config(own.AccessKeyID, "another secret", own.SessionToken)
	_, err = ec2.NewFromConfig(forged).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	want(t, "wrong secret", err, "AuthFailure")
	_, err = ec2.NewFromConfig(sandbox.Config("AKIANOBODY", "x", "")).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	want(t, "unknown key", err, "AuthFailure")
}

// A policy variable stands for the value of a tag on the caller's role. Without the tag the statement matches nothing.
func TestPoliciesHaveVariables(t *testing.T) {
	ctx, root := context.Background(), sandbox.Config()
	for _, queue := range []string{"mine-q", "theirs-q"} {
		need[*sqs.CreateQueueOutput](t)(sqs.NewFromConfig(root).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &queue}))
	}
	client := sqs.NewFromConfig(as(t, "variable",
		policyOf([]string{"sqs:GetQueueUrl arn:aws:sqs:us-east-1:000000000000:${aws:PrincipalTag/team/name}-q"})))
	ask := func(queue string) error {
		_, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
		return err
	}
	want(t, "without the tag", ask("mine-q"), "AccessDenied")
	need[*iam.TagRoleOutput](t)(iam.NewFromConfig(root).TagRole(ctx, &iam.TagRoleInput{
		RoleName: aws.String("variable"), Tags: []iamtypes.Tag{{Key: aws.String("team/name"), Value: aws.String("mine")}},
	}))
	want(t, "its own", ask("mine-q"), "")
	want(t, "another's", ask("theirs-q"), "AccessDenied")
}

// A policy can refer to the caller's user agent, as one that withholds a right from one version of a program does.
func TestPoliciesReferToTheUserAgent(t *testing.T) {
	ctx := context.Background()
	cfg := as(t, "agents", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"ec2:DescribeSubnets","Resource":"*"},
		{"Effect":"Deny","Action":"ec2:*","Resource":"*","Condition":{"StringLike":{"aws:UserAgent":"*karpenter.sh-1.15.*"}}}]}`)
	for version, wanted := range map[string]string{"1.10.0": "", "1.15.1": "UnauthorizedOperation"} {
		client := ec2.NewFromConfig(cfg, func(o *ec2.Options) {
			o.APIOptions = append(o.APIOptions, middleware.AddUserAgentKey("karpenter.sh-"+version))
		})
		_, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		want(t, version, err, wanted)
	}
}
