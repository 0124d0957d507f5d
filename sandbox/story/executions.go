package story

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// twelve parameters take the function change four calls with a second between them, which is enough time to interfere
// with the pass.
var twelve = map[string]string{
	"karpenter_build_capacity_types": "spot", "karpenter_build_consolidate_after": "90s", "karpenter_build_cpu_limit": "33",
	"karpenter_build_instance_families": "m5", "karpenter_build_instance_sizes": "large", "karpenter_build_memory_limit_gb": "257",
	"karpenter_node_disk": "21", "karpenter_consolidate_after": "45s", "karpenter_cpu_limit": "101",
	"karpenter_disruption_budget_nodes": "11%", "karpenter_memory_limit_gb": "401", "karpenter_node_expiry": "721h",
}

// LeaseTakenOver makes two executions hold one lease: the lease of a pass expires in the middle of a step, and another
// execution takes it.
func LeaseTakenOver(s *Script) {
	s.Chapter("A lease that expires in the middle of a step", func() {
		before, table := s.parameters(), s.table()
		s.Change(twelve)
		s.Say("While the parameters are written, the lease expires again and again until the execution of another event has taken it.")
		older := s.takeOver(table, "karpenter_build_cpu_limit", "33")
		s.Equal("the older execution", s.end("the older execution", older), "SUCCEEDED")
		history := "aws stepfunctions get-execution-history --execution-arn " + older + " --reverse-order --no-paginate --output text --query "
		s.Check("where it stopped", history+`'events[?stateEnteredEventDetails]|[0].stateEnteredEventDetails.name'`, "Lost")
		s.Check("why", history+`'events[?taskFailedEventDetails]|[0].taskFailedEventDetails.error'`, "LeaseLost")
		s.Reconciled()
		written := s.parameters()
		for name := range twelve {
			s.Equal("writes of "+name, written[name].Version-before[name].Version, 1)
		}
	})
}

// takeOver waits until a pass has written a parameter, then expires its lease until the execution of another event has
// taken it. It returns the older execution. The AWS CLI would be too slow for that.
func (s *Script) takeOver(table, parameter, value string) (older string) {
	name := folder("demo") + "params/" + parameter
	s.poll(parameter+"="+value+" and a lease", func() (string, bool, error) {
		is, err := ssm.NewFromConfig(s.env.AWS()).GetParameter(s.ctx, &ssm.GetParameterInput{Name: &name})
		if err != nil {
			return "nothing", false, err
		}
		if *is.Parameter.Value != value {
			return *is.Parameter.Value, false, nil // not written yet
		}
		lease, err := s.lease("demo")
		older = lease.owner
		return value + " and a lease of " + cmp.Or(older, "none"), older != "", err
	})
	const tries = 200
	for try := range tries {
		if s.expireLease(table, older) {
			return older
		}
		if try%20 == 0 {
			_, err := eventbridge.NewFromConfig(s.env.AWS()).PutEvents(s.ctx, &eventbridge.PutEventsInput{
				Entries: []eventtypes.PutEventsRequestEntry{{EventBusName: aws.String("sawhorse"), Source: aws.String("operator"),
					DetailType: aws.String(reconcileRequested), Detail: aws.String(`{"rack":"demo"}`)}},
			})
			if err != nil {
				s.fail("put events: %v", err)
			}
		}
		s.wait(50 * time.Millisecond)
	}
	s.fail("wanted another execution to take the lease of rack demo, still got %s after %d tries", older, tries)
	return ""
}

// expireLease makes an execution's lease expire, and reports whether another execution has it.
func (s *Script) expireLease(table, owner string) (taken bool) {
	_, err := dynamodb.NewFromConfig(s.env.AWS()).UpdateItem(s.ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: leaseOf("demo"), UpdateExpression: aws.String("SET expires = :past"),
		ConditionExpression: aws.String("#owner = :owner"), ExpressionAttributeNames: map[string]string{"#owner": "owner"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":past": &types.AttributeValueMemberN{Value: "1"}, ":owner": &types.AttributeValueMemberS{Value: owner},
		},
	})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return true
	}
	if err != nil {
		s.fail("lease: %v", err)
	}
	return false
}

