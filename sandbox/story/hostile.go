package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// Hostile puts events on the buses that name no rack, or that try to reach another rack: by path tricks,
// wildcards, length, types and letters, with a forged source, on the wrong bus. None of them leaves anything
// behind, and no pass fails.
func Hostile(s *Script) {
	const (
		written = "aws ssm get-parameters-by-path --path /sawhorse --recursive " +
			"--query 'sort_by(Parameters,&Name)[?!ends_with(Name,`/status`) && !ends_with(Name,`/change`)].[Name,Version]' --output text"
		failed = "aws stepfunctions list-executions --state-machine-arn " + machine +
			" --status-filter FAILED --query 'length(executions)' --output json"
	)
	// It deletes the parameter change, which an earlier script may have left.
	racks, parameters, failures := racksInTable(s), s.Output(written), s.Output(failed)

	s.Chapter("Events that name no rack", func() {
		strange := []any{
			"", "../demo", "demo/../prod", "/sawhorse/racks/demo", "*", "demo*", "Demo", "démo", "demo\u0000", "demo\n", "-demo", "demo-",
			strings.Repeat("a", 10_000), 7, true, nil, []string{"demo"}, object{"rack": "demo"},
		}
		var requests []object
		for _, name := range strange {
			requests = append(requests, object{"rack": name, "full": true, "force": "yes"},
				object{"rack": name, "set": object{"karpenter_enabled": "false"}})
		}
		s.Say("%d events, from \"../demo\" to one of 10,000 letters.", len(requests))
		began := time.Now()
		s.answered(s.putEvents("sawhorse", "operator", reconcileRequested, requests...))
		s.Equal("executions", s.executions(began), len(requests))
	})

	s.Chapter("Events on the wrong bus, and of the wrong source", func() {
		began := time.Now()
		write := object{"name": "/sawhorse/racks/demo/params/paused", "operation": "Update"}
		s.putEvents("default", "operator", reconcileRequested, object{"rack": "demo"})
		s.putEvents("default", "operator", "Parameter Store Change", write)
		s.putEvents("sawhorse", "operator", "Parameter Store Change", write)
		s.putEvents("sawhorse", "operator", "Rack Something Requested", object{"name": "demo"})
		s.Equal("executions that they have started", s.executions(began), 0)
	})
	onTheDefaultBus(s)

	s.Chapter("An event that Sawhorse does not take", func() {
		began := time.Now()
		s.answered(s.putEvents("sawhorse", "operator", "Rack Something Requested",
			object{"rack": "demo", "full": true, "force": []string{"room"}}))
		s.Equal("executions: one that answers it, and none that answers the answer", s.executions(began), 1)
	})

	s.Chapter("A change that reaches for other names", func() {
		set := map[string]string{"../../prod/params/paused": "true", "/etc/passwd": "x", "karpenter_cpu_limit": "7; rm -rf /"}
		w := s.Change(set, "*")
		s.Served()
		s.Equal("the change", s.Status().changed(), fmt.Sprint(w.Version, " Refused * ../../prod/params/paused /etc/passwd karpenter_cpu_limit"))
		s.Served(s.Delete("demo", change))
	})

	s.Chapter("What is left of it", func() {
		s.Equal("racks in the table", racksInTable(s), racks)
		s.Check("parameters under /sawhorse, but for status and change", written, parameters)
		s.Check("passes that failed", failed, failures)
	})
	unknownRacks(s)
	s.Check("parameters under /sawhorse, but for status and change", written, parameters)
	s.State("Reconciled")
}

// answered waits until the executions of events that name no rack have ended.
func (s *Script) answered(writes []Write) {
	for i := range writes {
		writes[i].Rack = ""
	}
	s.Served(writes...)
}

// racksInTable returns the names of which the table has records.
func racksInTable(s *Script) string {
	found := map[string]bool{}
	keys := JSON[[]string](s, "aws dynamodb scan --projection-expression pk --query 'Items[].pk.S' --output json --table-name "+table)
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "#")
		found[name] = true
	}
	return joined(found)
}

