package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// sawhorse is the stack under construction. The methods in the other files each add their part.
type sawhorse struct {
	settings
	stack awscdk.Stack
	table awsdynamodb.ITable
	bus   awsevents.EventBus
	// undelivered receives the events that EventBridge, the Scheduler or Lambda could not deliver.
	undelivered awssqs.Queue
	// controllerBoundary and nodeBoundary are the ARNs of the permissions boundaries of the roles that Sawhorse creates.
	controllerBoundary, nodeBoundary *string

	roles     map[string]awsiam.Role
	functions map[string]awslambda.Function
	machine   awsstepfunctions.StateMachine
	// alarms are shown on the dashboard.
	alarms []interfacesawscloudwatch.IAlarmRef
}

func newStack(scope constructs.Construct, id string, settings settings) awscdk.Stack {
	s := &sawhorse{settings: settings, roles: map[string]awsiam.Role{}, functions: map[string]awslambda.Function{}}
	props := &awscdk.StackProps{
		StackName:   jsii.String(settings.StackName),
		Description: jsii.String("Sawhorse: EKS racks with Karpenter, configured by SSM parameters"),
	}
	if settings.CLICredentials {
		props.Synthesizer = awscdk.NewCliCredentialsStackSynthesizer(nil)
	}
	s.stack = awscdk.NewStack(scope, jsii.String(id), props)
	// W3005: the CDK lists roles and policies in DependsOn although the resource refers to them anyway.
	s.stack.TemplateOptions().SetMetadata(&map[string]any{"cfn-lint": lintIgnores("W3005")})
	s.addTable()
	s.addMessaging()
	s.addBoundaries()
	s.addRoles()
	s.addFunctions()
	s.addStateMachine()
	s.addRules()
	s.addSchedules()
	s.addEndpoints()
	s.addPeople()
	s.addAlarms()
	s.addDashboard()
	s.placeRoles()
	s.acceptWildcards()
	s.output("StateMachineArn", s.machineARN())
	s.output("BusName", *s.bus.EventBusName())
	s.output("TableName", *s.table.TableName())
	return s.stack
}

// addTable adds the table of the records, or uses that of an earlier stack, which was retained. Only this table records
// the racks' state before Karpenter, so it has deletion protection.
func (s *sawhorse) addTable() {
	if s.Table != "" {
		s.table = awsdynamodb.Table_FromTableName(s.stack, jsii.String("Table"), jsii.String(s.Table))
		return
	}
	s.table = awsdynamodb.NewTable(s.stack, jsii.String("Table"), &awsdynamodb.TableProps{
		PartitionKey:                     &awsdynamodb.Attribute{Name: jsii.String("pk"), Type: awsdynamodb.AttributeType_STRING},
		SortKey:                          &awsdynamodb.Attribute{Name: jsii.String("sk"), Type: awsdynamodb.AttributeType_STRING},
		TimeToLiveAttribute:              jsii.String("ttl"),
		BillingMode:                      awsdynamodb.BillingMode_PAY_PER_REQUEST,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: jsii.Bool(true)},
		RemovalPolicy:                    s.removal(),
		DeletionProtection:               jsii.Bool(!s.Destroy),
	})
}

// addMessaging adds the bus and the queue for undelivered events.
func (s *sawhorse) addMessaging() {
	s.bus = awsevents.NewEventBus(s.stack, jsii.String("Bus"), &awsevents.EventBusProps{EventBusName: jsii.String(s.BusName)})
	s.undelivered = awssqs.NewQueue(s.stack, jsii.String("Undelivered"), &awssqs.QueueProps{
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
	})
	accept(s.undelivered, "AwsSolutions-SQS3", "This is the dead-letter queue of all else.")
}

func (s *sawhorse) removal() awscdk.RemovalPolicy {
	if s.Destroy {
		return awscdk.RemovalPolicy_DESTROY
	}
	return awscdk.RemovalPolicy_RETAIN
}

// logRemoval returns what happens to the logs when the stack is deleted.
func (s *sawhorse) logRemoval() awscdk.RemovalPolicy {
	if s.RetainLogs {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

func (s *sawhorse) output(name, value string) {
	awscdk.NewCfnOutput(s.stack, jsii.String(name), &awscdk.CfnOutputProps{Value: jsii.String(value)})
}

// arn returns an ARN in this account and region. For policies, rest may contain *.
func arn(service, rest string) string {
	return arnOf(service, region(), *awscdk.Aws_ACCOUNT_ID(), rest)
}

// iamARN returns an ARN of IAM, which has no regions.
func iamARN(rest string) string { return arnOf("iam", "", *awscdk.Aws_ACCOUNT_ID(), rest) }

// arnOf returns an ARN in the partition that the stack is deployed to.
func arnOf(service, region, account, rest string) string {
	return strings.Join([]string{"arn", *awscdk.Aws_PARTITION(), service, region, account, rest}, ":")
}

func region() string { return *awscdk.Aws_REGION() }