// stopAt returns a fault that stops the execution when a function makes a call for the nth time.
func stopAt(function, service, action string, nth int) fault.Fault {
	return fault.Fault{Call: fault.Call{Function: function, Service: service, Action: action}, Nth: nth, Times: 1, Kind: "stop"}
}

// ExecutionStopped stops an execution in the middle of a step. The status and an event report it, and another execution
// continues. Then a dry run that fails is answered, and so are requests that are not valid.
func ExecutionStopped(s *Script) {
	s.Reconciled(s.Change(twelve))
	failures := subscribe(s, "problems", problems)
	defer failures.end(s)
	s.Chapter("An execution is stopped", func() {
		s.Say("The sandbox stops it at the sixth of its writes: a person's command could come when it has ended.")
		s.inject(stopAt("change", "ssm", "PutParameter", 6))
		w := s.Change(nil, slices.Sorted(maps.Keys(twelve))...)
		event := failures.next(s)
		s.Equal("the event", event.Error+" "+event.Step+" "+event.Reason, "ABORTED change somebody stopped the execution")
		s.inject()
		stopped := s.executionOf(w)
		s.Say("Another execution goes on by itself; if a function was being called, it first waits for a minute.")
		s.Reconciled()
		began := time.Now()
		s.Say("EventBridge may deliver a notice twice; this is how the second one arrives.")
		notice := object{"detail-type": "Step Functions Execution Status Change", "detail": object{
			"executionArn": stopped, "status": sfntypes.ExecutionStatusAborted, "input": encoded(object{"detail": object{"rack": "demo"}}),
		}}
		s.Type("aws lambda invoke --function-name Sawhorse-resync:live --payload " + argument(notice) + " /dev/stdout --query StatusCode")
		s.Equal("executions that it starts", s.executions(began), 0)
		s.Check("the last parameter",
			"aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_node_expiry --query Parameter.Value --output text", "unset")
	})

	s.Chapter("A dry run that fails is answered", func() {
		deny(s, "dryrun", "ssm:GetParametersByPath")
		defer allow(s, "dryrun")
		s.Event(reconcileRequested, object{"rack": "demo", "dryRun": true, "request": "try-1"})
		event := failures.next(s)
		s.Equal("the event's error and request", event.Error+" "+event.Request, "StepFailed try-1")
		s.Equal("it is of a dry run", event.DryRun, true)
		s.Reconciled()
	})

	s.Chapter("A request with a misspelled field is only answered", func() {
		s.Event(reconcileRequested, object{"rack": "demo", "dryrun": true, "request": "try-2"})
		event := failures.next(s)
		s.Equal("the event's rack and request", event.Rack+" "+event.Request, "demo try-2")
		s.Equal("its steps", event.Steps, "[]")
		s.Event(reconcileRequested, object{"full": true, "request": "try-3"})
		event = failures.next(s)
		s.Equal("rack and request of the answer to one without a rack", event.Rack+" "+event.Request, " try-3")
	})
}

// StoppedOff stops the execution that turns Karpenter off while a function deletes the roles. The function itself
// continues. resync reports what had been done by then, and deletes the outputs of the queue. Another execution does
// the rest, including the outputs of the roles.
func StoppedOff(s *Script) {
	s.Chapter("Off, and the execution is stopped on the way", func() {
		// resync comes when the function has ended, so that there are outputs to delete.
		late := fault.Fault{Call: fault.Call{Function: "resync", Service: "dynamodb", Action: "GetItem"}, Nth: 1, Times: 3, Kind: fault.Slow}
		s.inject(stopAt("infrastructure", "iam", "DeleteRole", 1), late)
		s.Put("karpenter_enabled", "false")
		s.UntilState("Failed", 3*time.Minute)
		s.Says("queue demo-karpenter deleted")
		s.Check("outputs of the queue", "("+outputs+" 2>/dev/null || echo '{}') | jq -r .interruption_queue_arn", "null")
		s.Say("Another execution goes on by itself; it first waits for a minute, because the function may still run.")
		s.Reconciled()
		s.inject()
		s.Refused(outputs, "ParameterNotFound")
		withoutKarpenter(s)
	})
}