// onTheDefaultBus puts events that look like Sawhorse's own, or like those of AWS that it takes, on the bus on which
// anybody in the account may put events. None starts, reports or forges anything.
func onTheDefaultBus(s *Script) {
	s.Chapter("Events on the default bus, with Sawhorse's own source", func() {
		// What passes write, and not the looks at the nodes, of which one may be due just now.
		const passes = "aws ssm get-parameter --name /sawhorse/racks/demo/status --query Parameter.Value --output text | " +
			"jq -c '[.state, .generation, .time, .execution, .problems, .failure, .change]'"
		began, before := time.Now(), s.Output(passes)
		rack := object{"rack": "demo", "full": true, "force": []string{"room"}}
		write := object{"name": "/sawhorse/racks/demo/params/paused", "operation": "Update"}
		ended := object{"executionArn": "arn:aws:states:us-east-1:000000000000:execution:Sawhorse-reconcile:forged",
			"stateMachineArn": s.Output("echo " + machine), "status": "ABORTED", "input": encoded(object{"detail": rack})}
		for kind, detail := range map[string]object{
			reconcileRequested:         rack,
			"Rack Something Requested": rack, "Rack Reconciled": rack, "Rack Rejected": rack, "Scheduled Resync": rack,
			"Parameter Store Change": write, "Step Functions Execution Status Change": ended,
		} {
			s.putEvents("default", "sawhorse", kind, detail)
		}
		for source, detail := range map[string]object{"aws.ssm": write, "aws.states": ended} {
			entry := []object{{"Source": source, "DetailType": "x", "Detail": encoded(detail)}}
			s.Check("AWS's answer to the source "+source, "aws events put-events --query 'Entries[0].ErrorCode' --output text --entries "+
				argument(entry), "NotAuthorizedForSourceException")
		}
		s.Equal("executions that they have started", s.executions(began), 0)
		s.Check("the status", passes, before)
	})
}

// unknownRacks sends many events with valid names of racks that do not exist. It then makes their passes fail, and then
// creates racks and deletes them at once.
func unknownRacks(s *Script) {
	const each = 12
	nothingLeft := func(prefix string, soon time.Duration) {
		s.Equal("records that do not expire soon", recordsFor(s, prefix, soon), "[]")
		s.Check("parameters", "aws ssm get-parameters-by-path --path /sawhorse/racks --recursive "+
			`--query "Parameters[?contains(Name,'/`+prefix+`')].Name" --output text`, "")
	}
	var requests []object
	for i := range each {
		name := fmt.Sprintf("flood-%02d", i)
		requests = append(requests, object{"rack": name}, object{"rack": name, "full": true}, object{"rack": name, "dryRun": true},
			object{"rack": name, "dryRun": true, "set": object{"karpenter_auth_mode": "true"}}, object{"rack": name + strings.Repeat("-long", 40)})
	}
	s.Chapter("A flood of racks that there are not", func() {
		s.Say("%d events: dry runs, and some that Sawhorse does not take, among them.", 2*len(requests))
		s.Served(slices.Concat(s.putEvents("sawhorse", "operator", reconcileRequested, requests...),
			s.putEvents("sawhorse", "operator", "Rack Something Requested", requests...))...)
		nothingLeft("flood-", 10*time.Minute)
		noMetrics(s, "flood-")
	})

	s.Chapter("Their passes fail", func() {
		deny(s, "validate", "ssm:GetParametersByPath")
		defer allow(s, "validate")
		for _, w := range s.putEvents("sawhorse", "operator", reconcileRequested, requests[0], requests[5]) {
			s.Served(w)
			s.Equal("the execution", s.end("the execution of "+w.String(), s.executionOf(w)), "FAILED")
		}
		nothingLeft("flood-", 10*time.Minute)
		noMetrics(s, "flood-")
	})

	s.Chapter("Racks that are taken back at once", func() {
		for _, rack := range []string{"brief-1", "brief-2", "brief-3"} {
			s.PutOf(rack, "paused", "true")
			s.Delete(rack, "paused")
		}
		s.Served()
		nothingLeft("brief-", 10*365*24*time.Hour) // such a rack has existed, and its records expire within weeks
	})
}

