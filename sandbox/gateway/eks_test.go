package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/sandbox/gateway/gatewaytest"
)

func toMode(t *testing.T, client *eks.Client, name string, mode types.AuthenticationMode) (*eks.UpdateClusterConfigOutput, error) {
	return client.UpdateClusterConfig(context.Background(), &eks.UpdateClusterConfigInput{
		Name: &name, AccessConfig: &types.UpdateAccessConfigRequest{AuthenticationMode: mode},
	})
}

// successful waits until an update is Successful.
func successful(t *testing.T, client *eks.Client, name string, group *string, id *string) {
	t.Helper()
	eventually(t, "update successful", func() bool {
		out, err := client.DescribeUpdate(context.Background(), &eks.DescribeUpdateInput{Name: &name, NodegroupName: group, UpdateId: id})
		return err == nil && out.Update.Status == types.UpdateStatusSuccessful
	})
}

func TestDescribeClusterShowsTheRealCluster(t *testing.T) {
	client, vpc := cluster(t, "shown")
	out := need[*eks.DescribeClusterOutput](t)(client.DescribeCluster(context.Background(),
		&eks.DescribeClusterInput{Name: aws.String("shown")})).Cluster
	if *out.Endpoint != gatewaytest.Cluster.Endpoint || *out.Identity.Oidc.Issuer != gatewaytest.Cluster.OIDCIssuer ||
		*out.CertificateAuthority.Data != base64.StdEncoding.EncodeToString(gatewaytest.Cluster.CA) {
		t.Errorf("endpoint %s, issuer %s, CA %s", *out.Endpoint, *out.Identity.Oidc.Issuer, *out.CertificateAuthority.Data)
	}
	if *out.ResourcesVpcConfig.VpcId != vpc {
		t.Errorf("VPC %s, want %s", *out.ResourcesVpcConfig.VpcId, vpc)
	}
	groups := need[*ec2.DescribeSecurityGroupsOutput](t)(ec2.NewFromConfig(sandbox.Config()).DescribeSecurityGroups(context.Background(),
		&ec2.DescribeSecurityGroupsInput{GroupIds: []string{*out.ResourcesVpcConfig.ClusterSecurityGroupId}}))
	if got := *groups.SecurityGroups[0].VpcId; got != vpc {
		t.Errorf("cluster security group in %s, want %s", got, vpc)
	}
	if out.AccessConfig.AuthenticationMode != types.AuthenticationModeConfigMap {
		t.Errorf("mode %s", out.AccessConfig.AuthenticationMode)
	}
}

func TestVersionGoesForwardOneStepAtATime(t *testing.T) {
	client, _ := cluster(t, "versions")
	to := func(version string) (*eks.UpdateClusterVersionOutput, error) {
		return client.UpdateClusterVersion(context.Background(), &eks.UpdateClusterVersionInput{Name: aws.String("versions"), Version: &version})
	}
	for _, version := range []string{"1.37", "1.35", "1.34"} {
		_, err := to(version)
		want(t, version, err, "InvalidParameterException")
	}
	update := need[*eks.UpdateClusterVersionOutput](t)(to("1.36")).Update
	successful(t, client, "versions", nil, update.Id)
	out := need[*eks.DescribeClusterOutput](t)(client.DescribeCluster(context.Background(),
		&eks.DescribeClusterInput{Name: aws.String("versions")}))
	if *out.Cluster.Version != "1.36" || update.Type != types.UpdateTypeVersionUpdate {
		t.Errorf("%s after a %s", *out.Cluster.Version, update.Type)
	}
}

func TestAccessModeGoesForwardOneStepAtATime(t *testing.T) {
	client, _ := cluster(t, "modes")
	_, err := toMode(t, client, "modes", types.AuthenticationModeApi)
	want(t, "CONFIG_MAP to API", err, "InvalidParameterException")
	_, err = client.ListAccessEntries(context.Background(), &eks.ListAccessEntriesInput{ClusterName: aws.String("modes")})
	want(t, "entries in CONFIG_MAP", err, "InvalidRequestException")

	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "modes", types.AuthenticationModeApiAndConfigMap)).Update
	if update.Status != types.UpdateStatusInProgress || update.Type != types.UpdateTypeAccessConfigUpdate {
		t.Errorf("update %s %s", update.Status, update.Type)
	}
	_, err = toMode(t, client, "modes", types.AuthenticationModeApi)
	want(t, "second update at once", err, "ResourceInUseException")
	successful(t, client, "modes", nil, update.Id)

	list := need[*eks.ListUpdatesOutput](t)(client.ListUpdates(context.Background(), &eks.ListUpdatesInput{Name: aws.String("modes")}))
	if len(list.UpdateIds) != 1 || list.UpdateIds[0] != *update.Id {
		t.Errorf("updates %v, want [%s]", list.UpdateIds, *update.Id)
	}
	out := need[*eks.DescribeClusterOutput](t)(client.DescribeCluster(context.Background(),
		&eks.DescribeClusterInput{Name: aws.String("modes")}))
	if out.Cluster.AccessConfig.AuthenticationMode != types.AuthenticationModeApiAndConfigMap ||
		out.Cluster.Status != types.ClusterStatusActive {
		t.Errorf("after: %s, %s", out.Cluster.AccessConfig.AuthenticationMode, out.Cluster.Status)
	}
	for _, mode := range []types.AuthenticationMode{types.AuthenticationModeConfigMap, types.AuthenticationModeApiAndConfigMap} {
		_, err = toMode(t, client, "modes", mode)
		want(t, "to "+string(mode), err, "InvalidParameterException")
	}
	_, err = client.DescribeUpdate(context.Background(), &eks.DescribeUpdateInput{Name: aws.String("modes"), UpdateId: aws.String("none")})
	want(t, "unknown update", err, "ResourceNotFoundException")
}

