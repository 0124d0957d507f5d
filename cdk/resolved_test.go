package main

import (
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// resolved returns a text of the template as it would be after a deployment to the account and region of the fake AWS.
// What CloudFormation would name has its logical id as its name.
func (t template) resolved(value any) string {
	if text, is := value.(string); is {
		return text
	}
	if id, is := at(value, "Ref").(string); is {
		switch id {
		case "AWS::Partition":
			return "aws"
		case "AWS::Region":
			return awsfake.Region
		case "AWS::AccountId":
			return awsfake.Account
		}
		switch t.Resources[id].Type {
		case "AWS::StepFunctions::StateMachine", "AWS::Lambda::Version", "AWS::Lambda::Alias":
			return t.arn(id)
		}
		return t.name(id)
	}
	if id, is := at(value, "Fn::GetAtt", 0).(string); is {
		switch at(value, "Fn::GetAtt", 1) {
		case "Arn":
			return t.arn(id)
		case "QueueName":
			return t.name(id)
		}
	}
	if between, is := at(value, "Fn::Join", 0).(string); is {
		var parts []string
		for _, part := range list(at(value, "Fn::Join", 1)) {
			parts = append(parts, t.resolved(part))
		}
		return strings.Join(parts, between)
	}
	panic(fmt.Sprintf("the test cannot resolve %s", text(value)))
}

// name returns the name of a resource.
func (t template) name(id string) string {
	if t.Resources[id].Type == "AWS::Lambda::Alias" {
		return t.resolved(t.Resources[id].Properties["Name"])
	}
	for _, property := range []string{"FunctionName", "StateMachineName", "LogGroupName", "Name"} {
		if name := t.Resources[id].Properties[property]; name != nil {
			return t.resolved(name)
		}
	}
	return id
}

// arn returns the ARN of a resource.
func (t template) arn(id string) string {
	regional := "arn:aws:%s:" + awsfake.Region + ":" + awsfake.Account + ":%s"
	r, name := t.Resources[id], t.name(id)
	switch r.Type {
	case "AWS::Lambda::Function":
		return fmt.Sprintf(regional, "lambda", "function:"+name)
	case "AWS::Lambda::Version": // the first
		return fmt.Sprintf(regional, "lambda", "function:"+t.resolved(r.Properties["FunctionName"])+":1")
	case "AWS::Lambda::Alias":
		return fmt.Sprintf(regional, "lambda", "function:"+t.resolved(r.Properties["FunctionName"])+":"+name)
	case "AWS::StepFunctions::StateMachine":
		return fmt.Sprintf(regional, "states", "stateMachine:"+name)
	case "AWS::StepFunctions::StateMachineVersion":
		return t.resolved(r.Properties["StateMachineArn"]) + ":1"
	case "AWS::StepFunctions::StateMachineAlias":
		version := t.resolved(at(r.Properties, "RoutingConfiguration", 0, "StateMachineVersionArn"))
		return version[:strings.LastIndex(version, ":")+1] + name
	case "AWS::SQS::Queue":
		return fmt.Sprintf(regional, "sqs", name)
	case "AWS::DynamoDB::Table":
		return fmt.Sprintf(regional, "dynamodb", "table/"+name)
	case "AWS::Logs::LogGroup":
		return fmt.Sprintf(regional, "logs", "log-group:"+name+":*")
	case "AWS::Events::EventBus":
		return fmt.Sprintf(regional, "events", "event-bus/"+name)
	case "AWS::Events::Rule":
		if bus := r.Properties["EventBusName"]; bus != nil {
			name = t.resolved(bus) + "/" + name
		}
		return fmt.Sprintf(regional, "events", "rule/"+name)
	case "AWS::IAM::Role":
		return "arn:aws:iam::" + awsfake.Account + ":role/" + name
	}
	panic(fmt.Sprintf("the test knows no ARN of %s, a %s", id, r.Type))
}

// named returns the resource of a type whose logical id the CDK has made from a name, and that id.
func (t template) named(kind, name string) (string, resource) {
	for id, r := range t.all(kind) {
		if id[:len(id)-8] == name { // 8 characters of a hash follow
			return id, r
		}
	}
	panic(fmt.Sprintf("the template has no %s that is called %s", kind, name))
}
