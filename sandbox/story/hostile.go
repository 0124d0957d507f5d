package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hostile puts events on the buses that name no rack, or that try to reach another rack: by path tricks,
// wildcards, length, types and letters, with a forged source, on the wrong bus. None of them leaves anything
// behind, and no pass fails.
func Hostile(t *Teller) {
	const (
		racks = `aws dynamodb scan --table-name ` + table +
			` --projection-expression pk --query 'Items[].pk.S' --output text | tr '\t' '\n' | sed 's/^[a-z]*#//' | sort -u | paste -sd' '`
		written = "aws ssm get-parameters-by-path --path /sawhorse --recursive " +
			"--query 'sort_by(Parameters,&Name)[?!ends_with(Name,`/status`)].[Name,Version]' --output text | md5sum"
		failed = "aws stepfunctions list-executions --state-machine-arn " + machine +
			" --status-filter FAILED --query 'length(executions)' --output text"
	)
	before := []string{t.Ask(racks), t.Ask(written), t.Ask(failed)}
	began := t.Ask(executions)

	t.Chapter("Events that name no rack")
	strange := []any{
		"", "../demo", "demo/../prod", "/sawhorse/racks/demo", "*", "demo*", "Demo", "démo", "demo\u0000", "demo\n", "-demo", "demo-",
		strings.Repeat("a", 10_000), 7, true, nil, []string{"demo"}, map[string]string{"rack": "demo"},
	}
	var reconcile, change []any
	for _, name := range strange {
		reconcile = append(reconcile, map[string]any{"rack": name, "full": true, "force": "yes"})
		change = append(change, map[string]any{"rack": name, "set": map[string]string{"karpenter_enabled": "false"}})
	}
	putEvents(t, "sawhorse", "Rack Reconcile Requested", reconcile...)
	putEvents(t, "sawhorse", "Rack Parameters Change Requested", change...)
	t.Say("%d events, from \"../demo\" to one of 10,000 letters.", 2*len(strange))
	t.Until("executions that they have started", "echo $(( $("+executions+") - "+began+" ))", fmt.Sprint(2*len(strange)), time.Minute)
	t.Until("of which still run", running, "0", time.Minute)

	t.Chapter("Events on the wrong bus, and of the wrong source")
	began = t.Ask(executions)
	write := map[string]any{"name": "/sawhorse/racks/demo/params/paused", "operation": "Update"}
	putEvents(t, "default", "Rack Reconcile Requested", map[string]any{"rack": "demo"})
	putEvents(t, "default", "Parameter Store Change", write)
	putEvents(t, "sawhorse", "Parameter Store Change", write)
	putEvents(t, "sawhorse", "Rack Something Requested", map[string]any{"name": "demo"})
	t.wait(2 * time.Second) // no execution is expected
	t.Check("executions that they have started", "echo $(( $("+executions+") - "+began+" ))", "0")
	onTheDefaultBus(t)
	began = t.Ask(executions)

	t.Chapter("An event that Sawhorse does not take")
	putEvents(t, "sawhorse", "Rack Something Requested", map[string]any{"rack": "demo", "full": true, "force": true})
	t.Until("executions that answer it", "echo $(( $("+executions+") - "+began+" ))", "1", time.Minute)
	t.wait(2 * time.Second)
	t.Check("and none that answers the answer", "echo $(( $("+executions+") - "+began+" ))", "1")

	t.Chapter("A change request that reaches for other names")
	id := request(t,
		`{"rack":"demo","set":{"../../prod/params/paused":"true","/etc/passwd":"x","karpenter_cpu_limit":"7; rm -rf /"},"unset":["*"]}`)
	t.Until("the request", recorded(id), "refused", time.Minute)
	t.Until("of which still run", running, "0", time.Minute)

	t.Chapter("What is left of it")
	t.Check("racks in the table", racks, before[0])
	t.Check("parameters under /sawhorse, but for the status", written, before[1])
	t.Check("passes that failed", failed, before[2])
	unknownRacks(t)
	t.Check("parameters under /sawhorse, but for the status", written, before[1])
	t.Check("status", state, "Reconciled")
}

