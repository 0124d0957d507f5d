package main

import (
	"strings"
	"testing"
)

const operatorsBoundary = "arn:aws:iam::123456789012:policy/Boundary"

// An organization's policies may refuse every role without its path or its boundary, those that the CDK adds included.
func TestAllRolesHaveThePathAndTheBoundaryOfTheOrganization(t *testing.T) {
	roles := 0
	for id, r := range again.Resources {
		if r.Type != "AWS::IAM::Role" {
			continue
		}
		roles++
		if r.Properties["Path"] != "/team/" || r.Properties["PermissionsBoundary"] != operatorsBoundary {
			t.Errorf("%s has the path %v and the boundary %v", id, r.Properties["Path"], r.Properties["PermissionsBoundary"])
		}
	}
	if roles < 12 {
		t.Errorf("%d roles", roles)
	}
}

// The roles of racks are below the path, and those of the stack are not among them.
func TestRacksRolesAreBelowThePathOfTheOrganization(t *testing.T) {
	created := false
	for _, g := range again.grants() {
		resources := text(g.resources)
		if strings.Contains(resources, ":role/sawhorse/") {
			t.Errorf("%s may %v on %s", g.where, g.actions, resources)
		}
		if strings.Contains(text(g.actions), "iam:CreateRole") {
			created = true
			if !strings.Contains(resources, ":role/team/sawhorse/") || !strings.Contains(text(g.condition), operatorsBoundary) {
				t.Errorf("%s creates %s if %s", g.where, resources, text(g.condition))
			}
		}
	}
	if !created {
		t.Error("nobody creates roles")
	}
}

func TestFunctionsCallTheEndpointsOfTheDeployment(t *testing.T) {
	for of, want := range map[*template]any{&again: "true", &production: nil} {
		for id, r := range of.Resources {
			if r.Type != "AWS::Lambda::Function" {
				continue
			}
			environment, _ := r.Properties["Environment"].(map[string]any)
			variables, _ := environment["Variables"].(map[string]any)
			if variables["AWS_USE_FIPS_ENDPOINT"] != want || variables["AWS_USE_DUALSTACK_ENDPOINT"] != want {
				t.Errorf("%s: %v", id, variables)
			}
		}
	}
}
