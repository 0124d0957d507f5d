package story

import (
	"strings"
	"time"
)

// twelve parameters take the function change four calls with a second between them, which is enough time to interfere
// with the pass.
var twelve = []string{
	"karpenter_build_capacity_types=spot", "karpenter_build_consolidate_after=90s", "karpenter_build_cpu_limit=33",
	"karpenter_build_instance_families=m5", "karpenter_build_instance_sizes=large", "karpenter_build_memory_limit_gb=257",
	"karpenter_node_disk=21", "karpenter_consolidate_after=45s", "karpenter_cpu_limit=101",
	"karpenter_disruption_budget_nodes=11%", "karpenter_memory_limit_gb=401", "karpenter_node_expiry=721h",
}

const (
	leaseOf = `aws dynamodb get-item --consistent-read --table-name ` + table +
		` --key '{"pk":{"S":"rack#demo"},"sk":{"S":"lease"}}' --output text --query `
	owner  = leaseOf + "Item.owner.S"
	served = leaseOf + "'[Item.requested.N == Item.served.N]'"
	event  = bus +
		`'[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"demo\"}"}]'`
	executions = "aws stepfunctions list-executions --state-machine-arn " + machine + " --query 'length(executions)' --output text"
	faults     = `curl -s "$AWS_ENDPOINT_URL/_sandbox/faults" -X `
)

// TakenOver makes two executions hold one lease: the lease of a pass expires in the middle of a step, and another
// execution takes it. takeOver waits for the pass's first write, expires its lease until another execution holds it,
// and returns the older execution. The AWS CLI would be too slow for that.
func TakenOver(t *Teller, takeOver func(parameter, value string) (older string)) {
	versions := "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query 'Parameters[].Version' --output text " +
		"| tr '\\t' '\\n' | awk '{ n += $1 } END { print n }'"
	t.Chapter("A lease that expires in the middle of a step")
	before := t.Ask(versions)
	request(t, `{"rack":"demo","set":{"`+strings.ReplaceAll(strings.Join(twelve, `","`), "=", `":"`)+`"}}`)
	t.Say("While the parameters are written, the lease expires again and again until the execution of another event has taken it.")
	older := takeOver("karpenter_build_cpu_limit", "33")
	t.Until("the older execution has ended", ended(older), "SUCCEEDED", time.Minute)
	history := "aws stepfunctions get-execution-history --execution-arn " + older + " --reverse-order --no-paginate --output text --query "
	t.Check("where it stopped", history+`'events[?stateEnteredEventDetails]|[0].stateEnteredEventDetails.name'`, "Lost")
	t.Check("why", history+`'events[?taskFailedEventDetails]|[0].taskFailedEventDetails.error'`, "LeaseLost")
	t.Until("the other pass has ended", running, "0", time.Minute)
	t.Check("each parameter was written once", "echo $(( $("+versions+") - "+before+" ))", "12")
	t.Check("status", state, "Reconciled")
	t.Check("all requests are served", served, "True")
}

// ended returns the command that prints an execution's status.
func ended(execution string) string {
	return "aws stepfunctions describe-execution --execution-arn " + execution + " --query status --output text"
}