// onTheDefaultBus puts events that look like Sawhorse's own, or like those of AWS that it takes, on the bus on which
// anybody in the account may put events. None starts, reports or forges anything.
func onTheDefaultBus(t *Teller) {
	const written = status + " | md5sum"
	t.Chapter("Events on the default bus, with Sawhorse's own source")
	began, before := t.Ask(executions), t.Ask(written)
	rack := map[string]any{"rack": "demo", "full": true, "force": true}
	write := map[string]any{"name": "/sawhorse/racks/demo/params/paused", "operation": "Update"}
	ended := map[string]any{"executionArn": "arn:aws:states:us-east-1:000000000000:execution:Sawhorse-reconcile:forged",
		"stateMachineArn": t.Ask("echo " + machine), "status": "ABORTED", "input": encoded(map[string]any{"detail": rack})}
	for kind, detail := range map[string]map[string]any{
		"Rack Reconcile Requested": rack, "Rack Parameters Change Requested": {"rack": "demo", "set": map[string]string{"paused": "true"}},
		"Rack Something Requested": rack, "Rack Reconciled": rack, "Rack Rejected": rack, "Scheduled Resync": rack,
		"Parameter Store Change": write, "Step Functions Execution Status Change": ended,
	} {
		putEventsOf(t, "sawhorse", "default", kind, detail)
	}
	for source, detail := range map[string]map[string]any{"aws.ssm": write, "aws.states": ended} {
		entry := []map[string]string{{"Source": source, "DetailType": "x", "Detail": encoded(detail)}}
		t.Check("AWS's answer to the source "+source,
			"aws events put-events --query 'Entries[0].ErrorCode' --output text --entries '"+encoded(entry)+"'",
			"NotAuthorizedForSourceException")
	}
	t.wait(3 * time.Second) // nothing is expected
	t.Check("executions that they have started", "echo $(( $("+executions+") - "+began+" ))", "0")
	t.Check("the status", written, before)
}

// unknownRacks sends many events with valid names of racks that do not exist. It then makes their passes fail, and then
// creates racks and deletes them at once.
func unknownRacks(t *Teller) {
	const (
		each  = 12
		items = `aws dynamodb scan --table-name ` + table +
			` --filter-expression 'contains(pk, :name) OR contains(sk, :name)' --expression-attribute-values '{":name":{"S":"%s"}}'` +
			` --query 'Items[?%s].[pk.S,sk.S]' --output text`
		parameters = `aws ssm get-parameters-by-path --path /sawhorse/racks --recursive ` +
			`--query "Parameters[?contains(Name,'/flood-')].Name" --output text`
		// CloudWatch creates a metric for each log line that has the dimension.
		metrics = `for name in validate audit dryrun report resync; do aws logs filter-log-events --log-group-name /aws/lambda/Sawhorse-$name` +
			` --query "events[?contains(message,'flood-')&&contains(message,'[[\"Rack\"]')].eventId" --output text; done | tr -d '\n'`
		// With text output the CLI would print one count for each page, so the output is JSON.
		all = "aws stepfunctions list-executions --state-machine-arn " + machine + " --query 'length(executions)' --output json"
	)
	nothing := func() {
		t.Until("passes that still run", running, "0", 3*time.Minute)
		t.Check("what is in the table for more than minutes",
			fmt.Sprintf(items, "flood-", fmt.Sprintf("!ttl || to_number(ttl.N) > `%d`", time.Now().Add(10*time.Minute).Unix())), "")
		t.Check("parameters", parameters, "")
		t.Check("metrics with their names", metrics, "")
	}
	t.Chapter("A flood of racks that there are not")
	var requests, changes []any
	for i := range each {
		name := fmt.Sprintf("flood-%02d", i)
		requests = append(requests, map[string]any{"rack": name}, map[string]any{"rack": name, "full": true},
			map[string]any{"rack": name, "dryRun": true},
			map[string]any{"rack": name + strings.Repeat("-long", 40)})
		changes = append(changes, map[string]any{"rack": name, "set": map[string]string{"karpenter_auth_mode": "true"}},
			map[string]any{"rack": name, "set": map[string]string{"x": "1"}})
	}
	began := t.Ask(all)
	putEvents(t, "sawhorse", "Rack Reconcile Requested", requests...)
	putEvents(t, "sawhorse", "Rack Parameters Change Requested", changes...)
	putEvents(t, "sawhorse", "Rack Something Requested", requests...)
	count := 2*len(requests) + len(changes)
	t.Say("%d events: change requests, dry runs, and some that Sawhorse does not take, among them.", count)
	t.Until("all have started an execution", fmt.Sprintf("[ $(( $(%s) - %s )) -ge %d ] && echo yes || true", all, began, count),
		"yes", time.Minute)
	nothing()

	t.Chapter("Their passes fail")
	refuse(t, "validate", "ssm:GetParametersByPath")
	putEvents(t, "sawhorse", "Rack Reconcile Requested", requests[:4]...)
	t.Until("passes that have failed", failures, "yes", time.Minute)
	nothing()
	allow(t, "validate")
	t.Check("request", fullPass, "0")

	t.Chapter("Racks that are taken back at once")
	t.Type(`for n in 1 2 3; do aws ssm put-parameter --type String --name /sawhorse/racks/brief-$n/params/paused --value true ` +
		`--query Version; aws ssm delete-parameter --name /sawhorse/racks/brief-$n/params/paused; done`)
	t.Until("parameters of theirs", strings.ReplaceAll(parameters, "flood", "brief"), "", time.Minute)
	t.Until("passes that still run", running, "0", time.Minute)
	t.Until("what is in the table and does not expire", fmt.Sprintf(items, "brief-", "!ttl"), "", time.Minute)
}

