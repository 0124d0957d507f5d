package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// policyOf returns a policy that allows each of the statements, given as "action resource"
// or "action resource condition".
func policyOf(statements []string) string {
	var all []string
	for _, s := range statements {
		parts := append(strings.SplitN(s, " ", 3), "{}")
		all = append(all, `{"Effect":"Allow","Action":"`+parts[0]+`","Resource":"`+parts[1]+`","Condition":`+parts[2]+`}`)
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(all, ",") + `]}`
}

// refusedWithoutAny makes a call once without each of the statements, and then with all of them.
func refusedWithoutAny(t *testing.T, name string, statements []string, call func(*eks.Client) error) {
	t.Helper()
	all := policyOf(statements)
	client := eks.NewFromConfig(as(t, name, all))
	put := func(policy string) {
		need[*iam.PutRolePolicyOutput](t)(iam.NewFromConfig(sandbox.Config()).PutRolePolicy(context.Background(), &iam.PutRolePolicyInput{
			RoleName: &name, PolicyName: aws.String("p"), PolicyDocument: &policy}))
	}
	for i, missing := range statements {
		var rest []string
		rest = append(append(rest, statements[:i]...), statements[i+1:]...)
		put(policyOf(rest))
		action, _, _ := strings.Cut(missing, " ")
		if err := call(client); err == nil || !strings.Contains(err.Error(), "is not authorized to perform: "+action+" ") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	put(all)
	want(t, "with all of them", call(client), "")
}

func TestANewNodeGroupNeedsItsCallersRights(t *testing.T) {
	const licence = "arn:aws:license-manager:us-east-1:000000000000:license-configuration:lic-1"
	ctx, _ := context.Background(), groups(t, "rights")
	network := ec2.NewFromConfig(sandbox.Config())
	group := need[*ec2.CreateSecurityGroupOutput](t)(network.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String("rights"), Description: aws.String("rights")})).GroupId
	template := need[*ec2.CreateLaunchTemplateOutput](t)(network.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("rights"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			SecurityGroupIds: []string{*group}, KeyName: aws.String("k"),
			Placement: &ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("p")},
			CapacityReservationSpecification: &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
				CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String("cr-1")}},
			LicenseSpecifications: []ec2types.LaunchTemplateLicenseConfigurationRequest{{LicenseConfigurationArn: aws.String(licence)}},
			TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
				{ResourceType: "volume", Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}},
			},
		}})).LaunchTemplate.LaunchTemplateId
	const (
		eksARN, ec2ARN = "arn:aws:eks:us-east-1:000000000000:", "arn:aws:ec2:us-east-1:000000000000:"
		byTemplate     = ` {"ArnLike":{"ec2:LaunchTemplate":"` + ec2ARN + `launch-template/*"}}`
	)
	refusedWithoutAny(t, "creator", []string{
		"eks:CreateNodegroup " + eksARN + "cluster/rights",
		"eks:TagResource " + eksARN + `nodegroup/rights/* {"StringEquals":{"aws:RequestTag/a":"b"}}`,
		`iam:PassRole arn:aws:iam::000000000000:role/sawhorse/rights-node {"StringEquals":{"iam:PassedToService":"eks.amazonaws.com"}}`,
		"iam:GetRole arn:aws:iam::000000000000:role/sawhorse/rights-node",
		"iam:ListAttachedRolePolicies arn:aws:iam::000000000000:role/sawhorse/rights-node",
		"ec2:DescribeSubnets *", "ec2:DescribeLaunchTemplateVersions *",
		"ec2:RunInstances " + ec2ARN + "instance/*" + byTemplate, "ec2:RunInstances " + ec2ARN + "volume/*" + byTemplate,
		"ec2:RunInstances " + ec2ARN + "network-interface/*" + byTemplate, "ec2:RunInstances " + ec2ARN + "launch-template/" + *template,
		"ec2:RunInstances " + ec2ARN + "subnet/subnet-1", "ec2:RunInstances " + ec2ARN + "security-group/" + *group,
		"ec2:RunInstances " + ec2ARN + "placement-group/p", "ec2:RunInstances " + ec2ARN + "capacity-reservation/cr-1",
		"ec2:RunInstances " + licence,
		"ec2:RunInstances " + ec2ARN + "key-pair/k", "ec2:RunInstances arn:aws:ec2:us-east-1::image/*",
		"ec2:CreateTags " + ec2ARN + `volume/* {"StringEquals":{"ec2:CreateAction":"RunInstances"}}`,
	}, func(client *eks.Client) error {
		_, err := client.CreateNodegroup(ctx, another(t, "rights", "more", func(in *eks.CreateNodegroupInput) {
			in.Tags, in.LaunchTemplate = map[string]string{"a": "b"}, &types.LaunchTemplateSpecification{
				Id: template, Version: aws.String("1"),
			}
		}))
		return err
	})
}

