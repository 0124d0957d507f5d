package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// narrowed is where the policies differ from Karpenter's: of the account's subnets and security groups, they allow
// launches only into those with the cluster's discovery tag.
const (
	networks = `  on arn:${Partition}:ec2:${Region}:*:security-group/*
  on arn:${Partition}:ec2:${Region}:*:subnet/*
`
	narrowed = `node-lifecycle AllowScopedEC2NetworkAccessActions
  may ec2:CreateFleet
  may ec2:RunInstances
  on arn:${Partition}:ec2:${Region}:${Account}:security-group/*
  on arn:${Partition}:ec2:${Region}:${Account}:subnet/*
  if StringEquals aws:ResourceTag/karpenter.sh/discovery = ${ClusterName}
`
)

// The controller's policies are those of Karpenter 1.10's own CloudFormation template, statement by statement, scoped
// to the rack's cluster, node role and queue, except for what is narrowed. The catalogue's tests have the template's
// facts, one per line.
func TestControllerPoliciesAreKarpenters(t *testing.T) {
	var have []string
	for name, document := range outcome(t, "enable").Plan.Infrastructure.Controller.Policies {
		have = append(have, statements(t, name, document)...)
	}
	slices.Sort(have)
	text, err := os.ReadFile("../karpenter/testdata/policies-1.10.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), networks) != 1 || strings.Count(string(text), " Allow") != 17 {
		t.Fatalf("the test has lost the facts: %s", text)
	}
	const next = "node-lifecycle AllowScopedResourceCreationTagging"
	want := strings.NewReplacer(networks, "", next, narrowed+next).Replace(string(text))
	want = strings.NewReplacer("${Partition}", "aws", "${Region}", "eu-central-1", "${Account}", "123456789012", "${ClusterName}", "demo",
		"${NodeRoleARN}", "arn:aws:iam::123456789012:role/sawhorse/demo-karpenter-nodes",
		"${QueueARN}", "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter").Replace(want)
	if strings.Contains(want, "${") {
		t.Fatalf("the test has lost the facts: %s", want)
	}
	if got := strings.Join(have, "\n") + "\n"; got != want {
		t.Errorf("the policies say\n%s\nKarpenter's say\n%s", got, want)
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

// statements lists a policy's statements: the name, then what each allows, on which resources and under which
// conditions.
func statements(t *testing.T, name string, document plan.Document) (all []string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect      string
			Action, Resource any
			Condition        map[string]map[string]any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(document.JSON()))
	decoder.DisallowUnknownFields() // refuses NotAction and NotResource
	if err := decoder.Decode(&policy); err != nil {
		t.Fatalf("policy %s: %v", name, err)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("policy %s: %s: effect %s", name, s.Sid, s.Effect)
		}
		lines := []string{name + " " + s.Sid}
		for _, action := range sorted(s.Action) {
			lines = append(lines, "  may "+action)
		}
		for _, resource := range sorted(s.Resource) {
			lines = append(lines, "  on "+resource)
		}
		var conditions []string
		for operator, keys := range s.Condition {
			for key, value := range keys {
				conditions = append(conditions, fmt.Sprintf("  if %s %s = %s", operator, key, strings.Join(sorted(value), " | ")))
			}
		}
		slices.Sort(conditions)
		all = append(all, strings.Join(append(lines, conditions...), "\n"))
	}
	return all
}

// sorted returns one string or several, sorted.
func sorted(value any) (all []string) {
	several, ok := value.([]any)
	if !ok {
		several = []any{value}
	}
	for _, one := range several {
		all = append(all, fmt.Sprint(one))
	}
	slices.Sort(all)
	return all
}
