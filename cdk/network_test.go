package main

import (
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
