package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// besides lists the permissions that do not correspond to a call of the same name in a function, and what needs them,
// by function ("*" means all). If a call of the function itself needs the permission, that call comes first.
var besides = map[string]map[string]string{
	"*": {
		"logs:CreateLogStream":       "Lambda itself, for the function's log",
		"logs:PutLogEvents":          "Lambda itself, for the function's log",
		"xray:PutTraceSegments":      "Lambda itself, for the function's traces",
		"xray:PutTelemetryRecords":   "Lambda itself, for the function's traces",
		"ec2:CreateNetworkInterface": "Lambda itself, in a VPC", "ec2:DescribeNetworkInterfaces": "Lambda itself, in a VPC",
		"ec2:DeleteNetworkInterface": "Lambda itself, in a VPC", "ec2:AssignPrivateIpAddresses": "Lambda itself, in a VPC",
		"ec2:UnassignPrivateIpAddresses": "Lambda itself, in a VPC", "ec2:DescribeSubnets": "Lambda itself, in a VPC",
	},
	"resync": {
		"sqs:SendMessage":        "Lambda itself, for a call that failed in the end",
		"sqs:GetQueueAttributes": "CDK's way to grant sending", "sqs:GetQueueUrl": "CDK's way to grant sending",
		"lambda:InvokeFunction": "lambda:Invoke has this right",
	},
	"audit": {
		"sqs:SendMessage": "Lambda itself, for a call that failed in the end",
	},
	"access": {
		"eks:TagResource": "eks:CreateAccessEntry with tags",
	},
	"infrastructure": {
		"iam:PassRole": "eks:CreatePodIdentityAssociation hands the controller's role to EKS; eks:CreateAccessEntry that of nodes to EC2",
	},
	"nodegroups": {
		"iam:PassRole":                       "eks:CreateNodegroup hands the node role to EKS",
		"iam:GetRole":                        "eks:CreateNodegroup looks at the node role with its caller's rights",
		"iam:ListAttachedRolePolicies":       "eks:CreateNodegroup looks at the node role with its caller's rights",
		"ec2:DescribeSubnets":                "eks:CreateNodegroup looks at the subnets with its caller's rights",
		"ec2:DescribeLaunchTemplateVersions": "eks:CreateNodegroup looks at the launch template with its caller's rights",
		"ec2:RunInstances":                   "eks:CreateNodegroup tries a launch from the template with its caller's rights",
		"ec2:CreateTags":                     "eks:CreateNodegroup tries a launch from a template that tags",
		"eks:TagResource":                    "eks:CreateNodegroup with tags",
	},
}

// A permission that no code needs would only be useful to an attacker who takes over a function.
func TestEveryActionIsNeeded(t *testing.T) {
	used := map[string]bool{}
	for _, of := range []template{production, custom} {
		for _, f := range withRoles() {
			calls := asked(t, f.name)
			if len(calls) < 2 {
				t.Fatalf("function %s calls %v: the test has lost the sources", f.name, calls)
			}
			for _, g := range of.granted(f.name) {
				for _, a := range g.actions {
					if reason(f.name, a.(string), calls, used) == "" {
						t.Errorf("function %s may %s, and nothing that it runs needs that", f.name, a)
					}
				}
			}
		}
	}
	for function, rows := range besides {
		for action := range rows {
			if !used[function+" "+action] {
				t.Errorf("besides: %s of %s is granted to nobody, or is called by its name", action, function)
			}
		}
	}
}

// reason returns what needs an action; empty if nothing does.
func reason(function, action string, calls map[string][]string, used map[string]bool) string {
	if places := slices.Sorted(slices.Values(calls[action])); len(places) > 0 {
		own := max(0, slices.IndexFunc(places, func(p string) bool { return strings.Contains(p, "/"+function+"/") }))
		return "`" + strings.Replace(places[own], " ", "` ", 1)
	}
	for _, key := range []string{function, "*"} {
		why := besides[key][action]
		call, _, _ := strings.Cut(why, " ")
		if why == "" || strings.Contains(call, ":") && calls[call] == nil {
			continue
		}
		used[key+" "+action] = true
		return why
	}
	return ""
}

// withRoles returns the functions that have a role of their own.
func withRoles() []function {
	return slices.DeleteFunc(slices.Clone(functions), func(f function) bool { return f.like != "" })
}

// sharing returns the names of the functions that have the role of another one, each with a comma before it.
func sharing(role string) (others string) {
	for _, f := range functions {
		if f.like == role {
			others += ", " + f.name
		}
	}
	return others
}

// granted returns the statements of a function's role that allow something, denied those that deny something.
func (t template) granted(function string) []grant { return ofRole(function, t.grants()) }
func (t template) denied(function string) []grant  { return ofRole(function, t.statements("Deny")) }

func ofRole(function string, all []grant) (own []grant) {
	for _, g := range all {
		if strings.HasPrefix(g.where, logicalID(function)+"RoleDefaultPolicy") {
			own = append(own, g)
		}
	}
	return own
}

// proof has what `make rights` found: function -> action -> for each statement that allows it, in order, a call of a
// script that is denied without it, or why there can be none in a sandbox.
type proof map[string]map[string][]string