// failures prints whether a pass of a rack that does not exist has failed.
const failures = "[ $(aws stepfunctions list-executions --state-machine-arn " + machine +
	` --status-filter FAILED --query 'executions[].executionArn' --output text | tr '\t' '\n' | while read -r one; ` +
	`do aws stepfunctions describe-execution --execution-arn "$one" --query input --output text; done | grep -c flood-) -ge 1 ] ` +
	`&& echo yes || true`

// Forged uses another party's EventBridge rule to send an interruption warning for one of the rack's instances to its
// queue. If Karpenter received it, it would drain the node and terminate the instance.
func Forged(t *Teller) {
	const (
		url = `"$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl --output text)"`
		arn = "aws sqs get-queue-attributes --queue-url " + url +
			" --attribute-names QueueArn --query Attributes.QueueArn --output text"
		outside = " --event-bus-name outside"
	)
	crowd.start(t)
	t.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Registered --timeout=30s")
	nodes, instance := t.Ask(claim+"'{.items[*].status.nodeName}'"), t.Ask(claim+"'{.items[0].status.providerID}' | sed 's,.*/,,'")

	t.Chapter("A rule of somebody else that sends to the rack's queue")
	t.Type("aws events create-event-bus --name outside")
	t.Type(`aws events put-rule --name forged --event-pattern '{"source":["outside"]}'` + outside)
	warning := fmt.Sprintf(`{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning",`+
		`"detail":{"instance-id":"%s","instance-action":"terminate"}}`, instance)
	t.Type("aws events put-targets --rule forged" +
		outside + fmt.Sprintf(` --targets '[{"Id":"queue","Arn":%q,"Input":%q}]'`, t.Ask(arn), warning))
	t.Type(`aws events put-events --entries '[{"EventBusName":"outside","Source":"outside","DetailType":"x","Detail":"{}"}]'`)
	t.wait(15 * time.Second) // nothing is expected to happen
	t.Check("nodes of the pool", claim+"'{.items[*].status.nodeName}'", nodes)
	t.Check("those that are to go", claim+"'{.items[*].metadata.deletionTimestamp}'", "")

	t.Type("aws events remove-targets --rule forged --ids queue" + outside)
	t.Type("aws events delete-rule --name forged" + outside)
	t.Type("aws events delete-event-bus --name outside")
	crowd.end(t)
}