// Stopped stops an execution in the middle of a step. The status and an event report it,
// and another execution continues.
func Stopped(t *Teller) {
	var names []string
	for _, one := range twelve {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
	}
	t.Chapter("An execution is stopped")
	listen(t)
	t.Say("The sandbox stops it at the sixth of its writes: a person's command could come when it has ended.")
	t.Type(faults + `PUT -d '[{"function":"change","service":"ssm","action":"PutParameter","nth":6,"times":1,"kind":"stop"}]'`)
	request(t, `{"rack":"demo","unset":["`+strings.Join(names, `","`)+`"]}`)
	heard(t, "the event", "error step reason", "ABORTED change somebody stopped the execution")
	t.Type(faults + "DELETE")
	stopped := t.Ask("aws stepfunctions list-executions --state-machine-arn " + machine +
		" --status-filter ABORTED --query 'executions[0].executionArn' --output text")
	t.Say("Another execution goes on by itself; if a function was being called, it first waits for a minute.")
	t.Until("all requests are served", served, "True", 3*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	started := t.Ask(executions)
	t.Say("EventBridge may deliver a notice twice; this is how the second one arrives.")
	t.Type(`aws lambda invoke --function-name Sawhorse-resync --payload '{"detail-type":"Step Functions Execution Status Change",` +
		`"detail":{"executionArn":"` + stopped +
		`","status":"ABORTED","input":"{\"detail\":{\"rack\":\"demo\"}}"}}' /dev/stdout --query StatusCode`)
	t.Check("executions", executions, started)
	t.Check("the last parameter",
		"aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_node_expiry --query Parameter.Value --output text", "unset")

	t.Chapter("A dry run that fails is answered")
	refuse(t, "dryrun", "ssm:GetParametersByPath")
	t.Type(`aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested",` +
		`"Detail":"{\"rack\":\"demo\",\"dryRun\":true,\"request\":\"try-1\"}"}]' --query FailedEntryCount`)
	heard(t, "the event", "dryRun error request", "True StepFailed try-1")
	allow(t, "dryrun")
	t.Check("status", state, "Reconciled")

	t.Chapter("A request with a misspelled field is only answered")
	putEvents(t, "sawhorse", "Rack Reconcile Requested", map[string]any{"rack": "demo", "dryrun": true, "request": "try-2"})
	heard(t, "the event", "rack request steps", "demo try-2 []")
	putEvents(t, "sawhorse", "Rack Reconcile Requested", map[string]any{"full": true, "request": "try-3"})
	heard(t, "the answer to one without a rack", "rack request", "try-3")
}

// StoppedOff stops the execution that turns Karpenter off while a function deletes the roles. The function itself
// continues. resync reports what had been done by then, and deletes the outputs of the queue. Another execution does
// the rest, including the outputs of the roles.
func StoppedOff(t *Teller) {
	const outputs = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/outputs --output text --query "
	autoscalerBefore := asBefore(t)
	t.Chapter("Off, and the execution is stopped on the way")
	t.Type(faults + `PUT -d '[{"function":"infrastructure","service":"iam","action":"DeleteRole","nth":1,"times":1,"kind":"stop"}]'`)
	t.Type(turnOff)
	t.Until("status", state, "Failed", 3*time.Minute)
	t.Contains("it tells of the queue", status, "queue demo-karpenter deleted")
	t.Check("outputs of the queue", outputs+`"Parameters[?contains(Name, 'interruption')].Name"`, "")
	t.Say("Another execution goes on by itself; it first waits for a minute, because the function may still run.")
	t.Until("status", state, "Reconciled", 3*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type(faults + "DELETE")
	t.Check("outputs", outputs+`"Parameters[].Name"`, "")
	withoutKarpenter(t, autoscalerBefore)
}

// Failing removes a permission, so that every pass fails.
func Failing(t *Teller) {
	t.Chapter("Writes while passes fail")
	refuse(t, "nodepools", "dynamodb:GetItem")
	t.Contains("refused", "aws iam list-role-policies --output text --role-name "+roleOf("nodepools"), "refused")
}

// Mended checks the state after the failures, restores the permission, and checks that the
// next event repairs everything.
func Mended(t *Teller) {
	t.Until("the passes have ended, and none loops", running, "0", time.Minute)
	t.Check("status", state, "Failed")
	t.Contains("the remedy", "sawhorse status demo", "A right is missing")
	t.Check("all requests are served", served, "True")
	allow(t, "nodepools")
	t.Type(put + "karpenter_cpu_limit --value 207 --query Version")
	t.Until("the next event: NodePool's CPU limit", cpuLimit, "207", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}

// LostEvents loses Parameter Store's event for a write. The schedule's next audit finds the write, and its pass applies it. Then two events
// arrive in the wrong order.
func LostEvents(t *Teller) {
	const rule = `"$(aws events list-rules --query "Rules[?contains(Name, 'ParameterRule')].Name" --output text)"`
	t.Chapter("An event that never arrives")
	t.Type("aws events disable-rule --name " + rule)
	t.Type(put + "karpenter_cpu_limit --value 208 --query Version")
	t.Type("aws events enable-rule --name " + rule)
	t.Check("nothing runs", running, "0")
	t.Check("NodePool's CPU limit", cpuLimit, "207")
	t.Say("The schedule ticks every minute, and each rack has one tick an hour.")
	t.Type(ticks)
	t.Until("NodePool's CPU limit", cpuLimit, "208", time.Minute)
	t.Until("the pass has ended", running, "0", 2*time.Minute)
	t.Check("status", state, "Reconciled")

	t.Chapter("Events that come in another order")
	t.Type(`curl -s -X POST "$AWS_ENDPOINT_URL/_sandbox/change-events?order=delay&count=1"`)
	t.Type(put + "karpenter_cpu_limit --value 209 --query Version")
	t.Type(put + "karpenter_memory_limit_gb --value 403 --type String --query Version")
	t.Until("NodePool's limits", `kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'`,
		"209 403Gi", time.Minute)
	t.Until("the passes have ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("all requests are served", served, "True")
}

// listen sends the events about problems to a queue, as docs/events.md describes.
func listen(t *Teller) {
	t.Type(`aws sqs create-queue --queue-name needs-a-look --attributes '{"Policy":"{\"Statement\":{\"Effect\":\"Allow\",` +
		`\"Principal\":{\"Service\":\"events.amazonaws.com\"},\"Action\":\"sqs:SendMessage\",\"Resource\":\"*\"}}"}' --query QueueUrl`)
	t.Type(`aws events put-rule --event-bus-name sawhorse --name sawhorse-needs-a-look --event-pattern '{"source":["sawhorse"],` +
		`"detail-type":["Rack Rejected","Rack Reconcile Failed"]}' --query RuleArn`)
	t.Type(`aws events put-targets --event-bus-name sawhorse --rule sawhorse-needs-a-look ` +
		`--targets "Id=queue,Arn=$(aws sqs get-queue-attributes --queue-url ` + look +
		` --attribute-names QueueArn --query Attributes.QueueArn --output text)" --query FailedEntryCount`)
}

const look = `"$(aws sqs get-queue-url --queue-name needs-a-look --query QueueUrl --output text)"`

// heard waits for the next event in the queue, and compares fields of its detail. Another event stays visible, so that a
// failed check prints it.
func heard(t *Teller, what, fields, wanted string) {
	t.Until(what, `aws sqs receive-message --wait-time-seconds 5 --visibility-timeout 0 --queue-url `+look+
		` --query 'Messages[0].Body' --output text | python3 -c 'import json,sys; d = json.load(sys.stdin)["detail"]; `+
		`print(*[d.get(f, "") for f in "`+fields+`".split()])'`, wanted, time.Minute)
	t.Ask("aws sqs purge-queue --queue-url " + look)
}

// refuse denies a function an action, until allow.
func refuse(t *Teller, function, action string) {
	t.Type(`aws iam put-role-policy --role-name ` + roleOf(function) +
		` --policy-name refused --policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"` + action +
		`","Resource":"*"}]}'`)
}

func allow(t *Teller, function string) {
	t.Type(`aws iam delete-role-policy --policy-name refused --role-name ` + roleOf(function))
}

// roleOf returns a shell expression for the name of a function's role.
func roleOf(function string) string {
	return `"$(aws lambda get-function-configuration --function-name Sawhorse-` + function + ` --query Role --output text | sed 's|.*/||')"`
}

// Throttled turns Karpenter on while all calls of a service are throttled for half a minute: those of DynamoDB when the
// pass begins, including the state machine's own, and those of IAM when roles are created.
func Throttled(t *Teller) {
	const version = "aws ssm get-parameter --name /sawhorse/racks/demo/status --query Parameter.Version --output text"
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	t.Until("access has been migrated", status+` | grep -o '"goal":"[a-z]*"'`, `"goal":"access"`, time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Chapter("Throttled for 30 s, twice, while Karpenter is turned on")
	before := t.Ask(version)
	t.Type(faults +
		`PUT -d '[{"service":"dynamodb","nth":1,"seconds":30,"kind":"throttle"},{"service":"iam","nth":1,"seconds":30,"kind":"throttle"}]'`)
	t.Type(turnOn)
	t.Until("NodePool workload is Ready", ready, "True", 5*time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
	t.Check("services with more than the 4 throttled calls that one call overcomes by itself",
		faults+
			`GET | python3 -c 'import collections, json, sys; n = collections.Counter(f["service"] for f `+
			`in json.load(sys.stdin)["fired"]); print(*sorted(s for s in n if n[s] > 4))'`, "dynamodb iam")
	t.Type(faults + "DELETE")
	t.Check("what the status has said meanwhile",
		`aws ssm get-parameter-history --name /sawhorse/racks/demo/status --query 'Parameters[?Version>`+"`"+before+"`"+
			`].Value' --output text | grep -o '"state":"[A-Za-z]*"' | sort -u | paste -sd' '`, `"state":"Reconciled"`)
}
