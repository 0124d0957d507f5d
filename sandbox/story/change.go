package story

import (
	"fmt"
	"time"
)

// ChangeRequest requests changes of several parameters. A valid change is applied as a whole, and the same event again
// does nothing. A change with one bad value leaves every parameter as it was. A request with a misspelled detail type
// is answered.
func ChangeRequest(t *Teller) {
	const (
		good = `{"rack":"demo","set":{"karpenter_cpu_limit":"321","karpenter_memory_limit_gb":"654"}}`
		bad  = `{"rack":"demo","set":{"karpenter_cpu_limit":"111","karpenter_node_expiry":"30d"},"unset":["karpenter_memory_limit_gb"]}`
		back = `{"rack":"demo","unset":["karpenter_cpu_limit","karpenter_memory_limit_gb"]}`

		limits    = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'"
		parameter = "/sawhorse/racks/demo/params/karpenter_"
		stored    = "aws ssm get-parameters --names " + parameter + "cpu_limit " + parameter +
			"memory_limit_gb --query 'sort_by(Parameters,&Name)[].[Value]' --output text | paste -sd' '"
		versions = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params " +
			"--query 'sort_by(Parameters,&Name)[].[Name,Version]' --output json"
	)
	t.Chapter("Two values as one change")
	was := t.Ask(poolGeneration)
	id := request(t, good)
	t.Until("the NodePool's limits", limits, "321 654Gi", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("in Parameter Store", stored, "321 654")
	t.Check("the NodePool was changed once, not twice", "echo $(("+t.Ask(poolGeneration)+" - "+was+"))", "1")
	t.Check("the request", recorded(id), "finished")
	t.Check("status", state, "Reconciled")

	t.Chapter("The same event again")
	t.Type(put + "karpenter_cpu_limit --value 322")
	t.Until("somebody writes one of the two", limits, "322 654Gi", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	untouched := t.Ask(versions)
	t.Say("EventBridge may deliver an event twice; this is how the second one arrives.")
	t.Type(fmt.Sprintf(`aws stepfunctions start-execution --state-machine-arn %s --input '{"id":"%s","source":"operator",`+
		`"detail-type":"Rack Parameters Change Requested","detail":%s}'`, machine, id, good))
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("versions of all parameters", versions, untouched)
	t.Check("the NodePool's limits", limits, "322 654Gi")

	t.Chapter("A change with one bad value")
	was = t.Ask(poolGeneration)
	id = request(t, bad)
	t.Until("the request", recorded(id), "refused", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("versions of all parameters", versions, untouched)
	t.Check("the NodePool's generation", poolGeneration, was)
	t.Check("the NodePool's limits", limits, "322 654Gi")

	t.Chapter("A misspelled detail type")
	listen(t)
	began := t.Ask(executions)
	id = send(t, "Rack Parameter Change Requested", back)
	heard(t, "the answer", "rack change", "demo "+id)
	t.Check("versions of all parameters", versions, untouched)
	t.Check("executions: one, and none for the answer", "sleep 2; echo $(( $("+executions+") - "+began+" ))", "1")

	t.Chapter("A change that pauses the rack")
	id = request(t, `{"rack":"demo","set":{"paused":"true","karpenter_cpu_limit":"323"}}`)
	t.Until("the request", recorded(id), "finished", time.Minute)
	t.Until("status", state, "Paused", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("the NodePool's limits", limits, "322 654Gi")
	t.Say("It is written, and so a later write counts.")
	t.Type(put + "paused --value unset")
	t.Until("the NodePool's limits", limits, "323 654Gi", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")

	t.Chapter("Back to the defaults")
	id = request(t, back)
	t.Until("the NodePool's limits", limits, "100 400Gi", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("in Parameter Store", stored, "unset unset")
	t.Check("the request", recorded(id), "finished")
	t.Check("status", state, "Reconciled")
}

// request puts a change request on the bus and returns its event's id.
func request(t *Teller, detail string) string {
	return send(t, "Rack Parameters Change Requested", detail)
}

// send puts an event on Sawhorse's bus and returns its id.
func send(t *Teller, kind, detail string) string {
	command := fmt.Sprintf(`aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"operator","DetailType":"%s",`+
		`"Detail":%s}]' `+
		`--query 'Entries[0].EventId' --output text`, kind, encoded(detail))
	t.Say("$ %s", command)
	return t.Ask(command)
}

// recorded returns the command that prints the state of a change request.
func recorded(id string) string {
	return fmt.Sprintf(`aws dynamodb get-item --consistent-read --table-name %s --key '{"pk":{"S":"change#demo"},"sk":{"S":"change#%s"}}' `+
		`--query Item.state.S --output text`, table, id)
}
