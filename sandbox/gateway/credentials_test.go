package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// podCredentials requests the Pod Identity credentials of kube-system/karpenter in the cluster.
func podCredentials(t *testing.T, cluster string) map[string]string {
	t.Helper()
	query := url.Values{"accessKeyId": {"test"}, "cluster": {cluster}, "namespace": {"kube-system"}, "serviceAccount": {"karpenter"}}
	resp := need[*http.Response](t)(http.Get(sandbox.MiniStack.String() + "/_sandbox/pod-credentials?" + query.Encode()))
	defer resp.Body.Close()
	answer := map[string]string{}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// setTrust replaces the role's trust policy.
func setTrust(t *testing.T, role, principal, statement string) {
	t.Helper()
	document := fmt.Sprintf(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":%s,%s}}`, principal, statement)
	need[*iam.UpdateAssumeRolePolicyOutput](t)(iam.NewFromConfig(sandbox.Config()).UpdateAssumeRolePolicy(context.Background(),
		&iam.UpdateAssumeRolePolicyInput{RoleName: &role, PolicyDocument: &document}))
}

const pods = `{"Service":"pods.eks.amazonaws.com"}`

// podRole creates a role with a policy, and returns credentials for it that Pod Identity issues in a
// cluster of its own.
func podRole(t *testing.T, name, policy string) aws.Config {
	t.Helper()
	ctx, identity := context.Background(), iam.NewFromConfig(sandbox.Config())
	client, _ := cluster(t, name)
	arn, roleName := role(t, name+"-karpenter"), name+"-karpenter"
	setTrust(t, roleName, pods, `"Action":["sts:AssumeRole","sts:TagSession"]`)
	need[*iam.PutRolePolicyOutput](t)(identity.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: &roleName, PolicyName: aws.String("p"), PolicyDocument: &policy,
	}))
	need[*eks.CreateAddonOutput](t)(client.CreateAddon(ctx, &eks.CreateAddonInput{
		ClusterName: &name, AddonName: aws.String("eks-pod-identity-agent"),
	}))
	need[*eks.CreatePodIdentityAssociationOutput](t)(client.CreatePodIdentityAssociation(ctx,
		&eks.CreatePodIdentityAssociationInput{ClusterName: &name,
			Namespace: aws.String("kube-system"), ServiceAccount: aws.String("karpenter"), RoleArn: &arn}))
	got := podCredentials(t, name)
	return sandbox.Config(got["AccessKeyId"], got["SecretAccessKey"], got["Token"])
}

