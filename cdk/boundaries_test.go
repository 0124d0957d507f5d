package main

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var newRelease = flag.Bool("release", false, "record the boundaries of this release")

// allowed is one action of a boundary on one resource. If is the condition as JSON, or empty.
type allowed struct {
	Action, Resource string
	If               string `json:",omitempty"`
}

// allows returns what a policy allows.
func (t template) allows(policy resource) (all []allowed) {
	for _, s := range list(at(policy.Properties, "PolicyDocument", "Statement")) {
		when := ""
		if condition := at(s, "Condition"); condition != nil {
			when = text(condition)
		}
		for _, action := range list(at(s, "Action")) {
			for _, on := range list(at(s, "Resource")) {
				all = append(all, allowed{action.(string), t.resolved(on), when})
			}
		}
	}
	return all
}

// lost returns what the earlier boundary allows and the present one does not.
func lost(earlier, present []allowed) []allowed {
	return slices.DeleteFunc(slices.Clone(earlier), func(e allowed) bool {
		return slices.ContainsFunc(present, func(p allowed) bool {
			return matches(p.Action, e.Action) && matches(p.Resource, e.Resource) && (p.If == "" || p.If == e.If)
		})
	})
}

// An edit of a boundary changes at once what every role that has it may do, while passes of the release before may still run,
// and their controllers do for months. So a release may allow more than the one before, and not less: what it takes away must
// first be unused for a release. testdata/released.json has the boundaries of the last release; `make released` writes those of
// this one.
func TestBoundariesLoseNothing(t *testing.T) {
	const file = "testdata/released.json"
	present := map[string][]allowed{}
	for name, policy := range production.boundaries(t) {
		present[name] = production.allows(policy)
		if strings.Contains(text(policy.Properties), `"Deny"`) {
			t.Errorf("%s denies something: compare it by hand, and teach this test", name)
		}
	}
	if *newRelease {
		content, err := json.MarshalIndent(present, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var released map[string][]allowed
	if err := json.Unmarshal(content, &released); err != nil || len(released) != len(present) {
		t.Fatalf("%s has %d boundaries, the stack %d: %v", file, len(released), len(present), err)
	}
	for name := range released {
		for _, one := range lost(released[name], present[name]) {
			t.Errorf("%s of the last release allowed %s on %s if %q", name, one.Action, one.Resource, one.If)
		}
	}
}

func TestWhatABoundaryLoses(t *testing.T) {
	was := allowed{"ec2:RunInstances", "arn:aws:ec2:*:*:subnet/*", `{"a":"b"}`}
	for _, c := range []struct {
		present allowed
		loses   bool
	}{
		{was, false},
		{allowed{"ec2:Run*", "*", ""}, false},
		{allowed{"ec2:CreateFleet", was.Resource, was.If}, true},
		{allowed{was.Action, "arn:aws:ec2:*:*:subnet/a*", was.If}, true},
		{allowed{was.Action, was.Resource, `{"a":"c"}`}, true},
	} {
		if got := lost([]allowed{was}, []allowed{c.present}); (len(got) == 1) != c.loses {
			t.Errorf("%+v: %v", c.present, got)
		}
	}
}
