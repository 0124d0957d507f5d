package statemachine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// machine has the parts of the language that the tests check.
type machine struct {
	QueryLanguage string
	StartAt       string
	States        map[string]state
}

type state struct {
	Type, Next, Default, Resource, Error, Cause string
	End                                         bool
	TimeoutSeconds                              int
	Arguments                                   json.RawMessage
	Output                                      any
	Assign                                      map[string]any
	Choices                                     []transition
	Catch                                       []transition
	Retry                                       []struct {
		ErrorEquals     []string
		MaxAttempts     *int
		MaxDelaySeconds int
		JitterStrategy  string
	}
}

type transition struct {
	ErrorEquals []string
	Condition   string
	Output      any
	Assign      map[string]any
	Next        string
}

func parse(t *testing.T) machine {
	t.Helper()
	var m machine
	if err := json.Unmarshal([]byte(Definition), &m); err != nil {
		t.Fatalf("reconcile.asl.json: %v", err)
	}
	if m.QueryLanguage != "JSONata" {
		t.Fatalf("QueryLanguage %q", m.QueryLanguage)
	}
	return m
}

// each calls f for every state.
func (m machine) each(f func(name string, s state)) {
	for _, name := range slices.Sorted(maps.Keys(m.States)) {
		f(name, m.States[name])
	}
}

func (s state) successors() (next []string) {
	for _, t := range slices.Concat(s.Choices, s.Catch, []transition{{Next: s.Next}, {Next: s.Default}}) {
		if t.Next != "" {
			next = append(next, t.Next)
		}
	}
	return next
}

func TestEveryStateIsReachableAndEveryNextExists(t *testing.T) {
	check := func(m machine) {
		reached, todo := map[string]bool{}, []string{m.StartAt}
		for len(todo) > 0 {
			name := todo[0]
			todo = todo[1:]
			s, known := m.States[name]
			if !known {
				t.Errorf("%q is nobody's name", name)
				continue
			}
			if !reached[name] {
				reached[name] = true
				todo = append(todo, s.successors()...)
			}
			if final := s.End || s.Type == "Succeed" || s.Type == "Fail"; final != (len(s.successors()) == 0) {
				t.Errorf("state %s: it must either end or go on", name)
			}
		}
		for name := range m.States {
			if !reached[name] {
				t.Errorf("state %s cannot be reached", name)
			}
		}
	}
	m := parse(t)
	check(m)
}

func TestEveryTaskIsPreparedForFailure(t *testing.T) {
	parse(t).each(func(name string, s state) {
		if s.Type != "Task" {
			return
		}
		if want := map[bool]int{true: 75, false: 20}[strings.HasSuffix(s.Resource, "lambda:invoke")]; s.TimeoutSeconds != want {
			t.Errorf("state %s: TimeoutSeconds %d, want %d", name, s.TimeoutSeconds, want)
		}
		if len(s.Catch) == 0 || !slices.Equal(s.Catch[len(s.Catch)-1].ErrorEquals, []string{"States.ALL"}) {
			t.Errorf("state %s: its last Catch must be States.ALL", name)
		}
		if len(s.Retry) == 0 && name != "ReportWait" {
			t.Errorf("state %s: no Retry", name)
		}
		for _, r := range s.Retry {
			if r.MaxAttempts == nil {
				t.Errorf("state %s: Retry of %v is not bounded", name, r.ErrorEquals)
			} else if *r.MaxAttempts > 0 && (r.MaxDelaySeconds == 0 || r.JitterStrategy != "FULL") {
				t.Errorf("state %s: Retry of %v without cap or jitter", name, r.ErrorEquals)
			}
		}
	})
}

