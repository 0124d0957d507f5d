package story

import (
	"strings"
	"time"
)

// Commands about the stack. The sandbox's CDK CLI runs in the checkout. .cache/cdk.out is what
// the sandbox has deployed.
const (
	ours    = ".cache/cdk.out"
	unlike  = "cdk diff --app " + ours + counted
	counted = " 2>&1 | grep -o 'with differences: .*'"
	formats = status + " | grep -c 'there is no plan of format' || true"
	planned = "aws dynamodb get-item --table-name " + table + ` --key '{"pk":{"S":"plan#demo"},"sk":{"S":"plan"}}' ` +
		"--query Item.pk.S --output text"
	finalizers = "kubectl get ec2nodeclass workload -o jsonpath='{.metadata.finalizers}'"
)

// Upgrade deploys this stack over that of an earlier commit, whose template is in a folder: once while a pass turns off
// the Karpenter that the earlier stack turned on, and once while a pass turns Karpenter on.
func Upgrade(t *Teller, earlier string) {
	t.Chapter("The stack of an earlier commit")
	stack(t, "destroy --force --app "+ours)
	stack(t, "deploy --require-approval never --app "+earlier)
	t.Check("it is another one than this checkout's: stacks", unlike, "with differences: 1")
	baseline := t.Ask(autoscaler)
	t.Type(buildPool)
	t.Type(put + "karpenter_auth_mode --value true --type String")
	on(t)

	t.Chapter("Upgraded while a pass turns Karpenter off")
	t.Say("A finalizer on the class makes the pass wait.")
	t.Type(`kubectl patch ec2nodeclass workload --type json -p '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]'`)
	t.Type(turnOff)
	t.Until("what the class waits for", finalizers, `["example.com/hold"]`, time.Minute)
	if _, goesOn := upgrade(t); goesOn {
		t.Chapter("A plan of another format")
		t.Type(anotherFormat)
		t.Until("the step says so", formats, "1", time.Minute)
	}
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Failed")
	t.Type(`kubectl patch ec2nodeclass workload --type json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'`)
	t.Say("The next event makes a new plan and goes on from there.")
	t.Check("request", event, "0")
	t.Until("Karpenter's Deployment", controllerName, "", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Say("What was noted before Karpenter by the earlier version is put back by this one.")
	withoutKarpenter(t, baseline)

	t.Chapter("Upgraded while a pass turns Karpenter on")
	stack(t, "destroy --force --app "+ours)
	stack(t, "deploy --require-approval never --app "+earlier)
	t.Say("Karpenter's pods find no node, and the pass waits for them.")
	t.Type("kubectl get nodes -o name | xargs kubectl cordon")
	t.Type(turnOn)
	t.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 3*time.Minute)
	execution, goesOn := upgrade(t)
	t.Type("kubectl get nodes -o name | xargs kubectl uncordon")
	t.Until("the pass has ended", running, "0", 2*time.Minute)
	if !goesOn || t.Ask(formats) == "1" {
		t.Check("request", event, "0")
		t.Until("NodePool workload is Ready", ready, "True", 2*time.Minute)
		t.Until("the pass has ended", running, "0", 2*time.Minute)
	} else {
		t.Check("the execution", ended(execution), "SUCCEEDED")
	}
	t.Check("status", state, "Reconciled")
	t.Check("NodePool workload is Ready", ready, "True")
	t.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
	t.Check("outputs, of the steps before and of those behind it",
		"aws ssm get-parameters-by-path --path /sawhorse/racks/demo/outputs --query 'length(Parameters)' --output text", "6")

	t.Chapter("After it")
	t.Type("sawhorse status demo")
	t.Type(put + "karpenter_cpu_limit --value 120 --type String")
	t.Until("NodePool's CPU limit", cpuLimit, "120", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)
	t.Say("The first full pass may bring what is new in this version; the second finds nothing to do.")
	repair(t)
	t.Contains("the boundary of the controller's role", bearing, "ControllerBoundary")
	t.Contains("that of the nodes'", strings.Replace(bearing, "demo-karpenter", "demo-karpenter-nodes", 1), "NodeBoundary")
	single.start(t)
	t.Check("Karpenter launches as before: the NodePool of the node", single.where(), "workload")
	single.end(t)
	t.Say("The policies that were boundaries of the earlier version bear no role any more, and CloudFormation has left them.")
	forgetBoundaries(t, t.Ask("comm -23 <("+sorted(limits)+") <("+sorted(stacks)+") | paste -sd' '"))
	t.Check("boundaries are those of this stack", limits, t.Ask(stacks))

	t.Chapter("A full pass that changes nothing")
	unchanged(t)
	t.Check("made again, the template is still what is deployed: stacks", "cdk diff"+counted, "with differences: 0")
}

// sorted returns a command that prints the words of another command's output, one per line.
func sorted(command string) string { return command + " | tr '\\t' '\\n' | sort" }

// upgrade deploys this stack while a pass waits, and returns the pass's execution. The execution goes on, unless the two
// versions' plans have different formats, or places in the table.
func upgrade(t *Teller) (execution string, goesOn bool) {
	execution = t.Ask(owner)
	stack(t, "deploy --require-approval never --app "+ours)
	t.Check("what is deployed is this checkout's: stacks", unlike, "with differences: 0")
	if t.Ask(planned) == "None" || t.Ask(formats) == "1" {
		t.Say("This version finds no plan of its format in its place, and the pass ends with that.")
		return execution, false
	}
	t.Check("the pass goes on", ended(execution), "RUNNING")
	t.Check("and has the rack", owner, execution)
	return execution, true
}

// anotherFormat gives the rack's plan a format that no version has. The AWS CLI accepts only text, so
// curl sends the bytes.
const anotherFormat = `key='{"pk":{"S":"plan#demo"},"sk":{"S":"plan"}}'; table=` + table + `
plan=$(aws dynamodb get-item --table-name "$table" --key "$key" --query Item.plan.B --output text |
  python3 -c 'import base64, gzip, json, sys; p = json.loads(gzip.decompress(base64.b64decode(sys.stdin.read()))); ` +
	`p["format"] = 0; print(base64.b64encode(gzip.compress(json.dumps(p).encode())).decode())')
curl -sf --aws-sigv4 aws:amz:$AWS_REGION:dynamodb --user $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY "$AWS_ENDPOINT_URL" \
  -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Target: DynamoDB_20120810.UpdateItem' \
  -d '{"TableName":"'"$table"'","Key":'"$key"',"UpdateExpression":"SET #p = :p",` +
	`"ExpressionAttributeNames":{"#p":"plan"},"ExpressionAttributeValues":{":p":{"B":"'"$plan"'"}}}'`

// stack runs a CDK command on the stack, without a line for each resource.
func stack(t *Teller, arguments string) {
	t.Type("cdk " + arguments + " 2>&1 | grep -v ' | '; [ ${PIPESTATUS[0]} = 0 ]")
	t.Note("cdk "+arguments, t.Last())
}
