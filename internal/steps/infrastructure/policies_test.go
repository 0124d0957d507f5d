package infrastructure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The controller's policies are those of Karpenter 1.10's own CloudFormation template, statement by statement, scoped to
// the rack's cluster, node role and queue. The facts of that template are in testdata, one a line.
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
	want := strings.NewReplacer("${Partition}", "aws", "${Region}", "eu-central-1", "${Account}", "123456789012", "${ClusterName}", "demo",
		"${NodeRoleARN}", nodesARN, "${QueueARN}", "arn:aws:sqs:eu-central-1:123456789012:demo-karpenter").Replace(string(text))
	if strings.Contains(want, "${") || strings.Count(want, " Allow") != 17 {
		t.Fatalf("the test has lost the facts: %s", want)
	}
	if got := strings.Join(have, "\n") + "\n"; got != want {
		t.Errorf("the policies say\n%s\nKarpenter's say\n%s", got, want)
	}
}

// facts are a policy's statements: who, then what each may, on what, and if what.
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
	decoder.DisallowUnknownFields() // NotAction, NotResource
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

// texts are one text or several, sorted.
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