// LyingCluster makes the API server of a rack's cluster send false answers to a function, and to the audit with which a
// full pass begins. The audit cannot see what is due, so the pass takes every step in the cluster, and soon fails at the
// one that is lied to, with a clear error. Meanwhile nothing is deleted or written except the passes' own records, and
// the passes of another rack continue. Afterwards everything is as before.
func LyingCluster(t *Teller) {
	const (
		second = " --name /sawhorse/racks/second/params/paused"
		count  = "aws dynamodb get-item --table-name " + table +
			` --key '{"pk":{"S":"rack#second"},"sk":{"S":"lease"}}' --query Item.served.N --output text`
		traces  = "kubectl get nodepools,ec2nodeclasses -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.generation} {end}'"
		written = `curl -s "$AWS_ENDPOINT_URL/_sandbox/trail?since=`
		ours    = `" | awk '$2 ~ /^Sawhorse-/ && $3 ~ /^(ec2|eks|iam|sqs)$/ { print $3 ":" $4 }' | sort -u | paste -sd' '`
		step    = status + ` | python3 -c 'import json,sys; print(json.load(sys.stdin)["failure"]["step"].partition("/")[0])'`
		lie     = `{"function":%q,"service":"kubernetes","action":%q,"nth":1,"seconds":300,"kind":%q}`
	)
	before, began := t.Ask(traces), t.Ask("date -u +%Y-%m-%dT%H:%M:%SZ")
	t.Type("aws ssm put-parameter --type String --value false" + second)
	passes := func(n int) {
		t.Until(fmt.Sprintf("passes of the other rack: at least %d", n),
			fmt.Sprintf(`[ "$(%s)" -ge %d ] 2>/dev/null && echo yes || true`, count, n), "yes", time.Minute)
	}
	passes(1)
	for i, told := range []struct{ kind, function, action, sentence string }{
		{"redirect", "autoscaler", "list deployments.apps", "API servers do not redirect"},
		{"swarm", "nodepools", "", "has more than 200000 values"},
		{"endless", "autoscaler", "list deployments.apps", "still names a further page"},
		{"impostor", "autoscaler", "list deployments.apps", "Deployment/*: list: the API server answered with"},
		{"bomb", "controller", "list secrets", "unpack to more than 32 MiB"},
	} {
		t.Chapter("Its API server lies: " + told.kind)
		t.Type(faults + "PUT -d '[" + fmt.Sprintf(lie, "audit", "", told.kind) + "," +
			fmt.Sprintf(lie, told.function, told.action, told.kind) + "]'")
		t.Check("request", fullPass, "0")
		putEvents(t, "sawhorse", "Rack Reconcile Requested", map[string]any{"rack": "second", "full": true})
		passes(i + 2)
		t.Until("the status has the sentence", status+` | grep -oF '`+told.sentence+`' | head -1`, told.sentence, 2*time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Check("status", state, "Failed")
		t.Check("the step that failed", step, told.function)
	}
	t.Type(faults + "DELETE")

	t.Chapter("It lies no more")
	t.Check("what passes have changed in AWS meanwhile", written+began+ours, "")
	t.Check("request", fullPass, "0")
	t.Until("status", state, "Reconciled", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("NodePools and EC2NodeClasses", traces, before)
	t.Type("aws ssm delete-parameter" + second)
}

// putEvents puts an operator's events on a bus.
func putEvents(t *Teller, bus, kind string, details ...any) {
	putEventsOf(t, "operator", bus, kind, details...)
}

// putEventsOf puts events of a source on a bus, ten at a time, which is EventBridge's limit.
func putEventsOf(t *Teller, source, bus, kind string, details ...any) {
	for some := range slices.Chunk(details, 10) {
		var entries []map[string]string
		for _, detail := range some {
			entries = append(entries, map[string]string{
				"EventBusName": bus, "Source": source, "DetailType": kind, "Detail": encoded(detail),
			})
		}
		if got := t.Ask("aws events put-events --query FailedEntryCount --output text --entries '" + encoded(entries) + "'"); got != "0" {
			t.fail("put events %s: %s", kind, got)
		}
	}
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	return string(text)
}
