package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsschedulertargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// Delivery of events: EventBridge's maximum number of retries, for as long as the event is relevant.
const (
	deliveryAttempts = 185
	deliveryHours    = 24
)

func (s *sawhorse) machineName() string { return ownership.StateMachine(s.StackName) }

// machineARN is derived from the name, because the state machine's own policy and the function resync refer to it.
func (s *sawhorse) machineARN() string { return arn("states", "stateMachine:"+s.machineName()) }

// machineAliasARN is what starts executions. It is derived from names too.
func (s *sawhorse) machineAliasARN() string { return s.machineARN() + ":" + ownership.Alias }

func (s *sawhorse) addStateMachine() {
	logs := awslogs.NewLogGroup(s.stack, jsii.String("MachineLogs"), &awslogs.LogGroupProps{
		// With this prefix, CloudWatch's resource policy does not grow with every state machine of the account.
		LogGroupName:  jsii.String("/aws/vendedlogs/states/" + s.machineName()),
		RemovalPolicy: s.logRemoval(),
	})
	s.keep(logs)
	s.machine = awsstepfunctions.NewStateMachine(s.stack, jsii.String("Machine"), &awsstepfunctions.StateMachineProps{
		StateMachineName: jsii.String(s.machineName()),
		StateMachineType: awsstepfunctions.StateMachineType_STANDARD,
		DefinitionBody:   awsstepfunctions.DefinitionBody_FromString(jsii.String(statemachine.Definition)),
		DefinitionSubstitutions: &map[string]*string{
			"Partition":       awscdk.Aws_PARTITION(),
			"TableName":       s.table.TableName(),
			"Functions":       jsii.String(s.versions()),
			"Parameters":      jsii.String(parameters()),
			"Alias":           jsii.String(s.machineAliasARN()),
			"DebounceSeconds": jsii.String(strconv.Itoa(s.DebounceSeconds)),
			"Prefix":          jsii.String(s.Prefix),
		},
		Logs: &awsstepfunctions.LogOptions{Destination: logs, Level: awsstepfunctions.LogLevel_ERROR,
			IncludeExecutionData: jsii.Bool(false)},
		TracingEnabled: jsii.Bool(true),
	})
	accept(s.machine, "AwsSolutions-SF1",
		"The execution's history holds every event for 90 days; the log is for what went wrong, and each step logs its changes itself.")
	// E3601: cfn-lint checks the definition before the substitutions, and does not recognize
	// ARNs that contain ${Partition}.
	s.machine.Node().DefaultChild().(awscdk.CfnResource).AddMetadata(jsii.String("cfn-lint"), lintIgnores("E3601"))
	var invoked []string
	for _, f := range functions {
		if f.pass { // in the versions of all releases, because executions of earlier ones may still run
			invoked = append(invoked, arn("lambda", "function:"+s.functionName(f.name)+":*"))
		}
	}
	s.machine.AddToRolePolicy(allow([]string{"lambda:InvokeFunction"}, invoked))
	table := []string{*s.table.TableArn()}
	s.machine.AddToRolePolicy(allow([]string{"dynamodb:UpdateItem", "dynamodb:DeleteItem"}, table, // of the lease
		ofPartitions(ownership.PartitionRack+"*")))
	s.machine.AddToRolePolicy(allow([]string{"states:StartExecution"}, []string{s.machineARN()}))
	s.addMachineAlias()
}

