package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func TestEveryRuleTargetHasADeadLetterQueueAndABoundedRetry(t *testing.T) {
	queue := slices.Collect(maps.Keys(production.all("AWS::SQS::Queue")))[0]
	targets := map[string]any{}
	for id, schedule := range production.all("AWS::Scheduler::Schedule") {
		targets[id] = schedule.Properties["Target"]
	}
	rules := production.all("AWS::Events::Rule")
	if len(rules) != 5 {
		t.Errorf("%d rules, want 5", len(rules))
	}
	for id, rule := range rules {
		for _, target := range list(rule.Properties["Targets"]) {
			targets[id] = target
		}
	}
	for id, target := range targets {
		if got := text(at(target, "DeadLetterConfig", "Arn")); !strings.Contains(got, queue) {
			t.Errorf("%s: dead letters go to %s", id, got)
		}
		for _, limit := range []string{"MaximumRetryAttempts", "MaximumEventAgeInSeconds"} {
			if at(target, "RetryPolicy", limit) == nil {
				t.Errorf("%s: no %s", id, limit)
			}
		}
	}
	properties := production.Resources[queue].Properties
	if properties["SqsManagedSseEnabled"] != true || properties["MessageRetentionPeriod"] != 14.0*24*3600 {
		t.Errorf("the queue is not encrypted, or does not keep events for 14 days: %s", text(properties))
	}
	if policy := text(production.one(t, "AWS::SQS::QueuePolicy").Properties); !strings.Contains(policy, `"aws:SecureTransport":"false"`) {
		t.Errorf("the queue takes plain HTTP: %s", policy)
	}
}

