package chaos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
)

func TestDifference(t *testing.T) {
	wanted := State{"role": `{"a":1,"b":2}`, "queue": `""`, "rule": `1`}
	is := State{"role": `{"a":1,"b":3}`, "rule": `1`, "orphan": `{}`}
	want := []string{`missing: queue ""`, `not as it should be: role …"b":3}, not …"b":2}`, `too much: orphan {}`}
	if got := is.difference(wanted); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := is.difference(is); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Several things may have the same name once generated ids are removed. None of them may get lost.
func TestNamesWithoutIds(t *testing.T) {
	all := &collection{state: State{}}
	for _, id := range []string{"sg-0123456789abcdef0", "sg-fedcba98765432100", "subnet-0123456789abcdef0"} {
		if err := all.add("demo", "discovery tag of %s", id); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.add("arn:aws:iam::000000000000:role/Sawhorse-AccessRoleEC309AE6-059FE54FC2F91", "access entry"); err != nil {
		t.Fatal(err)
	}
	want := State{
		"access entry": `"arn:aws:iam::000000000000:role/Sawhorse-AccessRoleEC309AE6"`, "discovery tag of sg": `"demo"`,
		"discovery tag of sg (2)": `"demo"`, "discovery tag of subnet": `"demo"`,
	}
	if !reflect.DeepEqual(all.state, want) {
		t.Errorf("%v", all.state)
	}
}

var (
	get = fault.Call{Function: "validate", Service: "ssm", Action: "Get"}
	set = fault.Call{Function: "report", Service: "ssm", Action: "Put"}
)

func recorded() *recording {
	return &recording{
		calls: map[string][]fault.Counted{
			first.name: {{Call: get, Count: 3}, {Call: set, Count: 1}}, change.name: {{Call: get, Count: 2}},
			disable.name: {{Call: set, Count: 2}}, enable.name: {{Call: get, Count: 2}},
		},
		ordinary: map[fault.Call]int{get: 2},
	}
}

// A fault that does not fire has a second chance with others of its kind, and a third one alone. Then it counts.
func TestChancesOfAFault(t *testing.T) {
	at := func(n int) fault.Fault { return fault.Fault{Nth: n, Kind: fault.Kill} }
	a, b, c := at(1), at(2), at(3)
	r := &run{Options: Options{Together: 2, Out: heartbeat.New(io.Discard, "")}, todo: map[string][]trial{}, chances: map[string]int{},
		unfired: map[string][]fault.Fault{}}
	note := func(of trial, unfired ...fault.Fault) {
		t.Helper()
		result := Result{How: Itself, Faults: of.faults, Unfired: unfired}
		if len(unfired) == len(of.faults) {
			result.How = Unfired
		}
		if err := r.note(of, result); err != nil {
			t.Fatal(err)
		}
	}
	takes := func(want ...fault.Fault) trial {
		t.Helper()
		got := r.take(enable)
		if !slices.Equal(got.faults, want) {
			t.Errorf("%v, want %v", got.faults, want)
		}
		return got
	}
	note(trial{enable.name, []fault.Fault{a, b}}, a)
	note(trial{enable.name, []fault.Fault{b, c}}, b, c)
	if left := r.left(); left != 2 {
		t.Errorf("%d left", left)
	}
	note(takes(a, b), a)
	note(takes(a), a) // alone, before what has its second chance
	note(takes(c))
	takes()
	if len(r.results) != 4 || !slices.Equal(r.results[2].Unfired, []fault.Fault{a}) {
		t.Errorf("%+v", r.results)
	}
}

// Every call gets a fault. Calls that every enabling makes are not tried again with the first enabling.
func TestEnumeration(t *testing.T) {
	points := map[string]bool{}
	for _, tr := range recorded().enumerate(rand.New(rand.NewPCG(1, 0))) {
		f := tr.faults[0]
		points[fmt.Sprint(tr.story, " ", f.Call, " ", f.Nth)] = true
		if f.Kind == "" || len(tr.faults) != 1 {
			t.Errorf("%+v", tr)
		}
	}
	want := map[string]bool{
		"first validate ssm Get 3": true, "first report ssm Put 1": true, "change validate ssm Get 1": true,
		"change validate ssm Get 2": true,
		"disable report ssm Put 1":  true, "disable report ssm Put 2": true, "enable validate ssm Get 1": true,
		"enable validate ssm Get 2": true,
	}
	if !reflect.DeepEqual(points, want) {
		t.Errorf("%v", points)
	}
}

// The state machine has no process: only the kinds of fault that need a process are left out.
func TestKindsOfTheStateMachine(t *testing.T) {
	count := fault.Call{Function: fault.StateMachine, Service: "dynamodb", Action: "UpdateItem"}
	r := &recording{calls: map[string][]fault.Counted{change.name: {{Call: count, Count: 50}}}}
	kinds := map[fault.Kind]bool{}
	for _, tr := range r.enumerate(rand.New(rand.NewPCG(1, 0))) {
		kinds[tr.faults[0].Kind] = true
	}
	want := map[fault.Kind]bool{
		fault.Lost: true, fault.Error: true, fault.Throttle: true, fault.Slow: true, fault.Timeout: true, Stop: true,
	}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("%v", kinds)
	}
}

func TestOnlyCallsOfBothRunsCount(t *testing.T) {
	got := fewer([]fault.Counted{{Call: get, Count: 5}, {Call: set, Count: 1}}, []fault.Counted{{Call: get, Count: 3}})
	if want := []fault.Counted{{Call: get, Count: 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestTogetherStaysWithinAStory(t *testing.T) {
	all := recorded().enumerate(rand.New(rand.NewPCG(1, 0)))
	n := 0
	for _, tr := range together(all, 3) {
		if n += len(tr.faults); len(tr.faults) > 3 {
			t.Errorf("%+v", tr)
		}
	}
	if n != len(all) || len(together(all, 1)) != len(all) || len(together(all, 100)) != 4 {
		t.Errorf("%d faults of %d, %d", n, len(all), len(together(all, 100)))
	}
}

// A trial gets no more faults than a pass outlasts.
func TestTogetherStaysWithinTheRetries(t *testing.T) {
	at := func(call fault.Call, kind fault.Kind) fault.Fault { return fault.Fault{Call: call, Kind: kind} }
	times := func(n int, f fault.Fault) []fault.Fault { return slices.Repeat([]fault.Fault{f}, n) }
	for what, c := range map[string]struct {
		has     []fault.Fault
		another fault.Fault
		takes   bool
	}{
		"a second death":             {times(1, at(get, fault.Kill)), at(get, fault.Timeout), true},
		"a third death":              {times(2, at(get, fault.Kill)), at(get, fault.Error), false},
		"one of another function":    {times(2, at(get, fault.Kill)), at(set, fault.Kill), true},
		"a lost answer after deaths": {times(2, at(get, fault.Kill)), at(get, fault.Lost), true},
		"a fifth lost answer":        {times(4, at(get, fault.Lost)), at(get, fault.Lost), true},
		"a sixth":                    {times(5, at(get, fault.Lost)), at(get, fault.Reset), false},
		"a second stop":              {times(1, at(get, Stop)), at(set, Stop), true},
		"a third stop":               {times(2, at(get, Stop)), at(set, Stop), false},
		"a lost answer after stops":  {times(2, at(get, Stop)), at(get, fault.Lost), true},
	} {
		if got := (trial{change.name, c.has}).takes(c.another); got != c.takes {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestPairsAreTheSameForASeed(t *testing.T) {
	draw := func(seed uint64) []trial {
		random := rand.New(rand.NewPCG(seed, 0))
		return pairs(recorded().enumerate(random), 20, random)
	}
	if a, b := draw(7), draw(7); !reflect.DeepEqual(a, b) || len(a) != 20 || len(a[0].faults) != 2 {
		t.Errorf("%v and %v", a, b)
	}
	if reflect.DeepEqual(draw(7), draw(8)) {
		t.Error("the seed chooses nothing")
	}
}

func TestAFaultThatDidNotFire(t *testing.T) {
	a, b := fault.Fault{Call: get, Nth: 1, Kind: fault.Lost}, fault.Fault{Call: set, Nth: 1, Kind: fault.Kill}
	if got := unfired([]fault.Fault{a, b}, []fault.Fired{{Fault: a}}); !reflect.DeepEqual(got, []fault.Fault{b}) {
		t.Errorf("%v", got)
	}
}