func TestAnAssociationNeedsToHandOnItsRole(t *testing.T) {
	_, _ = cluster(t, "handed")
	arn := role(t, "handed-on")
	refusedWithoutAny(t, "handing", []string{
		"eks:CreatePodIdentityAssociation arn:aws:eks:us-east-1:000000000000:cluster/handed",
		"iam:PassRole " + arn + ` {"StringEquals":{"iam:PassedToService":"pods.eks.amazonaws.com"}}`, "iam:GetRole " + arn,
		`eks:TagResource arn:aws:eks:us-east-1:000000000000:podidentityassociation/handed/* {"StringEquals":{"aws:RequestTag/a":"b"}}`,
	}, func(client *eks.Client) error {
		_, err := client.CreatePodIdentityAssociation(context.Background(), &eks.CreatePodIdentityAssociationInput{
			ClusterName: aws.String("handed"), Namespace: aws.String("n"), ServiceAccount: aws.String("s"), RoleArn: &arn,
			Tags: map[string]string{"a": "b"}})
		return err
	})
}

func TestAnAccessEntryOfNodesNeedsToHandTheirRoleToEC2(t *testing.T) {
	client, _ := cluster(t, "entered")
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "entered", types.AuthenticationModeApiAndConfigMap)).Update
	successful(t, client, "entered", nil, update.Id)
	arn := role(t, "entered-nodes")
	refusedWithoutAny(t, "entering", []string{
		"eks:CreateAccessEntry arn:aws:eks:us-east-1:000000000000:cluster/entered",
		"iam:PassRole " + arn + ` {"StringEquals":{"iam:PassedToService":"ec2.amazonaws.com"}}`,
		`eks:TagResource arn:aws:eks:us-east-1:000000000000:access-entry/entered/* {"StringEquals":{"aws:RequestTag/a":"b"}}`,
	}, func(client *eks.Client) error {
		_, err := client.CreateAccessEntry(context.Background(), &eks.CreateAccessEntryInput{
			ClusterName: aws.String("entered"), PrincipalArn: &arn, Type: aws.String("EC2_LINUX"), Tags: map[string]string{"a": "b"}})
		return err
	})
}

// EKS supplies condition keys that name the access entry of a call.
func TestCallsAboutAnAccessEntryKnowItsPrincipal(t *testing.T) {
	client, _ := cluster(t, "pinned")
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "pinned", types.AuthenticationModeApiAndConfigMap)).Update
	successful(t, client, "pinned", nil, update.Id)
	ours, theirs := role(t, "pinned-ours"), role(t, "pinned-theirs")
	for _, principal := range []string{ours, theirs} {
		need[*eks.CreateAccessEntryOutput](t)(client.CreateAccessEntry(context.Background(),
			&eks.CreateAccessEntryInput{ClusterName: aws.String("pinned"), PrincipalArn: &principal}))
	}
	const all = " arn:aws:eks:us-east-1:000000000000:access-entry/*"
	to := `{"ArnEquals":{"eks:principalArn":["` + ours + `"]}}`
	limited := eks.NewFromConfig(as(t, "pinning",
		policyOf([]string{"eks:UpdateAccessEntry" + all + " " + to, "eks:DeleteAccessEntry" + all + " " + to,
			"eks:AssociateAccessPolicy" + all + " " + `{"ArnEquals":{"eks:principalArn":["` + ours +
				`"],"eks:policyArn":"arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"}}`})))
	for _, c := range []struct{ principal, refusal string }{{theirs, "AccessDeniedException"}, {ours, ""}} {
		ctx, name, policy := context.Background(), aws.String("pinned"),
			aws.String("arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy")
		_, err := limited.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
			ClusterName: name, PrincipalArn: &c.principal, KubernetesGroups: []string{"g"},
		})
		want(t, "update "+c.principal, err, c.refusal)
		_, err = limited.AssociateAccessPolicy(ctx,
			&eks.AssociateAccessPolicyInput{ClusterName: name, PrincipalArn: &c.principal, PolicyArn: policy,
				AccessScope: &types.AccessScope{Type: types.AccessScopeTypeCluster}})
		want(t, "associate "+c.principal, err, c.refusal)
		_, err = limited.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: name, PrincipalArn: &c.principal})
		want(t, "delete "+c.principal, err, c.refusal)
	}
}
