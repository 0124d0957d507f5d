package gateway_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

func TestPodIdentityAssociations(t *testing.T) {
	ctx := context.Background()
	client, _ := cluster(t, "pods")
	arn, name := role(t, "pods-karpenter"), aws.String("pods")
	create := func(arn string) (*eks.CreatePodIdentityAssociationOutput, error) {
		return client.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{ClusterName: name,
			Namespace: aws.String("kube-system"), ServiceAccount: aws.String("karpenter"), RoleArn: &arn, Tags: map[string]string{
				"sawhorse.dev/rack": "demo",
			}})
	}
	_, err := create("arn:aws:iam::000000000000:role/none")
	want(t, "no such role", err, "InvalidParameterException")
	made := need[*eks.CreatePodIdentityAssociationOutput](t)(create(arn)).Association
	_, err = create(arn)
	want(t, "again", err, "ResourceInUseException")
	list := need[*eks.ListPodIdentityAssociationsOutput](t)(client.ListPodIdentityAssociations(ctx,
		&eks.ListPodIdentityAssociationsInput{
			ClusterName: name, Namespace: aws.String("kube-system"), ServiceAccount: aws.String("karpenter"),
		}))
	if len(list.Associations) != 1 || *list.Associations[0].AssociationId != *made.AssociationId {
		t.Errorf("list %v", list.Associations)
	}
	about := need[*eks.DescribePodIdentityAssociationOutput](t)(client.DescribePodIdentityAssociation(ctx,
		&eks.DescribePodIdentityAssociationInput{ClusterName: name, AssociationId: made.AssociationId})).Association
	if *about.RoleArn != arn || about.Tags["sawhorse.dev/rack"] != "demo" {
		t.Errorf("association %s %v", *about.RoleArn, about.Tags)
	}
	need[*eks.DeletePodIdentityAssociationOutput](t)(client.DeletePodIdentityAssociation(ctx,
		&eks.DeletePodIdentityAssociationInput{ClusterName: name, AssociationId: made.AssociationId}))
	_, err = client.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
		ClusterName: name, AssociationId: made.AssociationId,
	})
	want(t, "gone", err, "ResourceNotFoundException")
}

func TestAddOnsAndTags(t *testing.T) {
	ctx := context.Background()
	client, _ := cluster(t, "addons")
	name, agent := aws.String("addons"), aws.String("eks-pod-identity-agent")
	_, err := client.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: name, AddonName: agent})
	want(t, "no add-on", err, "ResourceNotFoundException")
	need[*eks.CreateAddonOutput](t)(client.CreateAddon(ctx, &eks.CreateAddonInput{ClusterName: name, AddonName: agent}))
	addon := need[*eks.DescribeAddonOutput](t)(client.DescribeAddon(ctx,
		&eks.DescribeAddonInput{ClusterName: name, AddonName: agent})).Addon
	if addon.Status != "ACTIVE" {
		t.Errorf("add-on %s", addon.Status)
	}
	cluster := func() map[string]string {
		t.Helper()
		return need[*eks.DescribeClusterOutput](t)(client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: name})).Cluster.Tags
	}
	arn := aws.String("arn:aws:eks:us-east-1:000000000000:cluster/addons")
	need[*eks.TagResourceOutput](t)(client.TagResource(ctx, &eks.TagResourceInput{
		ResourceArn: arn, Tags: map[string]string{"a": "1", "b": "2"},
	}))
	if got := cluster(); got["a"] != "1" {
		t.Errorf("tags %v", got)
	}
	need[*eks.UntagResourceOutput](t)(client.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"a"}}))
	if got := cluster(); len(got) != 1 || got["b"] != "2" {
		t.Errorf("tags %v", got)
	}
}

func TestOIDCProviders(t *testing.T) {
	ctx, client := context.Background(), iam.NewFromConfig(sandbox.Config())
	issuer := "oidc.eks.us-east-1.amazonaws.com/id/ABC"
	made := need[*iam.CreateOpenIDConnectProviderOutput](t)(client.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String("https://" + issuer), ClientIDList: []string{"sts.amazonaws.com"}, ThumbprintList: []string{
			"9e99a48a9960b14926bb7f3b02e22da2b0ab7280",
		}}))
	list := need[*iam.ListOpenIDConnectProvidersOutput](t)(client.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{}))
	if len(list.OpenIDConnectProviderList) != 1 || *list.OpenIDConnectProviderList[0].Arn != *made.OpenIDConnectProviderArn {
		t.Errorf("list %v", list.OpenIDConnectProviderList)
	}
	about := need[*iam.GetOpenIDConnectProviderOutput](t)(client.GetOpenIDConnectProvider(ctx,
		&iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: made.OpenIDConnectProviderArn}))
	if *about.Url != issuer {
		t.Errorf("URL %s, want %s", *about.Url, issuer)
	}
	_, err := client.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{
		OpenIDConnectProviderArn: aws.String(*made.OpenIDConnectProviderArn + "X"),
	})
	want(t, "unknown", err, "NoSuchEntity")
}