// Every error name of Sawhorse in the state machine must be one of the constants. Every constant must be handled by
// name, except those that are reported like any other error.
func TestErrorNamesAgree(t *testing.T) {
	ours := regexp.MustCompile(`^[A-Za-z]+$`) // AWS's names contain a dot
	named, raised := map[string]bool{}, map[string]bool{}
	parse(t).each(func(_ string, s state) {
		for _, r := range s.Retry {
			for _, e := range r.ErrorEquals {
				named[e] = ours.MatchString(e)
			}
		}
		for _, c := range s.Catch {
			for _, e := range c.ErrorEquals {
				named[e] = ours.MatchString(e)
			}
		}
		if failure, ok := s.Assign["failure"].(map[string]any); ok && failure["Error"] != nil {
			raised[failure["Error"].(string)] = true
		}
	})
	maps.DeleteFunc(named, func(_ string, is bool) bool { return !is })
	maps.DeleteFunc(raised, func(_ string, is bool) bool { return !is })
	if got, want := slices.Sorted(maps.Keys(named)), []string{LeaseLost, Rejected, Throttled, Unavailable}; !slices.Equal(got, want) {
		t.Errorf("retried or caught by name: %v, want %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(raised)), []string{StepDeadlineExceeded}; !slices.Equal(got, want) {
		t.Errorf("raised: %v, want %v", got, want)
	}
	// StepFailed and StepDeadlineExceeded go to ReportFailure with all other errors.
	if last := parse(t).States["RunStep"].Catch; last[len(last)-1].Next != "ReportFailure" {
		t.Errorf("other errors of a step go to %s", last[len(last)-1].Next)
	}
}

// The function resync reads from a failed execution's cause where it ended, so every transition to the state Failed
// must set it.
func TestTheCauseTellsWhereAPassEnded(t *testing.T) {
	m := parse(t)
	m.each(func(name string, s state) {
		for _, c := range s.Catch {
			if c.Next == "Failed" && c.Assign["ended"] != name {
				t.Errorf("state %s: a failure that ends there says it ended in %v", name, c.Assign["ended"])
			}
		}
		for _, c := range slices.Concat(s.Choices, []transition{{Next: s.Next}, {Next: s.Default}}) {
			if c.Next == "Failed" && m.States["Intake"].Assign["ended"] != name {
				t.Errorf("state %s leads to Failed, and the cause says %v", name, m.States["Intake"].Assign["ended"])
			}
		}
	})
	for _, said := range []string{"'state': $ended", "'step': ", "'generation': $generation", "'cause': ",
		"$substring($failure.Cause, 0, 5000)"} {
		if !strings.Contains(m.States["Failed"].Cause, said) {
			t.Errorf("the cause %s has no %s", m.States["Failed"].Cause, said)
		}
	}
}

// If a function crashes or may not be called, the operator must see its name. Outside of the plan's steps, the state
// sets it.
func TestAFailureNamesItsFunction(t *testing.T) {
	parse(t).each(func(name string, s state) {
		function := regexp.MustCompile(`"FunctionName": "\{% \$functions\.([a-z]+) %\}"`).FindSubmatch(s.Arguments)
		for _, c := range s.Catch {
			if c.Next != "ReportFailure" || function == nil { // RunStep's function is the step's
				continue
			}
			if step, _ := c.Assign["step"].(map[string]any); step["name"] != string(function[1]) {
				t.Errorf("state %s: a failure is reported as one of the step %v", name, c.Assign["step"])
			}
		}
	})
}

// What a pass waits for is written to the status for people only. The pass goes on to its wait whether that works or not, with
// the input that has the step's name. It is not tried again: that would hold up the pass.
func TestReportingAWaitNeitherFailsNorHoldsUpThePass(t *testing.T) {
	s := parse(t).States["ReportWait"]
	const input = "{% $states.input %}"
	if len(s.Retry) > 0 || len(s.Catch) != 1 || s.Next != "WaitForStep" || s.Output != input || len(s.Assign) > 0 {
		t.Errorf("%+v", s)
	}
	for _, c := range s.Catch {
		if !slices.Equal(c.ErrorEquals, []string{"States.ALL"}) || c.Next != "WaitForStep" || c.Output != input || len(c.Assign) > 0 {
			t.Errorf("it catches %+v", c)
		}
	}
}

func TestNoVariableHidesJSONata(t *testing.T) {
	parse(t).each(func(state string, s state) {
		for _, assign := range slices.Concat([]transition{{Assign: s.Assign}}, s.Choices, s.Catch) {
			for name := range assign.Assign {
				if name == "now" || name == "states" {
					t.Errorf("state %s: variable %s hides what JSONata has under that name", state, name)
				}
			}
		}
	})
}

func TestRackPatternIsThatOfNames(t *testing.T) {
	patterns := regexp.MustCompile(`\$contains\((?:\$rack|\$d\.rack), /(\^.+?)/\)`).FindAllStringSubmatch(Definition, -1)
	if len(patterns) != 2 || patterns[0][1] != patterns[1][1] {
		t.Fatalf("the checks of the rack's name: %q", patterns)
	}
	rack := regexp.MustCompile(patterns[0][1])
	for _, name := range []string{"", "a", "demo", "demo-1", "demo-", "-demo", "1demo", "Demo", "de/mo", "demo\n", "a--b"} {
		if rack.MatchString(name) != ownership.ValidRack(name) {
			t.Errorf("%q: the machine says %v, ownership says %v", name, rack.MatchString(name), ownership.ValidRack(name))
		}
	}
}

func TestSubstitutionsAreTheDocumentedOnes(t *testing.T) {
	used := map[string]bool{}
	for _, match := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(Definition, -1) {
		used[match[1]] = true
	}
	want := []string{"Alias", "DebounceSeconds", "Functions", "Parameters", "Partition", "Prefix", "TableName"}
	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
		t.Errorf("substitutions %v, want %v", got, want)
	}
}