// bound returns the role id that the principal's entry was created with, and the role's current id.
func bound(t *testing.T, cluster, principal string) (then, now string) {
	t.Helper()
	resp := need[*http.Response](t)(http.Get(sandbox.URL + "/_sandbox/access-entries?cluster=" + cluster))
	defer resp.Body.Close()
	var answer struct {
		AccessEntries []struct{ PrincipalArn, RoleID, CurrentRoleID string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for _, entry := range answer.AccessEntries {
		if entry.PrincipalArn == principal {
			return entry.RoleID, entry.CurrentRoleID
		}
	}
	t.Fatalf("no entry for %s among %+v", principal, answer.AccessEntries)
	return "", ""
}

func TestAccessEntries(t *testing.T) {
	ctx := context.Background()
	client, _ := cluster(t, "entries")
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "entries", types.AuthenticationModeApiAndConfigMap))
	successful(t, client, "entries", nil, update.Update.Id)
	arn := role(t, "entry-role")
	create := func(in eks.CreateAccessEntryInput) error {
		in.ClusterName = aws.String("entries")
		_, err := client.CreateAccessEntry(ctx, &in)
		return err
	}
	want(t, "no such role", create(eks.CreateAccessEntryInput{PrincipalArn: aws.String("arn:aws:iam::000000000000:role/none")}),
		"InvalidParameterException")
	want(t, "system: group", create(eks.CreateAccessEntryInput{PrincipalArn: &arn, KubernetesGroups: []string{"system:masters"}}),
		"InvalidParameterException")
	want(t, "groups of nodes",
		create(eks.CreateAccessEntryInput{PrincipalArn: &arn, Type: aws.String("EC2_LINUX"), KubernetesGroups: []string{"a"}}),
		"InvalidParameterException")
	want(t, "nodes", create(eks.CreateAccessEntryInput{PrincipalArn: &arn, Type: aws.String("EC2_LINUX")}), "")
	want(t, "again", create(eks.CreateAccessEntryInput{PrincipalArn: &arn}), "ResourceInUseException")

	entry := need[*eks.DescribeAccessEntryOutput](t)(client.DescribeAccessEntry(ctx,
		&eks.DescribeAccessEntryInput{ClusterName: aws.String("entries"), PrincipalArn: &arn})).AccessEntry
	if *entry.Type != "EC2_LINUX" || len(entry.KubernetesGroups) != 1 || entry.KubernetesGroups[0] != "system:nodes" {
		t.Errorf("entry %s %v", *entry.Type, entry.KubernetesGroups)
	}
	policy := eks.AssociateAccessPolicyInput{
		ClusterName: aws.String("entries"), PrincipalArn: &arn, AccessScope: &types.AccessScope{Type: types.AccessScopeTypeCluster},
		PolicyArn: aws.String("arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"),
	}
	_, err := client.AssociateAccessPolicy(ctx, &policy)
	want(t, "policy on nodes", err, "InvalidRequestException")
	need[*eks.DeleteAccessEntryOutput](t)(client.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{
		ClusterName: aws.String("entries"), PrincipalArn: &arn,
	}))
	want(t, "groups", create(eks.CreateAccessEntryInput{PrincipalArn: &arn, KubernetesGroups: []string{"sawhorse:x"}}), "")
	need[*eks.AssociateAccessPolicyOutput](t)(client.AssociateAccessPolicy(ctx, &policy))
	list := need[*eks.ListAssociatedAccessPoliciesOutput](t)(client.ListAssociatedAccessPolicies(ctx,
		&eks.ListAssociatedAccessPoliciesInput{ClusterName: aws.String("entries"), PrincipalArn: &arn}))
	if len(list.AssociatedAccessPolicies) != 1 {
		t.Errorf("policies %v", list.AssociatedAccessPolicies)
	}
}

func TestAnEntryStaysBoundToTheRoleItWasMadeFor(t *testing.T) {
	ctx := context.Background()
	client, _ := cluster(t, "bound")
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "bound", types.AuthenticationModeApiAndConfigMap))
	successful(t, client, "bound", nil, update.Update.Id)
	arn := role(t, "bound-role")
	need[*eks.CreateAccessEntryOutput](t)(client.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: aws.String("bound"), PrincipalArn: &arn,
	}))
	if then, now := bound(t, "bound", arn); then == "" || then != now {
		t.Errorf("new entry: made for %q, role is %q", then, now)
	}
	need[*iam.DeleteRoleOutput](t)(iam.NewFromConfig(sandbox.Config()).DeleteRole(ctx, &iam.DeleteRoleInput{
		RoleName: aws.String("bound-role"),
	}))
	if then, now := bound(t, "bound", arn); then == "" || now != "" {
		t.Errorf("role gone: made for %q, role is %q", then, now)
	}
	role(t, "bound-role")
	if then, now := bound(t, "bound", arn); then == "" || now == "" || then == now {
		t.Errorf("role made again: made for %q, role is %q", then, now)
	}
}
