package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEndpoints(t *testing.T) {
	if len(production.all("AWS::EC2::VPCEndpoint"))+len(production.all("AWS::EC2::SecurityGroup")) > 0 {
		t.Error("the production stack has endpoints that nobody asked for")
	}
	group := custom.one(t, "AWS::EC2::SecurityGroup").Properties
	if got := text(group["SecurityGroupIngress"]); got != `[{"Description":"The functions","FromPort":443,"IpProtocol":"tcp",`+
		`"SourceSecurityGroupId":"sg-11111111","ToPort":443}]` {
		t.Errorf("the endpoints let in %s", got)
	}
	var seen []string
	for id, r := range custom.all("AWS::EC2::VPCEndpoint") {
		p := r.Properties
		name := p["ServiceName"].(string)
		seen = append(seen, name)
		want := `["subnet-11111111","subnet-22222222"] null true Interface`
		if strings.HasSuffix(name, ".dynamodb") {
			want = `null ["rtb-11111111"] null Gateway`
		}
		got := strings.Join([]string{text(p["SubnetIds"]), text(p["RouteTableIds"]), text(p["PrivateDnsEnabled"]),
			p["VpcEndpointType"].(string)}, " ")
		if got != want || p["VpcId"] != "vpc-11111111" {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	slices.Sort(seen)
	want := []string{"com.amazonaws.eu-central-1.dynamodb", "com.amazonaws.eu-central-1.ssm", "com.amazonaws.iam"}
	if !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}

// The permissions of AWS's own policy for functions in a VPC (AWSLambdaVPCAccessExecutionRole v3).
func TestFunctionsInAVPCMayHaveInterfaces(t *testing.T) {
	want := []string{"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
		"ec2:DescribeNetworkInterfaces",
		"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"}
	for _, f := range withRoles() {
		may := map[string]bool{}
		for _, g := range custom.granted(f.name) {
			for _, a := range g.actions {
				may[a.(string)] = true
			}
		}
		for _, action := range want {
			if f.cluster && !may[action] {
				t.Errorf("%s may not %s", f.name, action)
			}
		}
	}
}

// A function in a VPC without a way out needs an endpoint for every service that it may call, so the setting must accept
// each of them. Lambda sends logs and traces itself, past the VPC.
func TestEveryServiceOfAFunctionInTheVPCMayHaveAnEndpoint(t *testing.T) {
	for _, f := range withRoles() {
		for _, g := range custom.granted(f.name) {
			for _, action := range g.actions {
				service, _, _ := strings.Cut(action.(string), ":")
				if _, known := called[service]; f.cluster && !known && service != "logs" && service != "xray" {
					t.Errorf("%s may %s, and no endpoint of that service can be named in vpcEndpoints", f.name, action)
				}
			}
		}
	}
}

// The page names the functions that are in the VPC, what each of their services needs, and which of them need IAM, whose
// endpoint most regions do not have.
func TestThePageOfPrivateClusters(t *testing.T) {
	file, err := os.ReadFile("../docs/private.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(file), "\n", " ")
	find := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s", pattern)
		}
		return found[1]
	}
	var inside, identity, endpoints, example []string
	for _, f := range functions {
		if _, r := custom.named("AWS::Lambda::Function", logicalID(f.name)); r.Properties["VpcConfig"] == nil {
			continue
		}
		inside = append(inside, f.name)
		if slices.ContainsFunc(custom.granted(f.code()), func(g grant) bool { return strings.Contains(text(g.actions), `"iam:Get`) }) {
			identity = append(identity, f.name)
		}
	}
	for service, gateway := range called {
		endpoints = append(endpoints, service+map[bool]string{true: " gateway", false: " interface"}[gateway])
		if service != "s3" { // for a setting that the example does not have
			example = append(example, service)
		}
	}
	same := func(what string, got, want []string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has %q, want %q", what, got, want)
		}
	}
	names := func(list string) []string { return regexp.MustCompile(`, | and `).Split(list, -1) }
	same("functions in the VPC", names(find(`This places the ten functions that talk to clusters into the VPC: ([\w, ]+)\.`)), inside)
	same("functions that need IAM", names(find(`In every other region ([\w, ]+) need another way to IAM`)), identity)
	var rows, listed []string
	for _, row := range regexp.MustCompile("\\| `com\\.amazonaws\\.(?:\\{region\\}\\.)?(\\w+)` \\| (\\w+)").FindAllStringSubmatch(page, -1) {
		rows = append(rows, row[1]+" "+row[2])
	}
	same("endpoints", rows, endpoints)
	for _, name := range strings.Split(find(`"vpcEndpoints": \[([^]]+)\]`), ",") {
		listed = append(listed, service(strings.Trim(name, ` "`)))
	}
	same("endpoints of the example", listed, example)
	if len(inside) != 10 {
		t.Errorf("%d functions are in the VPC", len(inside))
	}
}

// Subnets and security groups of a VPC that another account shares have that account in their ARNs.
func TestSharedNetworksAreReached(t *testing.T) {
	for action, where := range map[string]string{
		"ec2:CreateTags": "NetworkRole", "ec2:DeleteTags": "NetworkRole", "ec2:RunInstances": "NodegroupsRole",
		"ec2:CreateNetworkInterface": "NodeBoundary",
	} {
		for _, kind := range []string{"subnet", "security-group"} {
			found := false
			for _, g := range production.grants() {
				if !strings.HasPrefix(g.where, where) || !slices.Contains(g.actions, any(action)) {
					continue
				}
				found = found || strings.Contains(text(g.resources), `{"Ref":"AWS::Region"},":*:`+kind+`/*"`)
				if strings.Contains(text(g.resources), `{"Ref":"AWS::AccountId"},":`+kind+`/*"`) {
					t.Errorf("%s: %s on the %ss of this account alone", where, action, kind)
				}
			}
			if !found {
				t.Errorf("%s: no %s on the %ss of other accounts", where, action, kind)
			}
		}
	}
}

// In an IPv6 cluster the CNI assigns addresses to pods with the node's role.
func TestTheBoundaryKnowsIPv6(t *testing.T) {
	document := text(production.boundaries(t)["NodeBoundary"].Properties["PolicyDocument"])
	for _, action := range []string{"ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses"} {
		if !strings.Contains(document, `"`+action+`"`) {
			t.Errorf("no %s", action)
		}
	}
}
