package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// The sandbox does not check the roles of this file, so their policies are compared with what AWS asks for.

// rights returns what a role's policies say, each as "action on ARN if condition".
func (t template) rights(role string) map[string]bool {
	all := map[string]bool{}
	for _, policy := range t.all("AWS::IAM::Policy") {
		if !strings.Contains(text(policy.Properties["Roles"]), `{"Ref":"`+role+`"}`) {
			continue
		}
		for _, s := range list(at(policy.Properties, "PolicyDocument", "Statement")) {
			effect, when := "", ""
			if at(s, "Effect") != "Allow" {
				effect = "not "
			}
			if condition := at(s, "Condition"); condition != nil {
				when = " if " + text(condition)
			}
			for _, action := range list(at(s, "Action")) {
				for _, resource := range list(at(s, "Resource")) {
					all[effect+action.(string)+" on "+t.resolved(resource)+when] = true
				}
			}
		}
	}
	if p := t.Resources[role].Properties; p["Policies"] != nil || p["ManagedPolicyArns"] != nil {
		all["further policies of the role"] = true
	}
	return all
}

// exactlyMay compares what a role may do with what it must be allowed to do.
func (t template) exactlyMay(test *testing.T, role string, want ...string) {
	test.Helper()
	slices.Sort(want)
	want = slices.Compact(want)
	if got := slices.Sorted(maps.Keys(t.rights(role))); !slices.Equal(got, want) {
		test.Errorf("%s may\n  %s\nand must be allowed\n  %s", role, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// trusts compares who may assume a role.
func (t template) trusts(test *testing.T, role, service, condition string) {
	test.Helper()
	document := t.Resources[role].Properties["AssumeRolePolicyDocument"]
	trusted := at(document, "Statement", 0)
	if len(list(at(document, "Statement"))) != 1 || at(trusted, "Action") != "sts:AssumeRole" || at(trusted, "Effect") != "Allow" ||
		text(at(trusted, "Principal")) != `{"Service":"`+service+`"}` || text(at(trusted, "Condition")) != condition {
		test.Errorf("%s trusts %s", role, text(document))
	}
}

// referred returns the logical id of the role in a property.
func referred(arn any) string {
	id, _ := at(arn, "Fn::GetAtt", 0).(string)
	return id
}

// A rule starts executions with a role of its own, through the alias: Step Functions authorizes that on the ARN of the state
// machine itself (https://docs.aws.amazon.com/step-functions/latest/dg/auth-version-alias.html). It calls a function with
// the permission that the policy of the function's alias gives to just this rule. What it cannot deliver it sends with the
// permission of the queue's policy.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
func TestRulesMayReachTheirTargets(t *testing.T) {
	for _, of := range []template{production, custom} {
		calls, letters := map[string]bool{}, map[string]bool{}
		for id, rule := range of.all("AWS::Events::Rule") {
			for _, target := range list(rule.Properties["Targets"]) {
				to, own := of.resolved(at(target, "Arn")), " from "+of.arn(id)
				letters[of.resolved(at(target, "DeadLetterConfig", "Arn"))+own] = true
				if role := referred(at(target, "RoleArn")); role != "" {
					machine, through := strings.CutSuffix(to, ":live")
					if !through {
						t.Errorf("%s starts %s, without the alias", id, to)
					}
					of.exactlyMay(t, role, "states:StartExecution on "+machine)
					of.trusts(t, role, "events.amazonaws.com", "null")
				} else {
					calls[to+own] = true
				}
			}
		}
		given := map[string]bool{}
		for id, r := range of.all("AWS::Lambda::Permission") {
			if p := r.Properties; p["Action"] == "lambda:InvokeFunction" && p["Principal"] == "events.amazonaws.com" && p["SourceArn"] != nil {
				given[of.resolved(p["FunctionName"])+" from "+of.resolved(p["SourceArn"])] = true
			} else {
				t.Errorf("%s permits %s", id, text(p))
			}
		}
		if !maps.Equal(given, calls) || len(calls) == 0 {
			t.Errorf("rules may call %v, and call %v", slices.Sorted(maps.Keys(given)), slices.Sorted(maps.Keys(calls)))
		}
		taken := map[string]bool{}
		for _, s := range list(at(of.one(t, "AWS::SQS::QueuePolicy").Properties, "PolicyDocument", "Statement")) {
			if at(s, "Effect") == "Deny" {
				if text(at(s, "Condition")) != `{"Bool":{"aws:SecureTransport":"false"}}` {
					t.Errorf("the queue refuses %s", text(s))
				}
				continue
			}
			from := at(s, "Condition", "ArnEquals", "aws:SourceArn")
			if at(s, "Action") != "sqs:SendMessage" || at(s, "Principal", "Service") != "events.amazonaws.com" || from == nil {
				t.Errorf("the queue permits %s", text(s))
				continue
			}
			taken[of.resolved(at(s, "Resource"))+" from "+of.resolved(from)] = true
		}
		if !maps.Equal(taken, letters) || len(letters) != 5 {
			t.Errorf("the queue takes %v, and rules send %v", slices.Sorted(maps.Keys(taken)), slices.Sorted(maps.Keys(letters)))
		}
	}
}

// A schedule calls the alias of its function, and sends what it cannot deliver to the queue, with its role. The trust is in
// the default group of schedules: others of the account that are in it cannot name the role without iam:PassRole.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
func TestSchedulesMayReachTheirTargets(t *testing.T) {
	for _, of := range []template{production, custom} {
		for id, schedule := range of.all("AWS::Scheduler::Schedule") {
			target := schedule.Properties["Target"]
			to, role := of.resolved(at(target, "Arn")), referred(at(target, "RoleArn"))
			if !strings.HasSuffix(to, ":live") {
				t.Errorf("%s calls %s, without the alias", id, to)
			}
			of.exactlyMay(t, role, "lambda:InvokeFunction on "+to,
				"sqs:SendMessage on "+of.resolved(at(target, "DeadLetterConfig", "Arn")))
			condition := at(of.Resources[role].Properties, "AssumeRolePolicyDocument", "Statement", 0, "Condition")
			of.trusts(t, role, "scheduler.amazonaws.com", text(condition))
			group := "arn:aws:scheduler:" + awsfake.Region + ":" + awsfake.Account + ":schedule-group/default"
			if condition == nil || schedule.Properties["GroupName"] != nil ||
				of.resolved(at(condition, "StringEquals", "aws:SourceArn")) != group ||
				of.resolved(at(condition, "StringEquals", "aws:SourceAccount")) != awsfake.Account {
				t.Errorf("%s: its role may be assumed if %s", id, text(condition))
			}
		}
	}
}

// delivering is what Step Functions does with the state machine's role for logs and traces.
// https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html and …/concepts-xray-tracing.html
var delivering = []string{"logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery",
	"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
	"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"}

// The state machine may do what its tasks do, on what they do it, and nothing else.
func TestTheStateMachineMayDoWhatItsTasksDo(t *testing.T) {
	for _, of := range []template{production, custom, again} {
		id, m := of.named("AWS::StepFunctions::StateMachine", "Machine")
		var want []string
		for _, action := range delivering {
			want = append(want, action+" on *")
		}
		for _, task := range tasks(t) {
			want = append(want, task.needs(t, of, of.arn(id), m.Properties["DefinitionSubstitutions"])...)
		}
		role := referred(m.Properties["RoleArn"])
		of.exactlyMay(t, role, want...)
		of.trusts(t, role, "states.amazonaws.com", "null")
	}
}

// task is a state of the state machine that calls something.
type task struct {
	Type, Resource string
	Arguments      struct {
		FunctionName, TableName, StateMachineArn string
		Key, Item                                struct{ PK struct{ S string } }
	}
}

func tasks(t *testing.T) (all []task) {
	t.Helper()
	var m struct{ States map[string]task }
	if err := json.Unmarshal([]byte(statemachine.Definition), &m); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.States {
		if s.Type == "Task" {
			all = append(all, s)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d tasks: the test has lost the state machine", len(all))
	}
	return all
}

// needs returns what the role must allow for a task.
func (s task) needs(t *testing.T, of template, machine string, substitutions any) (all []string) {
	t.Helper()
	service, operation, _ := strings.Cut(s.Resource[strings.Index(s.Resource, ":states:::")+len(":states:::"):], ":")
	action := service + ":" + strings.ToUpper(operation[:1]) + operation[1:]
	substituted := func(name string) string { return of.resolved(at(substitutions, name)) }
	versions := substituted("Functions")
	switch a := s.Arguments; {
	case action == "lambda:Invoke":
		for _, name := range invoked(t, a.FunctionName) {
			if !strings.Contains(versions, "'"+name+"': '") {
				t.Errorf("the state machine calls %s, and has the versions %s", name, versions)
			}
			all = append(all, fmt.Sprintf("lambda:InvokeFunction on arn:aws:lambda:%s:%s:function:%s-%s:*",
				awsfake.Region, awsfake.Account, strings.TrimSuffix(machine[strings.LastIndex(machine, ":")+1:], "-reconcile"), name))
		}
		return all
	case service == "dynamodb" && a.TableName == "${TableName}":
		key := regexp.MustCompile(`^\{% '(\w+#)' & \$rack %\}$`).FindStringSubmatch(a.Key.PK.S + a.Item.PK.S)
		if key == nil {
			t.Fatalf("the test does not understand the key of %+v", s)
		}
		return []string{fmt.Sprintf(`%s on arn:aws:dynamodb:%s:%s:table/%s if {"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["%s*"]},`+
			`"Null":{"dynamodb:LeadingKeys":"false"}}`, action, awsfake.Region, awsfake.Account, substituted("TableName"), key[1])}
	case action == "states:StartExecution" && a.StateMachineArn == "${Alias}" && substituted("Alias") == machine+":live":
		return []string{action + " on " + machine}
	}
	t.Fatalf("the test does not know what %+v needs", s)
	return nil
}

// invoked returns the names of the functions that a state calls: those that its expression names, or those of all steps.
func invoked(t *testing.T, expression string) (names []string) {
	t.Helper()
	if expression == "{% $lookup($functions, $step.function) %}" {
		return ofSteps(t)
	}
	if name, fixed := strings.CutPrefix(expression, "{% $functions."); fixed {
		return []string{strings.TrimSuffix(name, " %}")}
	}
	rest, is := strings.CutPrefix(expression, "{% $lookup($functions, ")
	for _, name := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(rest, -1) {
		names = append(names, name[1])
	}
	if !is || len(names) == 0 {
		t.Fatalf("the test does not understand the function's name %s", expression)
	}
	return names
}

// ofSteps returns the functions of all steps that passes run: those of plans, and those that belong to no plan.
func ofSteps(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{plan.ChangeStep.Function: true, plan.CloseStep.Function: true}
	files, err := filepath.Glob("../internal/plan/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct{ Plan struct{ Steps []plan.Step } }
		if err := json.Unmarshal(content, &golden); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, step := range golden.Plan.Steps {
			names[step.Function] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
