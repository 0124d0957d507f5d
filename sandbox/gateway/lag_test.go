package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// lag sets the lag of a resource for the rest of the test. The other tests run without lag.
func lag(t *testing.T, kind, resource string, seconds float64) {
	t.Helper()
	order := func(more string) {
		target := fmt.Sprintf("%s/_sandbox/lag?kind=%s&resource=%s%s", sandbox.URL, kind, url.QueryEscape(resource), more)
		resp := need[*http.Response](t)(http.Post(target, "", nil))
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", target, resp.Status)
		}
	}
	order(fmt.Sprintf("&seconds=%g", seconds))
	t.Cleanup(func() { order("") })
}

const everything = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`

// moment is a lag in seconds that is longer than one call and short enough for tests to wait for.
const moment = 2.0

func TestTheSeedDecidesEachLag(t *testing.T) {
	t.Parallel()
	draw := func(seed string) string {
		command := exec.Command("../../.cache/ministack/bin/python", "-B", "-c", `import lag
for resource in ("demo-karpenter", "demo-karpenter-nodes", "demo-karpenter", "Sawhorse-Role-0123456789ABC"):
    for kind in lag.KINDS:
        seconds = lag.begin(kind, resource) and lag._begun[-1]["seconds"]
        assert 0 <= seconds <= lag.KINDS[kind] / 2, (kind, seconds)
        print(kind, seconds)`)
		command.Env = append(os.Environ(), "PYTHONPATH=../ministack", "SANDBOX_LAG_SEED="+seed, "SANDBOX_LAG_SCALE=0.5")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	first := draw("7")
	if again := draw("7"); again != first {
		t.Errorf("the same seed gave\n%s\nand then\n%s", first, again)
	}
	if draw("8") == first {
		t.Error("another seed gives the same")
	}
	lines := strings.Split(first, "\n")
	if again := len(lines) / 2; lines[0] == lines[again] {
		t.Errorf("a resource that is written twice takes the same time twice: %s", lines[0])
	}
}

func TestNewRolesAreUnknownAtFirst(t *testing.T) {
	t.Parallel()
	ctx, role := context.Background(), "late-role"
	client, _ := cluster(t, "late-roles")
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, "late-roles", "API_AND_CONFIG_MAP"))
	successful(t, client, "late-roles", nil, update.Update.Id)
	who := as(t, "late-roles-caller", everything)
	mine, theirs := iam.NewFromConfig(who), eks.NewFromConfig(who)
	lag(t, "iam", role, moment)
	lag(t, "eks-role", role, 2*moment)
	made := need[*iam.CreateRoleOutput](t)(mine.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &role, Path: aws.String("/sawhorse/"), AssumeRolePolicyDocument: aws.String(trust),
	}))
	get := func(client *iam.Client) error {
		_, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
		return err
	}
	put := func() error {
		_, err := mine.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
			RoleName: &role, PolicyName: aws.String("p"), PolicyDocument: aws.String(everything),
		})
		return err
	}
	entry := func() error {
		_, err := theirs.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
			ClusterName: aws.String("late-roles"), PrincipalArn: made.Role.Arn,
		})
		return err
	}
	association := func() error {
		_, err := theirs.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{ClusterName: aws.String("late-roles"),
			Namespace: aws.String("n"), ServiceAccount: aws.String("s"), RoleArn: made.Role.Arn})
		return err
	}
	want(t, "reading it", get(mine), "NoSuchEntity")
	want(t, "root reads it", get(iam.NewFromConfig(sandbox.Config())), "")
	want(t, "writing to it", put(), "NoSuchEntity")
	says(t, "an entry", entry(), "InvalidParameterException", "The specified principalArn is invalid: invalid principal")
	says(t, "an association", association(), "InvalidParameterException", "Role provided in the request does not exist")
	eventually(t, "IAM shows it", func() bool { return get(mine) == nil })
	want(t, "EKS does not know it yet", entry(), "InvalidParameterException")
	want(t, "writing to it", put(), "")
	policies := need[*iam.ListRolePoliciesOutput](t)(mine.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role}))
	if len(policies.PolicyNames) != 0 {
		t.Errorf("policies %v at once", policies.PolicyNames)
	}
	eventually(t, "IAM shows the policy", func() bool {
		out, err := mine.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role})
		return err == nil && len(out.PolicyNames) == 1
	})
	eventually(t, "EKS knows it", func() bool { return entry() == nil })
	want(t, "an association", association(), "")
}

func says(t *testing.T, what string, err error, code, text string) {
	t.Helper()
	want(t, what, err, code)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// A call that names a role which IAM's replica does not know yet is authorized on an ARN without a path.
func TestAnUnknownRoleHasNoPath(t *testing.T) {
	t.Parallel()
	ctx, role := context.Background(), "pathless"
	mine := iam.NewFromConfig(as(t, "pathless-caller",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::*:role/sawhorse/*"}]}`))
	lag(t, "iam", role, moment)
	need[*iam.CreateRoleOutput](t)(mine.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &role, Path: aws.String("/sawhorse/"), AssumeRolePolicyDocument: aws.String(trust),
	}))
	put := func() error {
		_, err := mine.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
			RoleName: &role, PolicyName: aws.String("p"), PolicyDocument: aws.String(everything),
		})
		return err
	}
	want(t, "at once", put(), "AccessDenied")
	eventually(t, "later", func() bool { return put() == nil })
}