// An unknown event is only answered. It takes no lease and requests no pass.
func TestAnUnknownEventIsOnlyAnswered(t *testing.T) {
	m := parse(t)
	unknown, _ := m.States["Intake"].Assign["unknown"].(string)
	for _, part := range []string{
		// Only AWS may put events with a source that begins with aws.
		"$not($states.input.source = '" + events.SSMSource + "')", "{'detailType': $t, 'id': ", "'detail': $length($detail) <= 120000",
		"$t = '" + events.TypeReconcileRequested + "' ? ($named and ",
	} {
		if !strings.Contains(unknown, part) {
			t.Errorf("unknown lacks %s: %s", part, unknown)
		}
	}
	answered := m.States["Known"].Choices[0]
	if answered.Condition != "{% $exists($unknown.detailType) %}" || answered.Next != "Validate" || answered.Assign["dryRun"] != true {
		t.Errorf("an unknown event leads to %+v", answered)
	}
	var call struct{ Payload map[string]any }
	if err := json.Unmarshal(m.States["Validate"].Arguments, &call); err != nil || call.Payload["unknown"] != "{% $unknown %}" {
		t.Errorf("validate is told %v (%v)", call.Payload, err)
	}
}

// The state machine and the type agree on the fields of a request. The state machine acts on every request that it
// accepts, so it must reject a request with an unknown field, or with a field of another type.
func TestTheFieldsOfARequestAreThoseOfItsType(t *testing.T) {
	unknown, _ := parse(t).States["Intake"].Assign["unknown"].(string)
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[events.ReconcileRequested]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, "'"+name+"'")
		check := map[reflect.Kind]string{reflect.Bool: "$flag($d." + name + ")", reflect.String: "$text($d." + name + ")",
			reflect.Map: "$type($d." + name + ") = 'object'", reflect.Slice: "$type($d." + name + ") = 'array'"}[f.Type.Kind()]
		if f.Type == reflect.TypeFor[events.Force]() {
			check = "$words($d." + name + ")"
		}
		if name != "rack" && !strings.Contains(unknown, check) {
			t.Errorf("the type of %s is not checked by %s: %s", name, check, unknown)
		}
	}
	allowed := regexp.MustCompile(`\$not\(\$ in \[(.*?)\]\)`).FindStringSubmatch(unknown)
	if allowed == nil {
		t.Fatalf("no check of the fields: %s", unknown)
	}
	got := strings.Split(allowed[1], ", ")
	slices.Sort(got)
	slices.Sort(fields)
	if !slices.Equal(got, fields) {
		t.Errorf("allowed are %v, want %v", got, fields)
	}
	if want := "/" + events.ForcePattern + "/"; !strings.Contains(unknown, want) {
		t.Errorf("unknown lacks %s: %s", want, unknown)
	}
	if want := fmt.Sprintf("$count($v) <= %d", events.MostForce); !strings.Contains(unknown, want) {
		t.Errorf("unknown lacks %s: %s", want, unknown)
	}
	if want := fmt.Sprintf("$length($d.request) : 0) <= %d)", events.MaxRequest); !strings.Contains(unknown, want) {
		t.Errorf("unknown lacks %s: %s", want, unknown)
	}
}