// versions returns a JSONata object with the ARN of the current version of each function. Those that the state machine
// does not call are in it too, so that its definition describes the whole release: a function that has changed makes
// another definition, and so another version of the state machine.
func (s *sawhorse) versions() string {
	var all []string
	for _, f := range functions {
		all = append(all, fmt.Sprintf("'%s': '%s'", f.name, *s.functions[f.name].CurrentVersion().FunctionArn()))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// parameters returns a JSONata array of the names of all parameters.
func parameters() string {
	var all []string
	for _, p := range params.Table {
		all = append(all, "'"+p.Name+"'")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// addMachineAlias adds the current version of the state machine, and the alias that starts it. The alias is what a
// deployment moves last, and what a rollback moves back. The versions of earlier releases are retained.
func (s *sawhorse) addMachineAlias() {
	version := awsstepfunctions.NewCfnStateMachineVersion(s.stack, jsii.String("MachineVersion"),
		&awsstepfunctions.CfnStateMachineVersionProps{
			StateMachineArn: s.machine.StateMachineArn(), StateMachineRevisionId: s.machine.StateMachineRevisionId(),
		})
	version.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
	s.machineAlias = awsstepfunctions.NewCfnStateMachineAlias(s.stack, jsii.String("MachineAlias"),
		&awsstepfunctions.CfnStateMachineAliasProps{
			Name: jsii.String(ownership.Alias),
			RoutingConfiguration: []any{&awsstepfunctions.CfnStateMachineAlias_RoutingConfigurationVersionProperty{
				StateMachineVersionArn: version.AttrArn(), Weight: jsii.Number(100)}},
		})
	for _, name := range slices.Sorted(maps.Keys(s.aliases)) {
		s.machineAlias.Node().AddDependency(s.aliases[name])
	}
}

// addRules routes events to the state machine, and writes of the hold and the end of failed executions to resync.
func (s *sawhorse) addRules() {
	paths := ownership.Paths{Prefix: s.Prefix}
	s.passRule("ParameterRule", "A write to a rack's parameters", nil, awsevents.EventPattern{
		Source: jsii.Strings(events.SSMSource), DetailType: jsii.Strings(events.TypeParameterChange), Detail: &map[string]any{
			"name": awsevents.Match_AnyOf(awsevents.Match_Wildcard(jsii.String(paths.Params("*")+"/*")),
				awsevents.Match_Wildcard(jsii.String(paths.Change("*")))),
			// LabelParameterVersion is left out, because a label changes no value.
			"operation": []string{"Create", "Update", "Delete"},
		},
	})
	s.passRule("RequestRule", "A pass that somebody asked for", s.bus,
		awsevents.EventPattern{DetailType: jsii.Strings(events.TypeReconcileRequested)})
	s.passRule("UnknownRule", "An event that names a rack and is no request, to be answered", s.bus, unknown())
	s.rule("HoldRule", "A write to the hold of the stack", nil, awsevents.EventPattern{
		Source: jsii.Strings(events.SSMSource), DetailType: jsii.Strings(events.TypeParameterChange), Detail: &map[string]any{
			"name":      []string{ownership.Paths{Prefix: s.Prefix}.Hold()},
			"operation": []string{"Create", "Update", "Delete"},
		},
	}, s.toResync())
	s.rule("EndedRule", "An execution that ended without freeing its rack", nil, awsevents.EventPattern{
		Source: jsii.Strings(events.StatesSource), DetailType: jsii.Strings(events.TypeExecutionChange), Detail: &map[string]any{
			// Step Functions' documents do not say whether the ARN of an execution's state machine has the alias.
			"stateMachineArn": []any{s.machineARN(), map[string]any{"prefix": s.machineARN() + ":"}},
			"status":          []string{"FAILED", "TIMED_OUT", "ABORTED"},
		},
	}, s.toResync())
}

func (s *sawhorse) toResync() awsevents.IRuleTarget {
	return awseventstargets.NewLambdaFunction(s.aliases["resync"], &awseventstargets.LambdaFunctionProps{
		DeadLetterQueue: s.undelivered,
		RetryAttempts:   jsii.Number(deliveryAttempts),
		MaxEventAge:     awscdk.Duration_Hours(jsii.Number(deliveryHours)),
	})
}

// unknown matches all other events on the bus that name a rack. It excludes Sawhorse's own events by their source. It
// also excludes their detail types, because another sender may repeat such an event under another source: answering an
// answer would loop forever.
func unknown() awsevents.EventPattern {
	known := []any{events.TypeReconcileRequested, events.TypeReconcileStarted, events.TypeReconciled, events.TypeRejected,
		events.TypeReconcileFailed, events.TypeRolledOut, events.TypeDegraded, events.TypeRecovered}
	return awsevents.EventPattern{
		Source:     awsevents.Match_AnythingBut(events.Source),
		DetailType: awsevents.Match_AnythingBut(known...),
		Detail:     &map[string]any{"rack": awsevents.Match_Exists()},
	}
}

// passRule adds a rule that starts an execution of the state machine, through its alias. The role that the CDK gives the
// rule is for the state machine itself, on whose ARN Step Functions authorizes the call.
func (s *sawhorse) passRule(id, description string, bus awsevents.IEventBus, pattern awsevents.EventPattern) {
	rule := s.rule(id, description, bus, pattern, awseventstargets.NewSfnStateMachine(s.machine, &awseventstargets.SfnStateMachineProps{
		DeadLetterQueue: s.undelivered,
		RetryAttempts:   jsii.Number(deliveryAttempts),
		MaxEventAge:     awscdk.Duration_Hours(jsii.Number(deliveryHours)),
	}))
	rule.Node().DefaultChild().(awsevents.CfnRule).AddPropertyOverride(jsii.String("Targets.0.Arn"), s.machineAlias.AttrArn())
}

// rule adds one rule. Without a bus it is on the account's default bus.
func (s *sawhorse) rule(id, description string, bus awsevents.IEventBus, pattern awsevents.EventPattern,
	target awsevents.IRuleTarget) awsevents.Rule {
	return awsevents.NewRule(s.stack, jsii.String(id), &awsevents.RuleProps{
		Description: jsii.String(description), EventBus: bus, EventPattern: &pattern, Targets: &[]awsevents.IRuleTarget{target},
	})
}

// addSchedules calls resync at each tick, which starts the audits of the racks in one slot, so that all racks have their
// turn within one interval; and rollout, which looks at the nodes of all racks with Karpenter.
func (s *sawhorse) addSchedules() {
	s.schedule("Resync Schedule", "Audits of all racks, because Parameter Store's events are best effort", "resync",
		s.ResyncMinutes/s.ResyncSlots, s.ResyncMinutes, map[string]any{
			"source": events.Source, "detail-type": "Scheduled Resync", "time": awsscheduler.ContextAttribute_ScheduledTime(),
		})
	s.schedule("Rollout Schedule", "Looks at the nodes of all racks, which follow a pass for hours", "rollout",
		s.RolloutMinutes, s.RolloutMinutes, map[string]any{
			"time": awsscheduler.ContextAttribute_ScheduledTime(), "minutes": s.RolloutMinutes,
		})
}

// schedule calls a function at an interval. A call that has been late for longer than the age is given up.
func (s *sawhorse) schedule(id, description, function string, interval, age int, input map[string]any) {
	awsscheduler.NewSchedule(s.stack, jsii.String(id), &awsscheduler.ScheduleProps{
		Description: jsii.String(description),
		Schedule:    awsscheduler.ScheduleExpression_Rate(minutes(interval)),
		Target: awsschedulertargets.NewLambdaInvoke(s.aliases[function], &awsschedulertargets.ScheduleTargetBaseProps{
			DeadLetterQueue: s.undelivered,
			RetryAttempts:   jsii.Number(2),
			MaxEventAge:     minutes(age),
			Input:           awsscheduler.ScheduleTargetInput_FromObject(input),
		}),
	})
}