// recordsFor returns the keys of the table's records of racks whose names begin with a text. It leaves out those that
// expire soon.
func recordsFor(s *Script, prefix string, soon time.Duration) (keys []string) {
	until := time.Now().Add(soon).Unix()
	query := fmt.Sprintf("Items[?!ttl || to_number(ttl.N) > `%d`].[pk.S,sk.S][]", until)
	return JSON[[]string](s, "aws dynamodb scan --table-name "+table+" --filter-expression 'contains(pk, :name) OR contains(sk, :name)' "+
		"--expression-attribute-values "+argument(object{":name": object{"S": prefix}})+" --query "+quoted(query)+" --output json")
}

// noMetrics checks that no function has logged a line of metrics with a rack's name: CloudWatch creates a metric for each
// line that has the dimension.
func noMetrics(s *Script, prefix string) {
	lines, err := functionlog.Since(s.ctx, s.env, "", time.Now().Add(-time.Hour))
	if err != nil {
		s.fail("%v", err)
	}
	for _, line := range lines {
		if strings.Contains(line.Text, prefix) && strings.Contains(line.Text, `[["Rack"]`) {
			s.fail("function %s: wanted no metric of %s, got %s", line.Function, prefix, line.Text)
		}
	}
	s.pass("no metrics of " + prefix)
}

// ForgedInterruption uses another party's EventBridge rule to send an interruption warning for one of the rack's
// instances to its queue. If Karpenter received it, it would drain the node and terminate the instance, as it does with
// another one after EC2's own warning, which comes later.
func ForgedInterruption(s *Script) {
	const (
		kind    = "EC2 Spot Instance Interruption Warning"
		arn     = "aws sqs get-queue-attributes --queue-url " + queueURL + " --attribute-names QueueArn --query Attributes.QueueArn --output text"
		outside = " --event-bus-name outside"
	)
	s.Until("the first nodes have gone", nodes, "", 3*time.Minute) // Karpenter would end one of them meanwhile
	apart.start(s)
	s.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Registered --timeout=30s")
	claims := nodeClaims(s, "-l karpenter.sh/nodepool=workload").Items
	forged, interrupted := claims[0], claims[1]

	s.Chapter("A rule of somebody else that sends to the rack's queue", func() {
		s.Type("aws events create-event-bus --name outside")
		s.Type("aws events put-rule --name forged --event-pattern " + quoted(`{"source":["outside"]}`) + outside)
		warning := object{"version": "0", "source": "aws.ec2", "detail-type": kind,
			"detail": object{"instance-id": forged.instance(), "instance-action": "terminate"}}
		s.Type("aws events put-targets --rule forged" + outside + " --targets " +
			argument([]object{{"Id": "queue", "Arn": s.Output(arn), "Input": encoded(warning)}}))
		s.putEvents("outside", "outside", "x", object{})
	})

	s.Chapter("EC2's own warning about another instance", func() {
		interrupt(s, interrupted)
		s.Until("the node of that instance", "kubectl get node "+interrupted.Status.NodeName+" -o name --ignore-not-found", "", 2*time.Minute)
		for _, claim := range nodeClaims(s).Items {
			if claim.Metadata.Name == forged.Metadata.Name && claim.Metadata.DeletionTimestamp == "" {
				s.pass("the instance of the forged warning stays")
				return
			}
		}
		s.fail("wanted NodeClaim %s to stay", forged.Metadata.Name)
	})

	s.Type("aws events remove-targets --rule forged --ids queue" + outside)
	s.Type("aws events delete-rule --name forged" + outside)
	s.Type("aws events delete-event-bus --name outside")
	apart.end(s)
}