// The sender of a dry run finds its own text in the answer, also if the dry run fails.
func TestARequestIsPassedOn(t *testing.T) {
	m := parse(t)
	for _, name := range []string{"Validate", "ReportFailure"} {
		var call struct{ Payload map[string]any }
		if err := json.Unmarshal(m.States[name].Arguments, &call); err != nil || call.Payload["request"] != "{% $request %}" {
			t.Errorf("%s passes on %v (%v)", name, call.Payload["request"], err)
		}
	}
}

// The write that an event reports is stored in the lease in the format that package store reads, in the parameter's attribute or in one
// of a hundred. The interpreter's cases have the names.
func TestAWriteIsToldOf(t *testing.T) {
	m := parse(t)
	wrote, _ := m.States["Intake"].Assign["wrote"].(string)
	for _, part := range []string{"$states.input.source = '" + events.SSMSource + "'", "$d.operation & ' ' & $states.input.time & ' ' & "} {
		if !strings.Contains(wrote, part) {
			t.Errorf("wrote lacks %s: %s", part, wrote)
		}
	}
	var update struct{ UpdateExpression string }
	if err := json.Unmarshal(m.States["Request"].Arguments, &update); err != nil {
		t.Fatal(err)
	}
	want := "& ', wrote' & ($wrote = '' ? '' : ($name := $substringAfter($wrote, ' params/'); $name in ${Parameters} ? '_' & $name : " +
		"$substring($string($length($wrote)), -2))) & ' = :wrote, #ttl = :ttl' %}"
	if !strings.HasSuffix(update.UpdateExpression, want) {
		t.Errorf("%s\nwant at its end %s", update.UpdateExpression, want)
	}
	if first := m.States["Todo"].Choices[2]; first.Condition != "{% $outcome = 'Outdated' %}" || first.Next != "WaitForParameters" ||
		m.States["WaitForParameters"].Next != "Validate" {
		t.Errorf("what is outdated leads to %+v, and that to %s", first, m.States["WaitForParameters"].Next)
	}
}

