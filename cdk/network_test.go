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
	if got := text(group["SecurityGroupIngress"]); got != `[{"Description":"The functions","FromPort":443,"IpProtocol":"tcp","SourceSecurityGroupId":"sg-11111111","ToPort":443}]` {
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
		if got := strings.Join([]string{text(p["SubnetIds"]), text(p["RouteTableIds"]), text(p["PrivateDnsEnabled"]), p["VpcEndpointType"].(string)}, " "); got != want || p["VpcId"] != "vpc-11111111" {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	slices.Sort(seen)
	if want := []string{"com.amazonaws.eu-central-1.dynamodb", "com.amazonaws.eu-central-1.ssm", "com.amazonaws.iam"}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}
