package story

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
)

// Write is something that asks for a pass: a write of a parameter, or an event.
type Write struct {
	Rack string
	// Parameter and Version are those of a write of a parameter, or of the parameter change; Version is 0 for a deletion.
	Parameter string
	Version   int64
	// Event is the ID of an event that was put on a bus.
	Event string
	// Source is the source of an event whose ID is not known.
	Source string
	// At is a time shortly before it was made.
	At time.Time
}

func (w Write) String() string {
	switch {
	case w.Parameter != "" && w.Version == 0:
		return w.Parameter + " deleted"
	case w.Parameter != "":
		return fmt.Sprintf("%s version %d", w.Parameter, w.Version)
	case w.Event != "":
		return "event " + w.Event
	}
	return "the request of " + w.Source
}

// input is the input of an execution: the event that has started it.
type input struct {
	ID, Source string
	Detail     struct{ Rack, Name, Reason string }
}

func (w Write) started(in input) bool {
	switch {
	case w.Event != "":
		return in.ID == w.Event
	case w.Parameter != "":
		return in.Source == "aws.ssm" && in.Detail.Name == parameter(w.Rack, w.Parameter)
	}
	return in.Source == w.Source && in.Detail.Rack == w.Rack
}

// change is the name of the parameter that changes several others. No setting has this name.
const change = "change"

// parameter returns the full name of a parameter of a rack.
func parameter(rack, name string) string {
	if name == change {
		return folder(rack) + change
	}
	return folder(rack) + "params/" + name
}

// folder is where the rack's parameters, status and outputs are.
func folder(rack string) string { return "/sawhorse/racks/" + rack + "/" }

// Put writes a parameter of the rack demo.
func (s *Script) Put(name, value string) Write { return s.PutOf("demo", name, value) }

// PutOf writes a parameter of a rack.
func (s *Script) PutOf(rack, name, value string) Write {
	w := Write{Rack: rack, Parameter: name, At: time.Now()}
	text := s.typed("aws ssm put-parameter --overwrite --type String --name " + parameter(rack, name) + " --value " + quoted(value))
	var answer struct{ Version int64 }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.fail("put-parameter: %v", err)
	}
	w.Version = answer.Version
	return s.wrote(w)
}

// stored is a parameter in Parameter Store.
type stored struct {
	Value   string
	Version int64
}

// parameters returns the parameters of the rack demo.
func (s *Script) parameters() map[string]stored {
	found := map[string]stored{}
	for _, p := range JSON[[]struct {
		Name string
		stored
	}](s, "aws ssm get-parameters-by-path --path "+folder("demo")+"params --query Parameters") {
		found[path.Base(p.Name)] = p.stored
	}
	return found
}

// Unset writes "unset", the default, to parameters.
func (s *Script) Unset(names ...string) {
	for _, name := range names {
		s.Put(name, "unset")
	}
}

// Delete deletes a parameter of a rack.
func (s *Script) Delete(rack, name string) Write {
	w := Write{Rack: rack, Parameter: name, At: time.Now()}
	s.Type("aws ssm delete-parameter --name " + parameter(rack, name))
	return s.wrote(w)
}

func (s *Script) wrote(w Write) Write {
	s.unserved = append(s.unserved, w)
	return w
}

// reconcileRequested is the kind of event that an operator puts on Sawhorse's bus.
const reconcileRequested = "Rack Reconcile Requested"

// object is the detail of an event, or another JSON object.
type object = map[string]any

// Request requests a pass. With an option, such as "full", it is a pass of that kind.
func (s *Script) Request(options ...string) Write {
	detail := object{"rack": "demo"}
	for _, option := range options {
		detail[option] = true
	}
	return s.Event(reconcileRequested, detail)
}

// Force requests a pass that overrides guards.
func (s *Script) Force(words ...string) Write {
	return s.Event(reconcileRequested, object{"rack": "demo", "force": words})
}

// FullPass requests a full pass and waits for its end.
func (s *Script) FullPass() { s.Served(s.Request("full")) }

// Change changes several parameters of the rack demo at once.
func (s *Script) Change(set map[string]string, unset ...string) Write {
	wanted := object{}
	if len(set) > 0 {
		wanted["set"] = set
	}
	if len(unset) > 0 {
		wanted["unset"] = unset
	}
	return s.Put(change, encoded(wanted))
}

// Event puts one event of an operator on Sawhorse's bus.
func (s *Script) Event(kind string, detail object) Write {
	return s.wrote(s.putEvents("sawhorse", "operator", kind, detail)[0])
}