func TestEC2HearsOfPoliciesLater(t *testing.T) {
	t.Parallel()
	const role = "late-policies"
	lag(t, "ec2-policies", role, moment)
	mine := ec2.NewFromConfig(as(t, role, everything))
	describe := func() error {
		_, err := mine.DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
		return err
	}
	want(t, "at once", describe(), "UnauthorizedOperation")
	eventually(t, "later", func() bool { return describe() == nil })
}

// granted returns whether the API server knows a principal's entry, and the number of its access policies.
func granted(t *testing.T, cluster, principal string) (known bool, policies int) {
	t.Helper()
	resp := need[*http.Response](t)(http.Get(sandbox.URL + "/_sandbox/access-entries?cluster=" + cluster))
	defer resp.Body.Close()
	var answer struct {
		AccessEntries []struct {
			PrincipalArn string
			Policies     []any
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for _, entry := range answer.AccessEntries {
		if entry.PrincipalArn == principal {
			return true, len(entry.Policies)
		}
	}
	return false, 0
}

func TestAccessEntriesComeAndGoLate(t *testing.T) {
	t.Parallel()
	ctx, name := context.Background(), aws.String("late-entries")
	client, _ := cluster(t, *name)
	update := need[*eks.UpdateClusterConfigOutput](t)(toMode(t, client, *name, "API_AND_CONFIG_MAP"))
	successful(t, client, *name, nil, update.Update.Id)
	mine, principal := eks.NewFromConfig(as(t, "late-entries-caller", everything)), role(t, "late-entry")
	key := *name + "/late-entry"
	lag(t, "access-entry", key, moment)
	lag(t, "access-policy", key, moment)
	lag(t, "deleted-entry", key, moment)
	create := func() error {
		_, err := mine.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: name, PrincipalArn: &principal})
		return err
	}
	associate := func() error {
		_, err := mine.AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{ClusterName: name, PrincipalArn: &principal,
			PolicyArn: aws.String("arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"), AccessScope: &types.AccessScope{
				Type: types.AccessScopeTypeCluster,
			}})
		return err
	}
	list := func() error {
		_, err := mine.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{
			ClusterName: name, PrincipalArn: &principal,
		})
		return err
	}
	describe := func() error {
		_, err := mine.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: name, PrincipalArn: &principal})
		return err
	}
	want(t, "create", create(), "")
	for what, err := range map[string]error{"associate": associate(), "list": list()} {
		says(t, what, err, "ResourceNotFoundException", "The specified principalArn could not be found")
	}
	if known, _ := granted(t, *name, principal); known {
		t.Error("the API server knows the entry at once")
	}
	eventually(t, "EKS knows the entry", func() bool { return associate() == nil })
	if known, policies := granted(t, *name, principal); !known || policies != 0 {
		t.Errorf("the API server: known %v, %d policies", known, policies)
	}
	eventually(t, "the API server grants it", func() bool { _, policies := granted(t, *name, principal); return policies == 1 })
	need[*eks.DeleteAccessEntryOutput](t)(mine.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{
		ClusterName: name, PrincipalArn: &principal,
	}))
	want(t, "it lingers", describe(), "")
	want(t, "again", create(), "ResourceInUseException")
	eventually(t, "it has gone", func() bool { return code(describe()) == "ResourceNotFoundException" })
	want(t, "again", create(), "")
}

func TestPodsAreGivenCredentialsLate(t *testing.T) {
	t.Parallel()
	ctx, name := context.Background(), aws.String("late-pods")
	client, _ := cluster(t, *name)
	arn := role(t, "late-pod")
	assigned := func() bool {
		resp := need[*http.Response](t)(http.Get(sandbox.URL +
			"/_sandbox/pod-identity?accessKeyId=test&cluster=late-pods&namespace=n&serviceAccount=s"))
		defer resp.Body.Close()
		var answer struct{ Assigned bool }
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer.Assigned
	}
	if assigned() {
		t.Error("without an association")
	}
	lag(t, "pod-identity", *name+"/n/s", moment)
	need[*eks.CreatePodIdentityAssociationOutput](t)(client.CreatePodIdentityAssociation(ctx,
		&eks.CreatePodIdentityAssociationInput{ClusterName: name,
			Namespace: aws.String("n"), ServiceAccount: aws.String("s"), RoleArn: &arn}))
	if assigned() {
		t.Error("at once")
	}
	eventually(t, "later", assigned)
}

