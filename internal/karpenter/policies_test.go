package karpenter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// The CloudFormation templates of Karpenter's documentation, from which testdata has the facts of each version's policies,
// one per line: of aws/karpenter-provider-aws, website/content/en/{folder}/getting-started/
// getting-started-with-karpenter/cloudformation.yaml. The folders are v1.10, v1.12 and v1.14, and for 1.15.1 the preview
// of 2026-08-21, the last before its release.

// Where the policies differ from Karpenter's: of the account's subnets and security groups, they allow launches only into
// those with the cluster's discovery tag; and only from images of Amazon, and from the account's own that are meant for
// nodes.
const (
	images = `  on arn:${Partition}:ec2:${Region}::image/*
`
	narrowedImages = `node-lifecycle AllowImagesForNodes
  may ec2:CreateFleet
  may ec2:RunInstances
  on arn:${Partition}:ec2:${Region}::image/*
  if StringEquals ec2:Owner = ${Account}
  if StringLike aws:ResourceTag/sawhorse.dev/nodes = *
node-lifecycle AllowImagesOfAmazon
  may ec2:CreateFleet
  may ec2:RunInstances
  on arn:${Partition}:ec2:${Region}::image/*
  if StringEquals ec2:Owner = amazon
`
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

// Every version's policies are those of its own CloudFormation template, statement by statement, except for what is
// narrowed.
func TestPoliciesAreKarpenters(t *testing.T) {
	for _, r := range karpenter.All() {
		reference, err := os.ReadFile("testdata/policies-" + r.Version + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		const next = "node-lifecycle AllowScopedResourceCreationTagging"
		count := func(part string) int { return strings.Count(string(reference), part) }
		const first = "node-lifecycle AllowScopedDeletion\n"
		if count(networks) != 1 || count(images) != 1 || count(next) != 1 || count(first) != 1 || count(" Allow") < 17 {
			t.Fatalf("the test has lost the facts: %s", reference)
		}
		want := strings.NewReplacer(networks, "", images, "", first, narrowedImages+first, next, narrowed+next).Replace(string(reference))
		if got := strings.Join(statements(t, r), "\n") + "\n"; got != want {
			t.Errorf("%s: the policies say\n%s\nKarpenter's say\n%s", r.Version, got, want)
		}
	}
}

// withoutCall has the actions that policies allow although no code of Karpenter's calls an API of that name, and why.
var withoutCall = map[string]string{
	"iam:PassRole":           "IAM and EC2 check it when a role is put into an instance profile",
	"iam:TagInstanceProfile": "IAM checks it for CreateInstanceProfile with tags",
	"sqs:GetQueueUrl":        "1.10 finds its queue by another way; later versions call it",
}

// withoutRight has the calls in Karpenter's code that its own policies do not allow, and why none is made.
var withoutRight = map[string]string{
	"ec2:RebootInstances": "made with the feature gate rebootForRepair, which is off",
	"sqs:SendMessage":     "made by Karpenter's tests",
}

// Every call of a version is allowed, and every right is for a call, with known exceptions.
func TestPoliciesAllowTheCalls(t *testing.T) {
	noCall, noRight := map[string]bool{}, map[string]bool{}
	for _, r := range karpenter.All() {
		var allowed []string
		for line := range strings.Lines(strings.Join(statements(t, r), "\n")) {
			if action, ok := strings.CutPrefix(strings.TrimSpace(line), "may "); ok {
				allowed = append(allowed, action)
			}
		}
		for _, call := range r.Calls {
			if slices.Contains(allowed, call) {
				continue
			}
			if noRight[call] = true; withoutRight[call] == "" {
				t.Errorf("%s calls %s, which its policies do not allow", r.Version, call)
			}
		}
		for _, action := range allowed {
			if slices.Contains(r.Calls, action) {
				continue
			}
			if noCall[action] = true; withoutCall[action] == "" {
				t.Errorf("%s may %s, and none of its code calls it", r.Version, action)
			}
		}
	}
	for action := range withoutCall {
		if !noCall[action] {
			t.Errorf("withoutCall has %s, which every version with the right calls", action)
		}
	}
	for action := range withoutRight {
		if !noRight[action] {
			t.Errorf("withoutRight has %s, which no version calls without the right", action)
		}
	}
}

// What a version calls beyond the version before it, which is what an upgrade has to allow first.
func TestCallsBeyondTheVersionBefore(t *testing.T) {
	want := map[string][]string{
		"1.12.1": {"arc-zonal-shift:GetManagedResource", "ec2:DescribeInstanceStatus", "ec2:DescribePlacementGroups", "sqs:GetQueueUrl"},
		"1.14.3": nil,
		"1.15.1": {"ec2:RebootInstances"},
	}
	all := karpenter.All()
	for i, r := range all[1:] {
		var beyond []string
		for _, call := range r.Calls {
			if !slices.Contains(all[i].Calls, call) {
				beyond = append(beyond, call)
			}
		}
		if !slices.Equal(beyond, want[r.Version]) {
			t.Errorf("%s calls %v beyond %s, want %v", r.Version, beyond, all[i].Version, want[r.Version])
		}
	}
}

// statements lists the statements of a version's policies, sorted.
func statements(t *testing.T, r karpenter.Release) (all []string) {
	t.Helper()
	documents, err := r.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range documents {
		all = append(all, facts(t, name, document)...)
	}
	slices.Sort(all)
	return all
}

// facts lists a policy's statements: the name, then what each allows, on which resources and under which conditions.
func facts(t *testing.T, name string, document []byte) (all []string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect      string
			Action, Resource any
			Condition        map[string]map[string]any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(string(document)))
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
