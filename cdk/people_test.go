package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// policy returns the name and the statements, as text, of the managed policy whose logical id has a prefix.
func (t template) policy(test *testing.T, id string) (string, string) {
	test.Helper()
	for found, r := range t.all("AWS::IAM::ManagedPolicy") {
		if strings.HasPrefix(found, id) {
			return text(r.Properties["ManagedPolicyName"]), text(at(r.Properties, "PolicyDocument", "Statement"))
		}
	}
	test.Fatalf("no policy %s", id)
	panic("unreachable")
}

func TestOperatorsWriteTheNamedRacks(t *testing.T) {
	name, statements := custom.policy(t, "Operator")
	if name != `{"Fn::Join":["",["OtherOperator-",{"Ref":"AWS::Region"}]]}` {
		t.Errorf("named %s", name)
	}
	for rack, want := range map[string]bool{"prod": true, "team-a-*": true, "*": false} {
		for _, place := range []string{"/params/*", "/change", "/*"} {
			if got := strings.Contains(statements, `:parameter/tools/sawhorse/racks/`+rack+place+`"`); got != want {
				t.Errorf("%s%s: %v, want %v", rack, place, got, want)
			}
		}
	}
	if _, statements := production.policy(t, "Operator"); !strings.Contains(statements, `:parameter/sawhorse/racks/*/params/*"`) {
		t.Errorf("without operatorRacks: %s", statements)
	}
	for _, of := range []struct {
		template
		keys string
	}{{custom, `["snapshot#prod","snapshot#team-a-*"]`}, {production, `["snapshot#*"]`}} {
		_, statements := of.policy(t, "Operator")
		if !strings.Contains(statements, `"dynamodb:GetItem","dynamodb:Query"`) ||
			!strings.Contains(statements, `"dynamodb:LeadingKeys":`+of.keys) ||
			strings.Count(statements, "dynamodb:") != 4 {
			t.Errorf("what operators read of the table: %s", statements)
		}
	}
	for _, g := range custom.grants() {
		if !strings.HasPrefix(g.where, "Operator") || !slices.Contains(g.actions, any("ssm:PutParameter")) {
			continue
		}
		for _, r := range g.resources {
			if !strings.HasSuffix(text(r), `/params/*"]]}`) && !strings.HasSuffix(text(r), `/change"]]}`) {
				t.Errorf("operators write %s", text(r))
			}
		}
	}
}

// Stacks of the same name may exist in several regions, so the names of what is in all regions have the region in them.
func TestNamesOfWhatIsInAllRegions(t *testing.T) {
	for kind, property := range map[string]string{"AWS::IAM::ManagedPolicy": "ManagedPolicyName", "AWS::IAM::Role": "RoleName",
		"AWS::CloudWatch::Dashboard": "DashboardName", "AWS::IAM::InstanceProfile": "InstanceProfileName"} {
		for id, r := range production.all(kind) {
			if name := r.Properties[property]; name != nil && !strings.Contains(text(name), "AWS::Region") {
				t.Errorf("%s is named %s in each region", id, text(name))
			}
		}
	}
}

// The hold stops all racks, so the policies of the operators of racks do not let them write it. Viewers read it.
func TestNobodyIsGivenTheHold(t *testing.T) {
	for _, of := range []template{production, custom} {
		for _, g := range of.grants() {
			writes := slices.ContainsFunc(g.actions, func(a any) bool {
				return slices.Contains([]string{"ssm:PutParameter", "ssm:DeleteParameter", "ssm:DeleteParameters", "ssm:*"}, a.(string))
			})
			for _, r := range g.resources {
				if where := text(r); writes && !strings.Contains(where, "/sawhorse/racks/") {
					t.Errorf("%s writes %s", g.where, where)
				}
			}
		}
		if _, statements := of.policy(t, "Viewer"); !strings.Contains(statements, `/sawhorse/hold"`) {
			t.Errorf("viewers may not read the hold: %s", statements)
		}
	}
}

