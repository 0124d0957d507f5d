package story

import (
	"fmt"
	"time"
)

// ChangeRequest requests changes of several parameters. A valid change is applied as a whole, and the same event again
// does nothing. A change with one bad value leaves every parameter as it was. A request with a misspelled detail type
// is answered.
func ChangeRequest(s *Script) {
	const (
		limits = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'"
		stored = "aws ssm get-parameters --names /sawhorse/racks/demo/params/karpenter_cpu_limit " +
			"/sawhorse/racks/demo/params/karpenter_memory_limit_gb --query 'sort_by(Parameters,&Name)[].Value' --output text"
		versions = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params " +
			"--query 'sort_by(Parameters,&Name)[].[Name,Version]' --output json"
	)
	good := map[string]string{"karpenter_cpu_limit": "321", "karpenter_memory_limit_gb": "654"}
	var first Write
	s.Chapter("Two values as one change", func() {
		generation := JSON[int](s, poolGeneration)
		first = s.Change(good)
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "321 654Gi")
		s.Check("in Parameter Store", stored, "321\t654")
		s.Check("the NodePool's generation is one more, not two", poolGeneration, fmt.Sprint(generation+1))
		s.Check("the request", recorded(first), "finished")
	})

	s.Chapter("The same event again", func() {
		s.Reconciled(s.Put("karpenter_cpu_limit", "322"))
		s.Check("somebody writes one of the two", limits, "322 654Gi")
		before := s.Output(versions)
		s.Say("EventBridge may deliver an event twice; this is how the second one arrives.")
		again := object{"id": first.Event, "source": "operator", "detail-type": changeRequested, "detail": object{"rack": "demo", "set": good}}
		began := time.Now()
		s.Type("aws stepfunctions start-execution --state-machine-arn " + machine + " --input " + argument(again))
		s.Served(Write{Rack: "demo", Event: first.Event, At: began})
		s.Check("versions of all parameters", versions, before)
		s.Check("the NodePool's limits", limits, "322 654Gi")
	})

	s.Chapter("A change with one bad value", func() {
		before, generation := s.Output(versions), s.Output(poolGeneration)
		w := s.Change(map[string]string{"karpenter_cpu_limit": "111", "karpenter_node_expiry": "30d"}, "karpenter_memory_limit_gb")
		s.Served()
		s.Check("the request", recorded(w), "refused")
		s.Check("versions of all parameters", versions, before)
		s.Check("the NodePool's generation", poolGeneration, generation)
		s.Check("the NodePool's limits", limits, "322 654Gi")
	})

	s.Chapter("A misspelled detail type", func() {
		answers := subscribe(s, "problems", problems)
		defer answers.end(s)
		before, began := s.Output(versions), time.Now()
		w := s.Event("Rack Parameter Change Requested", object{"rack": "demo", "unset": []string{"karpenter_cpu_limit"}})
		heard := answers.next(s)
		s.Equal("the answer's rack and change", heard.Rack+" "+heard.Change, "demo "+w.Event)
		s.Check("versions of all parameters", versions, before)
		s.Equal("executions: that of the event, and none of the answer", s.executions(began), 1)
	})

	s.Chapter("A change that pauses the rack", func() {
		w := s.Change(map[string]string{"paused": "true", "karpenter_cpu_limit": "323"})
		s.Paused()
		s.Check("the request", recorded(w), "finished")
		s.Check("the NodePool's limits", limits, "322 654Gi")
		s.Say("It is written, and so a later write counts.")
		s.Reconciled(s.Put("paused", "unset"))
		s.Check("the NodePool's limits", limits, "323 654Gi")
	})

	s.Chapter("Back to the defaults", func() {
		w := s.Change(nil, "karpenter_cpu_limit", "karpenter_memory_limit_gb")
		s.Reconciled()
		s.Check("the NodePool's limits", limits, "100 400Gi")
		s.Check("in Parameter Store", stored, "unset\tunset")
		s.Check("the request", recorded(w), "finished")
	})
}

// recorded returns the command that prints the state of a change request.
func recorded(w Write) string {
	return fmt.Sprintf(`aws dynamodb get-item --consistent-read --table-name %s --key '{"pk":{"S":"change#demo"},"sk":{"S":"change#%s"}}' `+
		`--query Item.state.S --output text`, table, w.Event)
}
