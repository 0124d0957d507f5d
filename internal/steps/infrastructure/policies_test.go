package infrastructure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
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
// to the rack's cluster, node role and queue, except for what is narrowed. testdata holds the template's facts, one per
// line.
func TestControllerPoliciesAreKarpenters(t *testing.T) {
	p := wanted(true, true)
	role, err := controllerRole(p)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for name, document := range role.inline {
		have = append(have, facts(t, name, document)...)
	}
	slices.Sort(have)
	text, err := os.ReadFile("testdata/karpenter-1.10-policies.txt")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), networks) != 1 || strings.Count(string(text), " Allow") != 17 {
		t.Fatalf("the test has lost the facts: %s", text)
	}
	const next = "node-lifecycle AllowScopedResourceCreationTagging"
	want := strings.NewReplacer(networks, "", next, narrowed+next).Replace(string(text))
	want = strings.NewReplacer("${Partition}", "aws", "${Region}", "eu-central-1", "${Account}", "123456789012", "${ClusterName}", "demo",
		"${NodeRoleARN}", nodesARN, "${QueueARN}", "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter").Replace(want)
	if strings.Contains(want, "${") {
		t.Fatalf("the test has lost the facts: %s", want)
	}
	if got := strings.Join(have, "\n") + "\n"; got != want {
		t.Errorf("the policies say\n%s\nKarpenter's say\n%s", got, want)
	}
}

// Subnets and security groups that another account shares are named by ARN: AWS does not document whether a policy sees
// the tags of another account's resources.
func TestSharedNetworksAreNamed(t *testing.T) {
	p := wanted(true, true)
	role, err := controllerRole(p)
	if err != nil || role.inline["shared-networks"] != "" {
		t.Fatalf("without shared networks: %q, %v", role.inline["shared-networks"], err)
	}
	p.Infrastructure.SharedNetworks = []string{"arn:aws:ec2:eu-central-1:210987654321:subnet/subnet-1"}
	if role, err = controllerRole(p); err != nil {
		t.Fatal(err)
	}
	want := "shared-networks AllowSharedNetworkAccessActions\n  may ec2:CreateFleet\n  may ec2:RunInstances\n  on " + p.Infrastructure.SharedNetworks[0]
	if got := strings.Join(facts(t, "shared-networks", role.inline["shared-networks"]), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// facts lists a policy's statements: the name, then what each allows, on which resources and under which conditions.
func facts(t *testing.T, name, document string) (all []string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect      string
			Action, Resource any
			Condition        map[string]map[string]any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.DisallowUnknownFields() // refuses NotAction and NotResource
	if err := decoder.Decode(&policy); err != nil {
		t.Fatalf("policy %s: %v", name, err)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("policy %s: %s: effect %s", name, s.Sid, s.Effect)
		}
		lines := []string{name + " " + s.Sid}
		for _, action := range texts(s.Action) {
			lines = append(lines, "  may "+action)
		}
		for _, resource := range texts(s.Resource) {
			lines = append(lines, "  on "+resource)
		}
		var conditions []string
		for operator, keys := range s.Condition {
			for key, value := range keys {
				conditions = append(conditions, fmt.Sprintf("  if %s %s = %s", operator, key, strings.Join(texts(value), " | ")))
			}
		}
		slices.Sort(conditions)
		all = append(all, strings.Join(append(lines, conditions...), "\n"))
	}
	return all
}

// texts returns one string or several, sorted.
func texts(value any) (all []string) {
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