func TestViewersChangeNothing(t *testing.T) {
	name, statements := production.policy(t, "Viewer")
	if name != `{"Fn::Join":["",["SawhorseViewer-",{"Ref":"AWS::Region"}]]}` {
		t.Errorf("named %s", name)
	}
	for _, action := range []string{"eks:DescribeCluster", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts"} { // sawhorse cost
		if !strings.Contains(statements, `"`+action+`"`) {
			t.Errorf("viewers may not %s", action)
		}
	}
	if strings.Contains(statements, `"Effect":"Deny"`) {
		t.Errorf("%s", statements)
	}
	for _, g := range production.grants() {
		if !strings.HasPrefix(g.where, "Viewer") {
			continue
		}
		for _, a := range g.actions {
			_, verb, _ := strings.Cut(a.(string), ":")
			if !strings.HasPrefix(verb, "Get") && !strings.HasPrefix(verb, "List") && !strings.HasPrefix(verb, "Describe") &&
				verb != "FilterLogEvents" {
				t.Errorf("viewers may %s", a)
			}
		}
	}
}

// Without a resource policy, a bus accepts events from those principals of its account whose own policies allow it. In
// the stack these are two. Anyone else who may put events has been given that permission explicitly.
func TestOnlyNamedPrincipalsPutEvents(t *testing.T) {
	if len(production.all("AWS::Events::EventBusPolicy"))+len(production.all("AWS::Events::EventBus")) != 1 ||
		production.one(t, "AWS::Events::EventBus").Properties["Policy"] != nil {
		t.Error("the bus has a policy")
	}
	var may []string
	for _, g := range production.grants() {
		if slices.Contains(g.actions, any("events:PutEvents")) {
			may = append(may, strings.TrimRight(g.where, "0123456789ABCDEF"))
			if !strings.Contains(text(g.resources), `"Fn::GetAtt":["Bus`) || len(g.resources) != 1 {
				t.Errorf("%s puts events on %s", g.where, text(g.resources))
			}
		}
	}
	slices.Sort(may)
	want := []string{"AuditRoleDefaultPolicy", "ReportRoleDefaultPolicy", "ResyncRoleDefaultPolicy", "RolloutRoleDefaultPolicy",
		"ValidateRoleDefaultPolicy"}
	if !slices.Equal(may, want) {
		t.Errorf("%v put events, want %v", may, want)
	}
}

// Many racks are split over several policies, each within IAM's size limit. The names of further policies are derived
// from the first one's.
func TestManyRacksTakeSeveralPolicies(t *testing.T) {
	var found, racks []string
	for id, r := range again.all("AWS::IAM::ManagedPolicy") {
		if !strings.HasPrefix(id, "Operator") {
			continue
		}
		found = append(found, plain(text(r.Properties["ManagedPolicyName"])))
		document := r.Properties["PolicyDocument"]
		if size := len(longest(t, document)); size > 6144 {
			t.Errorf("%s: %d characters", id, size)
		}
		for _, match := range regexp.MustCompile(`racks/(a-rack-of-twenty-six-\d\d\d)/params/`).FindAllStringSubmatch(text(document), -1) {
			racks = append(racks, match[1])
		}
	}
	slices.Sort(found)
	want := []string{"SawhorseOperator-REGION", "SawhorseOperator2-REGION", "SawhorseOperator3-REGION", "SawhorseOperator4-REGION",
		"SawhorseOperator5-REGION"}
	if !slices.Equal(found, want) {
		t.Errorf("policies %v, want %v", found, want)
	}
	slices.Sort(racks)
	if !slices.Equal(racks, manyRacks(50)) {
		t.Errorf("racks %v", racks)
	}
}

// IAM allows ten managed policies per role.
func TestTooManyRacksAreRefused(t *testing.T) {
	for n, want := range map[int]string{110: "", 400: `context operatorRacks: "400 names": it must be short enough for 10 managed policies`} {
		_, err := readSettings(func(key string) any { return map[string]any{"operatorRacks": strings.Join(manyRacks(n), ",")}[key] })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d racks: %v", n, err)
		}
	}
}