// putEvents puts events on a bus, ten at a time, which is EventBridge's limit. Served waits for them only if it is told to.
func (s *Script) putEvents(bus, source, kind string, details ...object) (writes []Write) {
	for some := range slices.Chunk(details, 10) {
		began := time.Now()
		var entries []map[string]string
		for _, detail := range some {
			entries = append(entries, map[string]string{"EventBusName": bus, "Source": source, "DetailType": kind, "Detail": encoded(detail)})
		}
		command := "aws events put-events --entries " + argument(entries)
		s.Say("$ %s", brief(command))
		answer := JSON[struct {
			FailedEntryCount int
			Entries          []struct{ EventID string }
		}](s, command)
		if answer.FailedEntryCount > 0 {
			s.fail("put-events: %d of %d %q failed", answer.FailedEntryCount, len(some), kind)
		}
		for i, entry := range answer.Entries {
			rack, _ := some[i]["rack"].(string)
			writes = append(writes, Write{Rack: rack, Event: entry.EventID, At: began})
		}
	}
	return writes
}

// Served waits until the passes that served these writes have ended; without arguments, those of all writes of the script
// that it has not waited for.
//
// The event of a write starts an execution. It counts the request before anything else, and ends without a pass if another
// execution has the rack. So the write is served when its execution has ended, and the rack's passes have served all
// requests that were counted by then.
func (s *Script) Served(writes ...Write) {
	if len(writes) == 0 {
		writes = s.unserved
	}
	if len(writes) == 0 {
		s.fail("there is no write to wait for")
	}
	s.unserved = slices.DeleteFunc(slices.Clone(s.unserved), func(w Write) bool { return slices.Contains(writes, w) })
	began := time.Now()
	for _, w := range writes {
		s.end("the execution of "+w.String(), s.executionOf(w))
		if w.Rack == "" {
			continue
		}
		counted := int64(-1)
		s.poll(fmt.Sprintf("%s served, with all that was requested of rack %s by then", w, w.Rack), func() (string, bool, error) {
			now, err := s.lease(w.Rack)
			if counted < 0 && err == nil {
				counted = now.requested
			}
			return fmt.Sprintf("%+v", now), now.served >= counted || now == lease{}, err
		})
	}
	s.pass(fmt.Sprintf("served: %s, after %.1f s", brief(fmt.Sprint(writes)), time.Since(began).Seconds()))
}

// poll calls a function until it reports success. An error counts as "not yet". The interval between tries grows, as in await.
func (s *Script) poll(wanted string, try func() (got string, done bool, err error)) {
	for began := time.Now(); ; s.wait(pause(time.Since(began)) / 2) {
		got, done, err := try()
		if done && err == nil {
			return
		}
		took := time.Since(began)
		if took < s.patience && s.ctx.Err() == nil {
			continue
		}
		if err != nil {
			got = fmt.Sprintf("%s (%v)", got, err)
		}
		s.fail("wanted %s, still got %s after %.0f s", wanted, got, took.Seconds())
	}
}

// executionOf waits for the execution that a write's event has started, and returns its ARN.
func (s *Script) executionOf(w Write) (execution string) {
	s.poll("an execution for "+w.String(), func() (string, bool, error) {
		since, err := s.executionsSince(w.At)
		for arn, in := range since {
			if w.started(in) {
				execution = arn
			}
		}
		return fmt.Sprintf("%d others", len(since)), execution != "", err
	})
	return execution
}

// executionsSince returns the inputs of the executions that began after a time.
func (s *Script) executionsSince(at time.Time) (map[string]input, error) {
	states, machine, err := passes.StateMachine(s.ctx, s.env.AWS())
	if err != nil {
		return nil, err
	}
	// The latest thousand, in no certain order.
	all, err := states.ListExecutions(s.ctx, &sfn.ListExecutionsInput{StateMachineArn: machine})
	if err != nil {
		return nil, fmt.Errorf("executions: list: %w", err)
	}
	found := map[string]input{}
	for _, e := range all.Executions {
		if e.StartDate.Before(at.Add(-10 * time.Millisecond)) {
			continue
		}
		in, known := s.inputs[*e.ExecutionArn]
		if !known {
			described, err := states.DescribeExecution(s.ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.ExecutionArn})
			if err != nil {
				return nil, fmt.Errorf("execution %s: describe: %w", *e.Name, err)
			}
			_ = json.Unmarshal([]byte(aws.ToString(described.Input)), &in) // what cannot be read is no write of the script's
			s.inputs[*e.ExecutionArn] = in
		}
		found[*e.ExecutionArn] = in
	}
	return found, nil
}