func readProof(t *testing.T) (found proof) {
	t.Helper()
	text, err := os.ReadFile("testdata/proof.json")
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// notProven is shown for a right that was added since the scripts ran. Only `make rights` fails then.
const notProven = "not yet proven"

// of returns what the document shows for the i-th of n statements that allow an action. If the number of statements has
// changed, no row is shown, because the rows do not say which statement they belong to.
func (p proof) of(function, action string, i, n int) string {
	rows := p[function][action]
	if len(rows) != n {
		return notProven
	}
	if script, call, ok := strings.Cut(rows[i], ": "); ok {
		return script + ": `" + call + "`"
	}
	return rows[i]
}

// docs/permissions.md lists all statements, with what needs each.
func TestPermissionsDocument(t *testing.T) {
	doc := permissionsDocument(t, readProof(t))
	const file = "../docs/permissions.md"
	if *update {
		if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != doc {
		t.Errorf("docs/permissions.md is not the list of the template's statements (%v): go test ./cdk -run PermissionsDocument -update", err)
	}
}

// A right can be added, and documented, before a script has used it.
func TestARightWithoutAProofIsShownAsNotProven(t *testing.T) {
	found := readProof(t)
	delete(found["queue"], "sqs:CreateQueue")
	found["validate"]["iam:GetRole"] = append(found["validate"]["iam:GetRole"], "Story: `role/other`")
	doc := permissionsDocument(t, found)
	for _, action := range []string{"sqs:CreateQueue", "iam:GetRole"} {
		if row := regexp.MustCompile("(?m)^\\| `" + action + "` .*$").FindString(doc); !strings.HasSuffix(row, "| "+notProven+" |") {
			t.Errorf("%s: %q", action, row)
		}
	}
}

func permissionsDocument(t *testing.T, found proof) string {
	t.Helper()
	var doc strings.Builder
	doc.WriteString(`# The functions' rights

Each function has a role of its own. This is every statement of every role, as the template has it with the context value
` + "`nodeRoles`" + ` and no other (without it, ` + "`nodegroups`" + ` may neither create nor delete a group, nor launch anything), with

- the code that needs each action: a test finds the calls in the sources, and fails on a right that nothing needs;
- a call of an end-to-end script (its name, and on what) that is refused without it: [how that is known](sandbox.md#rights). ` +
		`A right that was
  added since the scripts ran is "not yet proven"; ` + "`make rights`" + ` fails until a script has needed it.

` + "`go test ./cdk -run PermissionsDocument -update` writes this page, `make rights UPDATE=yes` the calls and the page, " +
		"and `make rights`" + ` says
whether they hold. PARTITION, REGION and ACCOUNT are those of the deployment.
`)
	for _, f := range withRoles() {
		fmt.Fprintf(&doc, "\n## %s%s\n\n| action | on | if | needed by | refused without it |\n|---|---|---|---|---|\n", f.name, sharing(f.name))
		calls, granted := asked(t, f.name), production.granted(f.name)
		statements, seen := map[string]int{}, map[string]int{}
		for _, g := range granted {
			for _, a := range g.actions {
				statements[a.(string)]++
			}
		}
		for _, g := range granted {
			for i, a := range g.actions {
				action, on, condition := a.(string), "″", "″"
				if i == 0 {
					on, condition = plainARNs(g.resources), plain(text(g.condition))
				}
				fmt.Fprintf(&doc, "| `%s` | %s | %s | %s | %s |\n", action, on, condition, reason(f.name, action, calls, map[string]bool{}),
					found.of(f.name, action, seen[action], statements[action]))
				seen[action]++
			}
		}
		for _, g := range production.denied(f.name) {
			fmt.Fprintf(&doc, "| **not** `%s` | %s | | what the allowing one also matches: a user's parameter named as one of Sawhorse's | |\n",
				joined(g.actions), plainARNs(g.resources))
		}
	}
	return doc.String()
}

func joined(actions []any) string {
	var all []string
	for _, a := range actions {
		all = append(all, a.(string))
	}
	return strings.Join(all, "` `")
}

func plainARNs(resources []any) string {
	var all []string
	for _, r := range resources {
		all = append(all, "`"+plain(text(r))+"`")
	}
	return strings.Join(all, " ")
}

var (
	join    = regexp.MustCompile(`\{"Fn::Join":\["",\[(.*?)\]\]\}`)
	pseudo  = regexp.MustCompile(`\{"Ref":"AWS::(\w+)"\}`)
	logical = regexp.MustCompile(`\{"(?:Ref|Fn::GetAtt)":\[?"(\w+?)[0-9A-F]{8}"(?:,"Arn"\])?\}`)
)

// plain returns a value of the template for people, without its intrinsic functions.
func plain(value string) string {
	if value == "null" {
		return ""
	}
	value = pseudo.ReplaceAllStringFunc(value, func(ref string) string {
		return map[string]string{"Partition": `"PARTITION"`, "Region": `"REGION"`, "AccountId": `"ACCOUNT"`}[pseudo.FindStringSubmatch(ref)[1]]
	})
	value = logical.ReplaceAllString(value, `"$1"`)
	value = join.ReplaceAllStringFunc(value, func(whole string) string {
		return `"` + strings.ReplaceAll(strings.Trim(join.FindStringSubmatch(whole)[1], `"`), `","`, "") + `"`
	})
	if strings.HasPrefix(value, `"`) {
		return strings.Trim(value, `"`)
	}
	return "`" + value + "`"
}
