package story

import (
	"fmt"
	"time"
)

// Enabled turns Karpenter on in the rack demo with a pool for builds, if that is not the case yet.
func Enabled(t *Teller) {
	if t.Ask(ready) == "True" && t.Ask(buildReady) == "True" && t.Ask(state) == "Reconciled" {
		t.hold("Karpenter is on")
		return
	}
	t.Type(buildPool)
	t.Type(put + "karpenter_auth_mode --value true --type String")
	t.Type(put + "karpenter_enabled --value true --type String")
	t.Until("NodePool workload is Ready", ready, "True", 3*time.Minute)
	t.Until("NodePool build is Ready", buildReady, "True", 3*time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
	t.Check("status", state, "Reconciled")
}

// FirstEnabling turns Karpenter on in a new rack, and returns how long it took until the rack was Reconciled. No pass
// fails on the way.
func FirstEnabling(t *Teller) time.Duration {
	before := t.Ask(version + " 2>/dev/null || echo 0")
	t.Type(put + "karpenter_auth_mode --value true --type String")
	began := time.Now()
	t.Type(put + "karpenter_enabled --value true --type String")
	t.Type("sawhorse watch demo")
	took := time.Since(began)
	t.Check("status", state, "Reconciled")
	t.Check("what the status has said meanwhile", fmt.Sprintf(told, before), `"state":"Reconciled"`)
	t.Check("NodePool workload is Ready", ready, "True")
	return took
}

const (
	buildPool  = put + "build_node_enabled --value true --type String"
	buildReady = `kubectl get nodepool build -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null`

	ready   = `kubectl get nodepool workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null`
	machine = `"$(aws stepfunctions list-state-machines --query 'stateMachines[0].stateMachineArn' --output text)"`
	running = "aws stepfunctions list-executions --state-machine-arn " + machine +
		" --status-filter RUNNING --query 'length(executions)' --output text"
	role  = `"$(aws lambda get-function-configuration --function-name Sawhorse-nodepools --query Role --output text)"`
	table = `"$(aws cloudformation describe-stacks --stack-name Sawhorse --query 'Stacks[0].Outputs[?OutputKey==` + "`TableName`" +
		`].OutputValue' --output text)"`
	lease  = `aws dynamodb update-item --table-name ` + table + ` --key '{"pk":{"S":"rack#demo"},"sk":{"S":"lease"}}' `
	invoke = `aws lambda invoke --function-name Sawhorse-nodepools --payload '{"rack":"demo","execution":"probe",` +
		`"step":{"name":"nodepools","function":"nodepools"}}' /dev/stdout`
	entry = "aws eks describe-access-entry --cluster-name demo --principal-arn " + role +
		" --query accessEntry.kubernetesGroups --output text"
)

// LockedOut deletes a function's access entry, calls the function as the state machine does, and has a
// full pass repair it.
func LockedOut(t *Teller) {
	t.Chapter("A function without an access entry")
	t.Check("its entry", entry, "sawhorse:nodepools")
	t.Type(lease + `--update-expression 'SET #o = :o' --expression-attribute-names '{"#o":"owner"}' ` +
		`--expression-attribute-values '{":o":{"S":"probe"}}'`)
	t.Contains("with its entry it may", invoke, `"status": "done"`)
	t.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + role)
	known(t)
	time.Sleep(2 * time.Second) // the API server caches its webhook's answers for a second
	t.Contains("without, the API server refuses it", invoke, "Unauthorized")
	t.Type(lease + `--update-expression 'REMOVE #o' --expression-attribute-names '{"#o":"owner"}'`)
	t.Type(`aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested",` +
		`"Detail":"{\"rack\":\"demo\",\"full\":true}"}]'`)
	t.Until("a full pass has made the entry again", entry, "sawhorse:nodepools", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}