// end waits until an execution has ended, and returns its status. what names it in the message if it does not end.
func (s *Script) end(what, execution string) (status sfntypes.ExecutionStatus) {
	states := sfn.NewFromConfig(s.env.AWS())
	s.poll("the end of "+what, func() (string, bool, error) {
		described, err := states.DescribeExecution(s.ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		if err == nil {
			status = described.Status
		}
		return string(status) + " of " + execution, status != sfntypes.ExecutionStatusRunning, err
	})
	return status
}

// lease is what the table has of a rack's requests. All fields are zero if the rack has none.
type lease struct {
	requested, served int64
	owner             string
}

// leaseOf returns the key of a rack's lease.
func leaseOf(rack string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "rack#" + rack}, "sk": &types.AttributeValueMemberS{Value: "lease"},
	}
}

// table returns the name of the stack's table.
func (s *Script) table() string {
	return s.Output("echo " + table)
}

// lease reads a rack's lease.
func (s *Script) lease(rack string) (lease, error) {
	db := dynamodb.NewFromConfig(s.env.AWS())
	tables, err := db.ListTables(s.ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		return lease{}, fmt.Errorf("tables: list: %w", err)
	}
	if len(tables.TableNames) == 0 {
		return lease{}, errors.New("tables: found none")
	}
	name := tables.TableNames[0]
	if len(tables.TableNames) > 1 { // asking CloudFormation takes longer
		name = s.table()
	}
	item, err := db.GetItem(s.ctx, &dynamodb.GetItemInput{
		TableName: &name, ConsistentRead: aws.Bool(true), Key: leaseOf(rack),
	})
	if err != nil {
		return lease{}, fmt.Errorf("lease of rack %s: %w", rack, err)
	}
	number := func(name string) int64 {
		value, _ := item.Item[name].(*types.AttributeValueMemberN)
		if value == nil {
			return 0
		}
		n, _ := strconv.ParseInt(value.Value, 10, 64)
		return n
	}
	owner, _ := item.Item["owner"].(*types.AttributeValueMemberS)
	found := lease{requested: number("requested"), served: number("served")}
	if owner != nil {
		found.owner = owner.Value
	}
	return found, nil
}

// executions returns how many executions have begun since a time. So that none is still to come, it requests a dry run
// first, waits for its end, and does not count it.
func (s *Script) executions(since time.Time) int {
	return s.executionsBeside(since, func(input) bool { return false })
}

// executionsBeside does not count those that were expected.
func (s *Script) executionsBeside(since time.Time, expected func(input) bool) int {
	s.Served(s.Event(reconcileRequested, object{"rack": "demo", "dryRun": true}))
	found, err := s.executionsSince(since)
	if err != nil {
		s.fail("%v", err)
	}
	n := -1
	for _, in := range found {
		if !expected(in) {
			n++
		}
	}
	return n
}

// sandbox calls one of the sandbox's own endpoints, and prints a call that changes something.
func (s *Script) sandbox(method, path string, body, into any) {
	if method != http.MethodGet {
		line := strings.TrimSpace("$ curl -X " + method + ` "$AWS_ENDPOINT_URL/_sandbox/` + path + `"`)
		if body != nil {
			line += " -d " + argument(body)
		}
		s.Say("%s", line)
	}
	if err := s.env.Sandbox(s.ctx, method, path, body, into); err != nil {
		s.fail("%v", err)
	}
}

// inject makes calls of the functions fail, instead of what was set before, and resets the counts of calls.
func (s *Script) inject(faults ...fault.Fault) {
	s.sandbox(http.MethodPut, "faults", append([]fault.Fault{}, faults...), nil)
}

// resetCalls resets the counts of the calls that Sawhorse's functions make to AWS and to the API server.
func (s *Script) resetCalls() { s.inject() }

// counted returns these calls, and the faults that were injected.
func (s *Script) counted() (report fault.Report) {
	s.sandbox(http.MethodGet, "faults", nil, &report)
	return report
}

// reading are the beginnings of the names of calls that change nothing.
var reading = []string{"assume", "batchget", "describe", "get", "head", "list", "query", "receive", "scan", "watch"}

// reporting are the functions that write statuses, and what is no function.
var reporting = []string{"", "report", "rollout"}

// writes returns the counted calls that change something, except for records, the status, events, and the start of passes and audits.
func (s *Script) writes() (found []string) {
	own := []fault.Call{{Service: "dynamodb", Action: "PutItem"}, {Service: "dynamodb", Action: "UpdateItem"},
		{Service: "events", Action: "PutEvents"}, {Service: "states", Action: "StartExecution"}, {Service: "lambda", Action: "Invoke"}}
	for _, c := range s.counted().Calls {
		if slices.Contains(reporting, c.Function) || slices.Contains(own, fault.Call{Service: c.Service, Action: c.Action}) {
			continue
		}
		action := strings.ToLower(c.Action)
		if !slices.ContainsFunc(reading, func(begin string) bool { return strings.HasPrefix(action, begin) }) {
			found = append(found, fmt.Sprint(c.Call, " ", c.Count))
		}
	}
	return found
}
