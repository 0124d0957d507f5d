package plan_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The controller's policies are the catalogue's, scoped to the rack's cluster, node role and queue. The catalogue's tests
// compare those with Karpenter's own.
func TestControllerPoliciesAreTheCatalogues(t *testing.T) {
	documents, err := karpenter.Default().Policies()
	if err != nil {
		t.Fatal(err)
	}
	scope := strings.NewReplacer("${Partition}", "aws", "${Region}", "eu-central-1", "${Account}", "123456789012", "${ClusterName}", "demo",
		"${NodeRoleARN}", "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter-nodes",
		"${QueueARN}", "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter")
	want := map[string]plan.Document{}
	for name, text := range documents {
		var document plan.Document
		scoped := scope.Replace(string(text))
		if err := json.Unmarshal([]byte(scoped), &document); err != nil || strings.Contains(scoped, "${") {
			t.Fatalf("policy %s: %v: %s", name, err, scoped)
		}
		want[name] = document
	}
	if got := outcome(t, "enable").Plan.Infrastructure.Controller.Policies; len(want) < 5 || !reflect.DeepEqual(got, want) {
		t.Errorf("the policies are\n%v\nwant\n%v", got, want)
	}
}

// A rack that has chosen IRSA stays with it, so the add-on would not help it.
func TestALostOIDCProviderIsCreatedAgain(t *testing.T) {
	f := facts()
	f.OIDCProvider, f.Records = false, plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Credentials: "irsa"}
	got := build(t, on, f).Problems
	if len(got) != 1 || strings.Contains(got[0].Message, "create-addon") || !strings.Contains(got[0].Message,
		"`aws iam create-open-id-connect-provider --url https://oidc.eks.eu-central-1.amazonaws.com/id/ABC --client-id-list sts.amazonaws.com`") {
		t.Errorf("%v", got)
	}
}

// A service account of this cluster, and no other, may assume the controller's role.
func TestTrustPolicies(t *testing.T) {
	const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC"
	roles := func(change func(*plan.Facts)) (controller, nodes string) {
		f := facts()
		change(&f)
		made := build(t, on, f).Plan.Infrastructure
		return made.Controller.Trust.JSON(), made.Nodes.Trust.JSON()
	}
	with, nodes := roles(func(*plan.Facts) {})
	if want := `{"Statement":[{"Action":["sts:AssumeRole","sts:TagSession"],"Condition":{"StringEquals":{` +
		`"aws:RequestTag/eks-cluster-arn":"arn:aws:eks:eu-central-1:123456789012:cluster/demo",` +
		`"aws:RequestTag/kubernetes-namespace":"kube-system","aws:RequestTag/kubernetes-service-account":"karpenter"}},` +
		`"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"}}],"Version":"2012-10-17"}`; with != want {
		t.Errorf("Pod Identity: %s\nwant %s", with, want)
	}
	if want := `{"Statement":[{"Action":["sts:AssumeRole"],"Effect":"Allow",` +
		`"Principal":{"Service":"ec2.amazonaws.com"}}],"Version":"2012-10-17"}`; nodes != want {
		t.Errorf("nodes: %s\nwant %s", nodes, want)
	}
	irsa, _ := roles(func(f *plan.Facts) { f.PodIdentity = false })
	if want := `{"Statement":[{"Action":["sts:AssumeRoleWithWebIdentity"],"Condition":{"StringEquals":{` +
		`"` + issuer + `:aud":"sts.amazonaws.com","` + issuer + `:sub":"system:serviceaccount:kube-system:karpenter"}},"Effect":"Allow",` +
		`"Principal":{"Federated":"arn:aws:iam::123456789012:oidc-provider/` + issuer + `"}}],"Version":"2012-10-17"}`; irsa != want {
		t.Errorf("IRSA: %s\nwant %s", irsa, want)
	}
	_, nodes = roles(func(f *plan.Facts) { f.Cluster.Partition = "aws-cn" })
	if !strings.Contains(nodes, `"Service":"ec2.amazonaws.com.cn"`) {
		t.Errorf("nodes in China: %s", nodes)
	}
}

// Build nodes run code of others: their role has only what every node needs, whatever node_policy_arns says.
// Organizations demand paths of their own. The path reaches every place that names a role by its ARN.
func TestRolesAreBelowThePathOfTheDeployment(t *testing.T) {
	f := facts()
	f.Deployment.RolePath = "/team/"
	made := build(t, with(builds, "build_node_minimal_role_enabled", "true"), f).Plan.Infrastructure
	for name, role := range map[string]plan.Role{
		"demo-karpenter": made.Controller, "demo-karpenter-nodes": made.Nodes, "demo-karpenter-build-nodes": *made.BuildNodes,
	} {
		const path = "/team/sawhorse/"
		if arn := "arn:aws:iam::123456789012:role" + path + name; role.ARN != arn || role.Path() != path || made.RoleARN(name) != arn {
			t.Errorf("%s has the ARN %s, the path %s", name, role.ARN, role.Path())
		}
	}
	for name, policy := range made.Controller.Policies {
		if strings.Contains(policy.JSON(), ":role/sawhorse/") {
			t.Errorf("policy %s: %s", name, policy.JSON())
		}
	}
}