// Events may name any number of racks that do not exist. Their leases are deleted, also after a failed pass. Every
// other lease expires later than the records of its runs.
func TestALeaseIsNotForEver(t *testing.T) {
	m := parse(t)
	for _, name := range []string{"Todo", "Reported"} {
		erases := func(c transition) bool { return c.Condition == "{% $outcome = 'Unknown' %}" && c.Next == "Erase" }
		if !slices.ContainsFunc(m.States[name].Choices, erases) {
			t.Errorf("%s leads to %+v", name, m.States[name].Choices)
		}
	}
	if got := m.States["Erase"].Resource; !strings.HasSuffix(got, ":dynamodb:deleteItem") {
		t.Errorf("Erase calls %s", got)
	}
	// The outcome of an earlier iteration must not be used for one that failed.
	if m.States["Again"].Assign["outcome"] != "Failed" ||
		m.States["ReportFailure"].Assign["outcome"] != "{% $states.result.Payload.unknown = true ? 'Unknown' : 'Failed' %}" {
		t.Errorf("outcomes %v, %v", m.States["Again"].Assign, m.States["ReportFailure"].Assign)
	}
	expiry := regexp.MustCompile(`":ttl": \{ "N": "\{% \$string\(\$floor\(\$millis\(\) / 1000\) \+ (\d+)\) %\}" \}`)
	ttl := expiry.FindStringSubmatch(Definition)
	if ttl == nil {
		t.Fatal("no lease expires")
	}
	if seconds, err := strconv.Atoi(ttl[1]); err != nil || time.Duration(seconds)*time.Second < store.KeepRuns+7*24*time.Hour {
		t.Errorf("a lease expires after %s s, the records of runs after %s: what comes back then would count from 1 among them",
			ttl[1], store.KeepRuns)
	}
}

// The functions that the state machine calls by name must exist. Those of the steps come from the plan.
func TestFunctionsExist(t *testing.T) {
	called := []string{"audit", "validate"} // by the state Validate, which also calls dryrun: the stack makes it of audit
	for _, match := range regexp.MustCompile(`"\{% \$functions\.(\w+) %\}"`).FindAllStringSubmatch(Definition, -1) {
		called = append(called, match[1])
	}
	for _, function := range called {
		if _, err := os.Stat("../functions/" + function + "/main.go"); err != nil {
			t.Errorf("function %s: %v", function, err)
		}
	}
}

// A full pass begins with the function audit instead of validate. A pass is full if an event has requested that and no
// iteration has served the event yet. A dry run has no lease; its event has the flag. It calls neither, so that any number
// of dry runs leaves the concurrency of both to passes.
func TestAFullPassIsAudited(t *testing.T) {
	m := parse(t)
	var call struct{ FunctionName string }
	if err := json.Unmarshal(m.States["Validate"].Arguments, &call); err != nil ||
		call.FunctionName != "{% $lookup($functions, $dryRun ? 'dryrun' : $full ? 'audit' : 'validate') %}" {
		t.Errorf("Validate calls %s (%v)", call.FunctionName, err)
	}
	const unserved = "{% ($a := $states.result.Attributes; $exists($a.fullAt) and $number($a.fullAt.N) > " +
		"($exists($a.served) ? $number($a.served.N) : 0)) %}"
	if got := m.States["Renew"].Assign["full"]; got != unserved {
		t.Errorf("Renew reads %v", got)
	}
}

// Errors of Lambda's Invoke API that resolve within minutes: a function that was idle for weeks gets its network
// interfaces back, a deployment ends, EC2 or a subnet has capacity again.
func TestFunctionsThatAreNotReadyAreTriedForMinutes(t *testing.T) {
	seen := 0
	parse(t).each(func(name string, s state) {
		if !strings.HasSuffix(s.Resource, "lambda:invoke") || name == "ReportWait" {
			return
		}
		seen++
		for _, e := range []string{"ResourceNotReadyException", "ResourceConflictException", "ENINotReadyException", "EC2ThrottledException",
			"EC2UnexpectedException", "ENILimitReachedException", "SubnetIPAddressLimitReachedException", "TooManyRequestsException"} {
			tries := 0
			for _, r := range s.Retry {
				if slices.Contains(r.ErrorEquals, "Lambda."+e) {
					tries += *r.MaxAttempts * r.MaxDelaySeconds
				}
			}
			if tries < 600 { // half of that on average, because of full jitter
				t.Errorf("state %s: Lambda.%s is tried for %d s at most", name, e, tries)
			}
		}
	})
	if seen != 4 {
		t.Errorf("%d states call functions", seen)
	}
}