// Lambda calls a function that has failed twice more, after one minute and after two more, keeps a call that it cannot make for as
// long as the configuration says, and sends what is left to the queue, with the function's role. A look at the nodes is neither
// repeated nor kept, because the next one follows. The sandbox shows the calls and what is kept (the script Undelivered), but neither
// these times nor the role.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html and …/invocation-async-retain-records.html
func TestAnAsynchronousCallIsTriedAgainAndThenKept(t *testing.T) {
	for _, c := range []struct {
		of             template
		audit, rollout float64
	}{{production, 3600, 300}, {custom, 1800, 900}} {
		want := map[string][3]any{"Resync": {2.0, 3600.0, "kept"}, "Audit": {2.0, c.audit, "kept"}, "Rollout": {0.0, c.rollout, nil}}
		for id, r := range c.of.all("AWS::Lambda::EventInvokeConfig") {
			p := r.Properties
			function, _ := at(p, "FunctionName", "Ref").(string)
			got := [3]any{p["MaximumRetryAttempts"], p["MaximumEventAgeInSeconds"]}
			if to := at(p, "DestinationConfig", "OnFailure", "Destination"); to != nil {
				got[2] = c.of.kept(function, c.of.resolved(to))
			}
			name := function[:len(function)-8]
			if got != want[name] || !strings.Contains(text(p["Qualifier"]), `{"Ref":"`+name+`Alias`) {
				t.Errorf("%s of %s: %v, want %v", id, text(p["Qualifier"]), got, want[name])
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("Lambda's own settings apply to %s", name)
		}
	}
}

// kept returns whether a function's role may send to the queue of what could not be delivered.
func (t template) kept(function, to string) string {
	queue, _ := t.named("AWS::SQS::Queue", "Undelivered")
	role := referred(t.Resources[function].Properties["Role"])
	if to != t.arn(queue) || !t.rights(role)["sqs:SendMessage on "+to] {
		return "lost: " + role + " may not send to " + to
	}
	return "kept"
}

// After an execution has been stopped, its function call may still make changes. It does so for at most the timeout of
// one call.
func TestTheNextPassWaitsForACall(t *testing.T) {
	if store.CallTime != functionTimeout*time.Second {
		t.Errorf("a call is waited for %s, and a function may take %d s", store.CallTime, functionTimeout)
	}
}

func TestPatterns(t *testing.T) {
	patterns := func(of template) string {
		var all []string
		for _, rule := range of.all("AWS::Events::Rule") {
			all = append(all, text(rule.Properties["EventPattern"]))
		}
		return strings.Join(all, "\n")
	}
	got := patterns(production)
	for _, want := range []string{
		`{"detail":{"name":[{"wildcard":"/sawhorse/racks/*/params/*"},{"wildcard":"/sawhorse/racks/*/change"}],` +
			`"operation":["Create","Update","Delete"]},"detail-type":["Parameter Store Change"],"source":["aws.ssm"]}`,
		`{"detail-type":["Rack Reconcile Requested"]}`,
		`{"detail":{"name":["/sawhorse/hold"],"operation":["Create","Update","Delete"]},` +
			`"detail-type":["Parameter Store Change"],"source":["aws.ssm"]}`,
		`"status":["FAILED","TIMED_OUT","ABORTED"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no pattern has %s:\n%s", want, got)
		}
	}
	if got := patterns(custom); !strings.Contains(got, `"/tools/sawhorse/racks/*/params/*"`) ||
		!strings.Contains(got, `"/tools/sawhorse/racks/*/change"`) {
		t.Errorf("the prefix is not in the pattern:\n%s", got)
	}
	for id, rule := range production.all("AWS::Events::Rule") {
		// Anybody with events:PutEvents may put events of any source on the default bus, but for those of AWS's services.
		if from := list(at(rule.Properties, "EventPattern", "source")); rule.Properties["EventBusName"] == nil &&
			(len(from) != 1 || from[0] != events.SSMSource && from[0] != events.StatesSource) {
			t.Errorf("rule %s takes events of %s from the default bus", id, text(from))
		}
		if own := strings.HasPrefix(id, "RequestRule") || strings.HasPrefix(id, "UnknownRule"); own != (rule.Properties["EventBusName"] != nil) {
			t.Errorf("rule %s is on the wrong bus: %s", id, text(rule.Properties["EventBusName"]))
		}
	}
}

// An event on Sawhorse's bus that names a rack and is not a request is answered. Sawhorse's own events are not
// answered, neither by their source nor if another sender repeats them: answering an answer would loop forever.
func TestUnknownEventsAreAnswered(t *testing.T) {
	var known []string
	for _, each := range []events.Detail{
		events.ReconcileRequested{},
		events.ReconcileStarted{}, events.Reconciled{}, events.Rejected{}, events.ReconcileFailed{}, events.RolledOut{},
		events.Degraded{}, events.Recovered{},
	} {
		known = append(known, each.DetailType())
	}
	want := fmt.Sprintf(`{"detail":{"rack":[{"exists":true}]},"detail-type":[{"anything-but":["%s"]}],"source":[{"anything-but":["%s"]}]}`,
		strings.Join(known, `","`), events.Source)
	for id, rule := range production.all("AWS::Events::Rule") {
		if strings.HasPrefix(id, "UnknownRule") {
			if got := text(rule.Properties["EventPattern"]); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if got := text(rule.Properties["Targets"]); !strings.Contains(got, `"Fn::GetAtt":["MachineAlias"`) {
				t.Errorf("it leads to %s", got)
			}
			return
		}
	}
	t.Error("there is no such rule")
}

func TestTableIsKept(t *testing.T) {
	table := production.one(t, "AWS::DynamoDB::Table")
	if table.DeletionPolicy != "Retain" {
		t.Errorf("DeletionPolicy %q", table.DeletionPolicy)
	}
	if at(table.Properties, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true {
		t.Error("no point-in-time recovery")
	}
	if got := text(table.Properties["TimeToLiveSpecification"]); got != `{"AttributeName":"ttl","Enabled":true}` {
		t.Errorf("time to live: %s", got)
	}
	if got := custom.one(t, "AWS::DynamoDB::Table").DeletionPolicy; got != "Delete" {
		t.Errorf("removal=destroy: DeletionPolicy %q", got)
	}
	for want, of := range map[bool]template{true: production, false: custom} {
		if got := of.one(t, "AWS::DynamoDB::Table").Properties["DeletionProtectionEnabled"]; got != want {
			t.Errorf("deletion protection %v, want %v", got, want)
		}
	}
	for id, boundary := range production.boundaries(t) {
		if got := boundary.DeletionPolicy; got != "Retain" {
			t.Errorf("%s: DeletionPolicy %q", id, got)
		}
	}
}

// A retained table has the racks' state before Karpenter. A stack that is deployed again uses it.
func TestTheTableOfAnEarlierStack(t *testing.T) {
	if n := len(again.all("AWS::DynamoDB::Table")); n > 0 {
		t.Errorf("%d tables beside it", n)
	}
	for id, r := range again.all("AWS::Lambda::Function") {
		if got := at(r.Properties, "Environment", "Variables", "SAWHORSE_TABLE"); got != "Sawhorse-Table-Earlier" {
			t.Errorf("%s: table %v", id, got)
		}
	}
	granted := 0
	for _, g := range again.grants() {
		if strings.HasPrefix(text(g.actions), `["dynamodb:`) {
			granted++
			if got := text(g.resources); !strings.HasSuffix(got, `:table/Sawhorse-Table-Earlier"]]}]`) {
				t.Errorf("%s: %s", g.where, got)
			}
		}
	}
	if granted <= len(withRoles()) { // and the state machine's
		t.Errorf("%d statements about the table", granted)
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		of              template
		resync, rollout string
	}{{production, "rate(1 minute)", "rate(5 minutes)"}, {custom, "rate(10 minutes)", "rate(15 minutes)"}} {
		schedules := c.of.all("AWS::Scheduler::Schedule")
		if len(schedules) != 2 {
			t.Errorf("%d schedules", len(schedules))
		}
		for id, schedule := range schedules {
			want := c.resync
			if strings.HasPrefix(id, "Rollout") {
				want = c.rollout
			}
			if got := schedule.Properties["ScheduleExpression"]; got != want {
				t.Errorf("%s: %v, want %s", id, got, want)
			}
		}
	}
}

func TestStateMachine(t *testing.T) {
	machine := production.one(t, "AWS::StepFunctions::StateMachine").Properties
	if got := text(machine["LoggingConfiguration"]); !strings.Contains(got, `"IncludeExecutionData":false,"Level":"ERROR"`) {
		t.Errorf("logging: %s", got)
	}
	if at(machine, "TracingConfiguration", "Enabled") != true {
		t.Error("no tracing")
	}
	substitutions := machine["DefinitionSubstitutions"]
	for _, name := range []string{"Partition", "TableName", "Functions", "Parameters", "Alias", "DebounceSeconds", "Prefix"} {
		if at(substitutions, name) == nil {
			t.Errorf("no substitution %s", name)
		}
	}
	if got := at(custom.one(t, "AWS::StepFunctions::StateMachine").Properties, "DefinitionSubstitutions", "DebounceSeconds"); got != "1" {
		t.Errorf("debounceSeconds=1: %v", got)
	}
}

// An execution goes on with the functions with which it began, and a rollback goes back to them: the definition names a
// version of each function, which CloudFormation keeps, and the alias, which starts executions, names a version of the
// state machine, which it keeps too. The alias comes last: after it, nothing of the deployment can fail that passes need.
func TestADeploymentMovesTheAliasLast(t *testing.T) {
	for _, of := range []template{production, custom, again} {
		_, machine := of.named("AWS::StepFunctions::StateMachine", "Machine")
		versions := of.resolved(at(machine.Properties, "DefinitionSubstitutions", "Functions"))
		for id, r := range of.all("AWS::Lambda::Version") {
			function := r.Properties["FunctionName"].(map[string]any)["Ref"].(string)
			if r.DeletionPolicy != "RetainExceptOnCreate" || !strings.Contains(versions, "': '"+of.arn(function)+":1'") {
				t.Errorf("%s is kept: %s; the definition has %s", id, r.DeletionPolicy, versions)
			}
		}
		if got := strings.Count(versions, ":function:"); got != len(functions) {
			t.Errorf("the definition has %d versions: %s", got, versions)
		}
		version := of.one(t, "AWS::StepFunctions::StateMachineVersion")
		revision := at(version.Properties, "StateMachineRevisionId", "Fn::GetAtt", 1)
		if version.UpdateReplacePolicy != "Retain" || revision != "StateMachineRevisionId" {
			t.Errorf("the state machine's version: %s", text(version))
		}
		var first []string
		for id := range of.all("AWS::Lambda::Alias") {
			first = append(first, id)
		}
		alias := of.one(t, "AWS::StepFunctions::StateMachineAlias")
		for _, id := range first {
			if !slices.Contains(alias.DependsOn, id) {
				t.Errorf("the state machine's alias may move before %s", id)
			}
		}
		_, resync := of.named("AWS::Lambda::Function", "Resync")
		for _, variable := range []string{"SAWHORSE_STATE_MACHINE", "SAWHORSE_AUDIT"} {
			if calls := of.resolved(at(resync.Properties, "Environment", "Variables", variable)); !strings.HasSuffix(calls, ":"+ownership.Alias) {
				t.Errorf("resync calls %s, without the alias", calls)
			}
		}
		if len(first) != 3 || alias.Properties["Name"] != ownership.Alias {
			t.Errorf("aliases of functions %v, and %s", first, text(alias))
		}
	}
}

func TestFunctionsAreTheDirectories(t *testing.T) {
	entries, err := os.ReadDir("../functions")
	if err != nil {
		t.Fatal(err)
	}
	var directories, want []string
	for _, entry := range entries {
		if entry.IsDir() {
			directories = append(directories, entry.Name())
		}
	}
	for _, f := range withRoles() {
		want = append(want, f.name)
	}
	slices.Sort(want)
	if !slices.Equal(directories, want) {
		t.Errorf("functions/ has %v, the stack has %v", directories, want)
	}
}

func TestFunctions(t *testing.T) {
	roles, more := map[string]string{}, map[string][]string{
		"validate": {"METRICS", "NODE_ROLES"}, "report": {"METRICS"}, "access": {"PRINCIPALS"}, "controller": {"PRINCIPAL"},
		"infrastructure": {"CONTROLLER_BOUNDARY", "NODE_BOUNDARY", "POD_IDENTITY_DELAY_SECONDS"}, "nodepools": {"DRAIN_SECONDS"},
		"nodegroups": {"DRAIN_SECONDS"}, "proof": {"PROOF_SECONDS"},
		"rollout": {"METRICS"},
		"resync":  {"METRICS", "STATE_MACHINE", "AUDIT", "RESYNC_MINUTES", "RESYNC_SLOTS"},
		"audit": {"METRICS", "NODE_ROLES", "PRINCIPALS", "PRINCIPAL", "CONTROLLER_BOUNDARY", "NODE_BOUNDARY", "POD_IDENTITY_DELAY_SECONDS",
			"DRAIN_SECONDS", "PROOF_SECONDS"},
	}
	more["dryrun"] = more["audit"]
	found := production.all("AWS::Lambda::Function")
	if len(found) != len(functions) {
		t.Errorf("%d functions, want %d", len(found), len(functions))
	}
	for id, r := range found {
		name, _ := strings.CutPrefix(r.Properties["FunctionName"].(string), "Sawhorse-")
		want := []string{"SAWHORSE_BUS", "SAWHORSE_PREFIX", "SAWHORSE_TABLE"}
		for _, variable := range more[name] {
			want = append(want, "SAWHORSE_"+variable)
		}
		slices.Sort(want)
		variables := at(r.Properties, "Environment", "Variables").(map[string]any)
		if got := slices.Sorted(maps.Keys(variables)); !slices.Equal(got, want) {
			t.Errorf("function %s: environment %v, want %v", name, got, want)
		}
		if name == "dryrun" { // TestADryRunIsAnAuditWithAConcurrencyOfItsOwn
			continue
		}
		role := text(r.Properties["Role"])
		if other, taken := roles[role]; taken {
			t.Errorf("functions %s and %s share a role", name, other)
		}
		roles[role] = name
		timeout := map[bool]float64{true: rolloutTimeout, false: functionTimeout}[name == "rollout"]
		if r.Properties["Runtime"] != "provided.al2023" || text(r.Properties["Architectures"]) != `["arm64"]` ||
			r.Properties["Timeout"] != timeout || text(r.Properties["TracingConfig"]) != `{"Mode":"Active"}` {
			t.Errorf("function %s (%s): %s", name, id, text(r.Properties))
		}
		if r.Properties["LoggingConfig"] == nil {
			t.Errorf("function %s: no log group of its own", name)
		}
	}
}

// Logs are kept for a month and deleted with the stack. Their names are fixed, so a stack that is deployed again would
// find the names taken. Longer retention is a setting.
func TestLogs(t *testing.T) {
	for _, c := range []struct {
		of     template
		days   float64
		policy string
	}{{production, 30, "Delete"}, {custom, 365, "Retain"}} {
		groups := c.of.all("AWS::Logs::LogGroup")
		if len(groups) != len(functions)+1 {
			t.Errorf("%d log groups", len(groups))
		}
		for id, logs := range groups {
			if logs.Properties["RetentionInDays"] != c.days || logs.DeletionPolicy != c.policy {
				t.Errorf("log group %s: %v days, %s; want %v, %s", id, logs.Properties["RetentionInDays"], logs.DeletionPolicy, c.days, c.policy)
			}
		}
	}
}

func TestCustomFunctions(t *testing.T) {
	for id, r := range custom.all("AWS::Lambda::Function") {
		if text(r.Properties["Architectures"]) != `["x86_64"]` {
			t.Errorf("%s: %s", id, text(r.Properties["Architectures"]))
		}
		name := strings.TrimPrefix(r.Properties["FunctionName"].(string), "Other-")
		cluster := slices.ContainsFunc(functions, func(f function) bool { return f.name == name && f.cluster })
		want := map[bool]string{true: `{"SecurityGroupIds":["sg-11111111"],"SubnetIds":["subnet-11111111","subnet-22222222"]}`,
			false: "null"}[cluster]
		if got := text(r.Properties["VpcConfig"]); got != want {
			t.Errorf("%s: VpcConfig %s, want %s", id, got, want)
		}
		validates := slices.Contains([]string{"validate", "audit", "dryrun"}, name)
		for variable, want := range map[string]string{
			"SAWHORSE_OBJECT_PREFIXES": "s3://config/racks/{rack}/,s3://config/shared", "SAWHORSE_REQUIRE_CLUSTER_TAG": "false",
			"SAWHORSE_IMAGE_REPOSITORIES": "example.com/karpenter/*,example.com/controller", "SAWHORSE_SYSTEM_NAMESPACES": "ingress",
			"SAWHORSE_PROXIES": "http://proxy.example.com:3128,.svc",
		} {
			got := at(r.Properties, "Environment", "Variables", variable)
			if validates && got != want || !validates && got != nil {
				t.Errorf("%s: %s is %v", id, variable, got)
			}
		}
		accounts := text(at(r.Properties, "Environment", "Variables", "SAWHORSE_OBJECT_ACCOUNTS"))
		owners := `{"Fn::Join":["",[{"Ref":"AWS::AccountId"},",210987654321"]]}`
		if validates != (accounts == owners) || accounts != owners && accounts != "null" {
			t.Errorf("%s: accounts %s", id, accounts)
		}
	}
}

// A function with limited concurrency has that concurrency reserved. Only that of dry runs is reserved by default: nothing
// else would keep any number of them from using up the concurrency of passes.
func TestReservedConcurrency(t *testing.T) {
	for _, c := range []struct {
		of   template
		want string
	}{{production, "dryrun 5"}, {again, ""}, {custom, "access 5, audit 20, dryrun 3, infrastructure 5, nodegroups 5, validate 20"}} {
		var reserved []string
		for _, r := range c.of.all("AWS::Lambda::Function") {
			if n := r.Properties["ReservedConcurrentExecutions"]; n != nil {
				_, name, _ := strings.Cut(r.Properties["FunctionName"].(string), "-")
				reserved = append(reserved, fmt.Sprint(name, " ", n))
			}
		}
		slices.Sort(reserved)
		if got := strings.Join(reserved, ", "); got != c.want {
			t.Errorf("reserved for %s, want %s", got, c.want)
		}
	}
}

// The function dryrun has the code, the role and the environment of audit, so that it can do nothing that audit cannot, and
// the rack's clusters need no further access entry.
func TestADryRunIsAnAuditWithAConcurrencyOfItsOwn(t *testing.T) {
	properties := map[string]map[string]any{}
	for _, r := range production.all("AWS::Lambda::Function") {
		properties[r.Properties["FunctionName"].(string)] = r.Properties
	}
	dryrun, audit := properties["Sawhorse-dryrun"], properties["Sawhorse-audit"]
	for _, same := range []string{"Code", "Role", "Environment", "MemorySize", "Timeout", "Runtime", "TracingConfig"} {
		if audit[same] == nil || text(dryrun[same]) != text(audit[same]) {
			t.Errorf("%s: %s, of audit %s", same, text(dryrun[same]), text(audit[same]))
		}
	}
	if dryrun["LoggingConfig"] == nil || text(dryrun["LoggingConfig"]) == text(audit["LoggingConfig"]) {
		t.Errorf("the log: %s", text(dryrun["LoggingConfig"]))
	}
}

func TestAlarms(t *testing.T) {
	if got, want := len(production.all("AWS::CloudWatch::Alarm")), 14+len(functions); got != want {
		t.Errorf("%d alarms, want %d", got, want)
	}
	for id, alarm := range production.all("AWS::CloudWatch::Alarm") {
		missing := "notBreaching"
		if strings.HasPrefix(id, "ScheduleMissing") || strings.HasPrefix(id, "NodeCheckMissing") {
			missing = "breaching"
		}
		if alarm.Properties["TreatMissingData"] != missing || alarm.Properties["AlarmActions"] != nil {
			t.Errorf("alarm %s: %s", id, text(alarm.Properties))
		}
	}
	for id, alarm := range custom.all("AWS::CloudWatch::Alarm") {
		if got := text(alarm.Properties["AlarmActions"]); got != `["arn:aws:sns:eu-central-1:123456789012:alarms"]` {
			t.Errorf("alarm %s: actions %s", id, got)
		}
	}
}

func TestOutputs(t *testing.T) {
	got := slices.Sorted(maps.Keys(production.Outputs))
	if want := []string{"BusName", "StateMachineArn", "TableName"}; !slices.Equal(got, want) {
		t.Errorf("outputs %v, want %v", got, want)
	}
}

// A version of a function keeps the role that it was published with. With another path, CloudFormation makes other roles and deletes
// these, so every function needs a new version.
func TestAnotherPathOfTheRolesMakesNewVersions(t *testing.T) {
	earlier, later := production.all("AWS::Lambda::Version"), moved.all("AWS::Lambda::Version")
	if len(earlier) != len(functions) || len(later) != len(functions) {
		t.Errorf("%d and %d versions of %d functions", len(earlier), len(later), len(functions))
	}
	for id := range later {
		if _, same := earlier[id]; same {
			t.Errorf("%s is not published again", id)
		}
	}
}