// A boundary that is not the stack's own may allow everything.
func TestNodePoliciesUnderAnotherBoundary(t *testing.T) {
	const agent, admin = "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy", "arn:aws:iam::aws:policy/AdministratorAccess"
	f := facts()
	f.Deployment.Boundary = "arn:aws:iam::123456789012:policy/Boundary"
	f.Deployment.NodePolicies = []string{agent}
	if got := build(t, with(on, "node_policy_arns", agent), f); len(got.Problems) > 0 {
		t.Error(got.Problems)
	}
	refused := build(t, with(on, "node_policy_arns", agent+","+admin), f).Problems
	if len(refused) != 1 || refused[0].Parameter != "node_policy_arns" || !strings.Contains(refused[0].Message, admin) ||
		!strings.Contains(refused[0].Message, "policy/Boundary; allowed is what the stack's context value nodePolicyArns has: "+agent) {
		t.Error(refused)
	}
}

// IAM attaches no policy of another account or partition, and says so only when the role has been made.
func TestNodePoliciesThatIAMCannotAttach(t *testing.T) {
	for _, c := range []struct{ policy, partition, problem string }{
		{"arn:aws:iam::aws:policy/A", "aws", ""},
		{"arn:aws:iam::123456789012:policy/A", "aws", ""},
		{"arn:aws:iam::999999999999:policy/A", "aws", "begins with arn:aws:iam::aws:policy/ or arn:aws:iam::123456789012:policy/; write"},
		{"arn:aws:iam::aws:policy/A", "aws-cn", "begins with arn:aws-cn:iam::aws:policy/"},
	} {
		f := facts()
		f.Cluster.Partition = c.partition
		got := build(t, with(on, "node_policy_arns", c.policy), f).Problems
		if c.problem == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Parameter != "node_policy_arns" || !strings.Contains(got[0].Message, c.problem) {
			t.Errorf("%s: %v", c.policy, got)
		}
	}
	others := with(on, "node_policy_arns", "arn:aws:iam::999999999999:policy/A")
	f := facts()
	f.Deployment.Unknown = true
	if got := build(t, others, f); len(got.Problems) > 0 {
		t.Errorf("the account is not known: %v", got.Problems)
	}
	f.Deployment.Unknown, f.Records.WasOn = false, true
	if got := build(t, with(others, "karpenter_enabled", "false"), f); len(got.Problems) > 0 || len(got.Warnings) == 0 {
		t.Errorf("turning off: %v, %v", got.Problems, got.Warnings)
	}
}

func TestTheRoleOfBuildNodesIsMinimal(t *testing.T) {
	own := with(builds, "build_node_minimal_role_enabled", "true",
		"node_policy_arns", "arn:aws:iam::123456789012:policy/own,arn:aws:iam::aws:policy/AdministratorAccess")
	const role = "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter-build-nodes"
	f := facts()
	made := build(t, own, f).Plan.Infrastructure
	want := []string{"arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
		cni, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}
	if made.BuildNodes == nil || made.BuildNodes.ARN != role || !slices.Equal(made.BuildNodes.Attached, want) ||
		made.BuildNodes.Trust != made.Nodes.Trust {
		t.Fatalf("%+v", made.BuildNodes)
	}
	if len(made.Nodes.Attached) != len(want)+2 {
		t.Errorf("other nodes have %v", made.Nodes.Attached)
	}
	if passed := made.Controller.Policies["build-nodes"].JSON(); !strings.Contains(passed, `"Action":"iam:PassRole"`) ||
		!strings.Contains(passed, `"Resource":"`+role+`"`) || !strings.Contains(passed, `"iam:PassedToService":["ec2.amazonaws.com"`) {
		t.Errorf("Karpenter passes %s", passed)
	}
	f.CNI = &plan.CNI{Pods: 1, OwnRole: true}
	if got := build(t, own, f).Plan.Infrastructure.BuildNodes.Attached; slices.Contains(got, cni) || len(got) != len(want)-1 {
		t.Errorf("with a role for the CNI: %v", got)
	}
}

// Once it is not asked for any more, the step removes the role when no node has it. Karpenter may pass the role until then:
// its pool is changed later in the pass.
func TestTheRoleOfBuildNodesEnds(t *testing.T) {
	had := facts()
	had.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, HadBuildRole: true}
	off := had
	off.Records.WasOn = false
	own := with(builds, "build_node_minimal_role_enabled", "true")
	for what, c := range map[string]struct {
		written               texts
		facts                 plan.Facts
		role, passed, retired bool
	}{
		"never":                    {builds, facts(), false, false, false},
		"without build pool":       {with(on, "build_node_minimal_role_enabled", "true"), facts(), false, false, false},
		"on":                       {own, had, true, true, false},
		"turned off":               {builds, had, false, true, true},
		"the pool ends":            {with(on, "build_node_minimal_role_enabled", "true"), had, false, true, true},
		"before Karpenter was off": {builds, off, false, false, false},
	} {
		made := build(t, c.written, c.facts).Plan.Infrastructure
		if (made.BuildNodes != nil) != c.role ||
			(made.Controller.Policies["build-nodes"] != "") != c.passed || (made.Retired != "") != c.retired {
			t.Errorf("%s: role %v, policies %v, retired %q", what, made.BuildNodes, made.Controller.Policies["build-nodes"], made.Retired)
		}
	}
}