func TestQueuesComeAndGoLate(t *testing.T) {
	ctx, name := context.Background(), aws.String("late-queue")
	mine := sqs.NewFromConfig(as(t, "late-queue-caller", everything))
	lag(t, "queue", *name, moment)
	lag(t, "deleted-queue", *name, moment)
	hold := func(seconds int) {
		need[*http.Response](t)(http.Post(fmt.Sprintf("%s/_sandbox/queue-hold?seconds=%d", sandbox.URL, seconds), "", nil)).Body.Close()
	}
	find := func() error {
		_, err := mine.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: name})
		return err
	}
	create := func() (*sqs.CreateQueueOutput, error) {
		return mine.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: name})
	}
	const missing = "AWS.SimpleQueueService.NonExistentQueue"
	queue := need[*sqs.CreateQueueOutput](t)(create()).QueueUrl
	tags := func() error {
		_, err := mine.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: queue})
		return err
	}
	want(t, "finding it", find(), missing)
	want(t, "its tags", tags(), missing)
	eventually(t, "it is there", func() bool { return find() == nil && tags() == nil })
	hold(2)
	defer hold(0)
	need[*sqs.DeleteQueueOutput](t)(mine.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: queue}))
	want(t, "it is still found", find(), "")
	want(t, "and answers", tags(), "")
	_, err := create()
	want(t, "another one", err, "AWS.SimpleQueueService.QueueDeletedRecently")
	eventually(t, "it has gone", func() bool { return code(find()) == missing })
	eventually(t, "another one", func() bool { _, err := create(); return err == nil })
}

func TestParametersAreReadLate(t *testing.T) {
	t.Parallel()
	ctx, name := context.Background(), "/late/params/a"
	writer := ssm.NewFromConfig(sandbox.Config())
	mine := ssm.NewFromConfig(as(t, "late-parameters", everything))
	byPath := func(client *ssm.Client) string {
		out := need[*ssm.GetParametersByPathOutput](t)(client.GetParametersByPath(ctx, &ssm.GetParametersByPathInput{
			Path: aws.String("/late"), Recursive: aws.Bool(true),
		}))
		if len(out.Parameters) == 0 {
			return "none"
		}
		return fmt.Sprintf("%s, version %d", *out.Parameters[0].Value, out.Parameters[0].Version)
	}
	alone := func(client *ssm.Client) string {
		one, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		if err != nil {
			want(t, "alone", err, "ParameterNotFound")
			return "none"
		}
		return fmt.Sprintf("%s, version %d", *one.Parameter.Value, one.Parameter.Version)
	}
	value := func(client *ssm.Client) string {
		for {
			before, one := byPath(client), alone(client)
			if byPath(client) != before {
				continue // the write became visible between the two reads
			}
			if one != before {
				t.Errorf("%s alone, %s by path", one, before)
			}
			return before
		}
	}
	lag(t, "parameter", name, moment)
	for _, step := range []struct {
		do          func()
		first, then string
	}{
		{func() { want(t, "create", put(writer, name, "1", nil), "") }, "none", "1, version 1"},
		{func() { want(t, "change", put(writer, name, "2", overwrite), "") }, "1, version 1", "2, version 2"},
		{func() {
			need[*ssm.DeleteParameterOutput](t)(writer.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name}))
		}, "2, version 2", "none"},
	} {
		step.do()
		if got := value(mine); got != step.first {
			t.Errorf("at once %s, want %s", got, step.first)
		}
		if got := value(writer); got != step.then {
			t.Errorf("root sees %s, want %s", got, step.then)
		}
		eventually(t, step.then, func() bool { return value(mine) == step.then })
	}
}

func TestTagsAreSeenLate(t *testing.T) {
	t.Parallel()
	ctx, mine := context.Background(), ec2.NewFromConfig(as(t, "late-tags", everything))
	vpc := need[*ec2.CreateVpcOutput](t)(mine.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.1.0.0/16")})).Vpc.VpcId
	find := func() int {
		return len(need[*ec2.DescribeVpcsOutput](t)(mine.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: tagged("late", "yes")})).Vpcs)
	}
	lag(t, "tags", *vpc, moment)
	tags := []ec2types.Tag{{Key: aws.String("late"), Value: aws.String("yes")}}
	began := time.Now()
	need[*ec2.CreateTagsOutput](t)(mine.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{*vpc}, Tags: tags}))
	if find() != 0 {
		t.Errorf("the tag is seen after %s", time.Since(began))
	}
	eventually(t, "the tag is seen", func() bool { return find() == 1 })
	need[*ec2.DeleteTagsOutput](t)(mine.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{*vpc}, Tags: tags}))
	if find() != 1 {
		t.Error("the tag is gone at once")
	}
	eventually(t, "the tag is gone", func() bool { return find() == 0 })
	_, err := mine.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{"vpc-00000000"}, Tags: tags})
	want(t, "no such VPC", err, "InvalidVpcID.NotFound")
}
