package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// inVPC reports whether a function runs in the deployment's VPC. Only the functions that call the cluster do. The
// others call only AWS, and need neither addresses nor endpoints there.
func (s *sawhorse) inVPC(f function) bool { return f.cluster && len(s.SubnetIDs) > 0 }

// placeInVPC sets a function's subnets and security groups by their ids. The CDK's VPC construct would require zones
// and routes that are not needed here.
func (s *sawhorse) placeInVPC(fn awslambda.Function) {
	fn.Node().DefaultChild().(awslambda.CfnFunction).SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{
		SubnetIds:        jsii.Strings(s.SubnetIDs...),
		SecurityGroupIds: jsii.Strings(s.SecurityGroupIDs...),
	})
}

// called lists the services that the functions in the VPC call, by the last part of the endpoint service's name. Those
// with true have gateway endpoints. Tokens for the cluster are signed without a call, and logs and traces do not use
// the VPC.
var called = map[string]bool{
	"dynamodb": true, "s3": true,
	"ssm": false, "eks": false, "ec2": false, "iam": false, "sqs": false, "events": false, "autoscaling": false,
}

// service returns the last part of an endpoint service's name: "ssm" for com.amazonaws.eu-central-1.ssm.
func service(endpoint string) string { return endpoint[strings.LastIndex(endpoint, ".")+1:] }

// addEndpoints adds the VPC endpoints that the settings name. The VPC may already have others.
func (s *sawhorse) addEndpoints() {
	if len(s.Endpoints) == 0 {
		return
	}
	var group awsec2.CfnSecurityGroup
	for _, endpoint := range s.Endpoints {
		props := &awsec2.CfnVPCEndpointProps{ServiceName: jsii.String(endpoint), VpcId: jsii.String(s.VPCID)}
		if called[service(endpoint)] {
			props.VpcEndpointType, props.RouteTableIds = jsii.String("Gateway"), values(s.RouteTableIDs)
		} else {
			if group == nil {
				group = s.endpointsGroup()
			}
			props.VpcEndpointType, props.PrivateDnsEnabled = jsii.String("Interface"), jsii.Bool(true)
			props.SubnetIds, props.SecurityGroupIds = values(s.SubnetIDs), &[]any{group.AttrGroupId()}
		}
		awsec2.NewCfnVPCEndpoint(s.stack, jsii.String("Endpoint"+logicalID(service(endpoint))), props)
	}
}

func values(ids []string) *[]any {
	var list []any
	for _, id := range ids {
		list = append(list, id)
	}
	return &list
}

// endpointsGroup allows the functions in.
func (s *sawhorse) endpointsGroup() awsec2.CfnSecurityGroup {
	var from []any
	for _, id := range s.SecurityGroupIDs {
		from = append(from, &awsec2.CfnSecurityGroup_IngressProperty{
			IpProtocol: jsii.String("tcp"), FromPort: jsii.Number(443), ToPort: jsii.Number(443),
			SourceSecurityGroupId: jsii.String(id), Description: jsii.String("The functions"),
		})
	}
	return awsec2.NewCfnSecurityGroup(s.stack, jsii.String("EndpointsGroup"), &awsec2.CfnSecurityGroupProps{
		GroupDescription: jsii.String("VPC endpoints for the functions of " + s.StackName), VpcId: jsii.String(s.VPCID),
		SecurityGroupIngress: &from,
		// Without an egress rule EC2 adds one that allows everything. Endpoints open no connections.
		SecurityGroupEgress: []any{&awsec2.CfnSecurityGroup_EgressProperty{
			IpProtocol: jsii.String("icmp"), FromPort: jsii.Number(252), ToPort: jsii.Number(86), CidrIp: jsii.String("255.255.255.255/32"),
			Description: jsii.String("Nothing"),
		}},
	})
}