func TestPodCredentials(t *testing.T) {
	ctx := context.Background()
	client, _ := cluster(t, "agent")
	name, arn := aws.String("agent"), role(t, "agent-karpenter")
	association := &eks.CreatePodIdentityAssociationInput{ClusterName: name, Namespace: aws.String("kube-system"),
		ServiceAccount: aws.String("karpenter"), RoleArn: &arn}
	need[*eks.CreatePodIdentityAssociationOutput](t)(client.CreatePodIdentityAssociation(ctx, association))
	if got := podCredentials(t, *name); len(got) != 0 {
		t.Errorf("without the agent's add-on: %v", got)
	}
	need[*eks.CreateAddonOutput](t)(client.CreateAddon(ctx, &eks.CreateAddonInput{
		ClusterName: name, AddonName: aws.String("eks-pod-identity-agent"),
	}))
	for _, c := range []struct{ principal, statement, refusal string }{
		{`{"Service":"ec2.amazonaws.com"}`, `"Action":["sts:AssumeRole","sts:TagSession"]`, "sts:AssumeRole"},
		{pods, `"Action":"sts:AssumeRole"`, "sts:TagSession"},
		{pods, `"Action":["sts:AssumeRole","sts:TagSession"]`, ""},
	} {
		setTrust(t, "agent-karpenter", c.principal, c.statement)
		if got := podCredentials(t, *name)["error"]; !strings.HasSuffix(got, c.refusal) || c.refusal == "" && got != "" {
			t.Errorf("%s %s: %q, want a refusal of %q", c.principal, c.statement, got, c.refusal)
		}
	}
	got := podCredentials(t, *name)
	who := need[*sts.GetCallerIdentityOutput](t)(sts.NewFromConfig(sandbox.Config(got["AccessKeyId"], got["SecretAccessKey"],
		got["Token"])).
		GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	if want := "arn:aws:sts::000000000000:assumed-role/agent-karpenter/eks-agent-karpenter"; *who.Arn != want {
		t.Errorf("the pod is %s, want %s", *who.Arn, want)
	}
}

func TestWebIdentity(t *testing.T) {
	ctx, identity := context.Background(), iam.NewFromConfig(sandbox.Config())
	arn, issuer := role(t, "irsa"), "oidc.eks.us-east-1.amazonaws.com/id/IRSA"
	token := func(account string) string {
		claims := fmt.Sprintf(`{"iss":"https://%s","aud":["sts.amazonaws.com"],"sub":"system:serviceaccount:kube-system:%s"}`,
			issuer, account)
		part := base64.RawURLEncoding.EncodeToString
		return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
	}
	assume := func(account string) error {
		_, err := sts.NewFromConfig(sandbox.Config()).AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{
			RoleArn: &arn, RoleSessionName: aws.String("s"), WebIdentityToken: aws.String(token(account))})
		return err
	}
	want(t, "no provider", assume("karpenter"), "InvalidIdentityToken")
	made := need[*iam.CreateOpenIDConnectProviderOutput](t)(identity.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String("https://" + issuer), ClientIDList: []string{"other"}}))
	defer func() {
		_, err := identity.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{
			OpenIDConnectProviderArn: made.OpenIDConnectProviderArn,
		})
		want(t, "cleaning up", err, "")
	}()
	want(t, "another audience", assume("karpenter"), "InvalidIdentityToken")
	need[*iam.AddClientIDToOpenIDConnectProviderOutput](t)(identity.AddClientIDToOpenIDConnectProvider(ctx,
		&iam.AddClientIDToOpenIDConnectProviderInput{
			OpenIDConnectProviderArn: made.OpenIDConnectProviderArn, ClientID: aws.String("sts.amazonaws.com")}))
	want(t, "no trust", assume("karpenter"), "AccessDenied")
	setTrust(t, "irsa", `{"Federated":"`+*made.OpenIDConnectProviderArn+`"}`, fmt.Sprintf(`"Action":"sts:AssumeRoleWithWebIdentity",
		"Condition":{"StringEquals":{"%s:aud":"sts.amazonaws.com",
			"%s:sub":"system:serviceaccount:kube-system:karpenter"}}`, issuer, issuer))
	want(t, "another service account", assume("other"), "AccessDenied")
	want(t, "the service account", assume("karpenter"), "")
}

func TestInstanceProfilesAreAuthorizedByPathAndTags(t *testing.T) {
	ctx := context.Background()
	scoped := iam.NewFromConfig(podRole(t, "profiles", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["iam:CreateInstanceProfile","iam:GetInstanceProfile"],
			"Resource":"arn:aws:iam::000000000000:instance-profile/karpenter/*"},
		{"Effect":"Allow","Action":"iam:DeleteInstanceProfile","Resource":"arn:aws:iam::000000000000:instance-profile/karpenter/*",
		 "Condition":{"StringEquals":{"aws:ResourceTag/cluster":"profiles"}}}]}`))
	create := func(name, path, cluster string) error {
		_, err := scoped.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path,
			Tags: []iamtypes.Tag{{Key: aws.String("cluster"), Value: &cluster}}})
		return err
	}
	remove := func(name string) error {
		_, err := scoped.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
		return err
	}
	want(t, "outside the path", create("p0", "/", "profiles"), "AccessDenied")
	want(t, "inside the path", create("p1", "/karpenter/x/", "profiles"), "")
	want(t, "another's tag", create("p2", "/karpenter/x/", "other"), "")
	_, err := scoped.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("p1")})
	want(t, "reading it", err, "")
	want(t, "deleting another's", remove("p2"), "AccessDenied")
	want(t, "deleting ours", remove("p1"), "")
}

func TestPublicParametersBelongToNoAccount(t *testing.T) {
	scoped := ssm.NewFromConfig(podRole(t, "public", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"ssm:GetParameter","Resource":"arn:aws:ssm:us-east-1::parameter/aws/service/*"}]}`))
	get := func(name string) error {
		_, err := scoped.GetParameter(context.Background(), &ssm.GetParameterInput{Name: &name})
		return err
	}
	want(t, "AWS's own", get("/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id"), "")
	want(t, "the account's", get("/mine"), "AccessDeniedException")
}
