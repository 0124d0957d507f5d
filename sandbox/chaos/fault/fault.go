// Package fault injects faults into chosen calls. It counts the calls that the Lambda functions and the state machine
// make to AWS and to the API server, and injects the armed fault at the n-th call.
package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Call identifies a kind of call.
type Call struct {
	Function string `json:"function"`
	Service  string `json:"service"` // the name in AWS's signature, "ssm"; or "kubernetes"
	Action   string `json:"action"`  // "PutParameter"; or verb and resource, "apply nodepools.karpenter.sh"
}

// StateMachine takes the place of the function's name in calls that the state machine itself makes.
const StateMachine = "state-machine"

// Karpenter takes the place of the function's name in calls of Karpenter. They are not counted, and only a fault that names
// Karpenter hits them.
const Karpenter = "karpenter"

func (c Call) counted() bool { return c.Function != Karpenter }

func (c Call) String() string {
	return cmp.Or(c.Function, "any") + " " + cmp.Or(c.Service, "any") + " " + cmp.Or(c.Action, "any")
}

// covers reports whether another call is of this kind. An empty field of c matches any value.
func (c Call) covers(other Call) bool {
	return (c.Function == "" && other.counted() || c.Function == other.Function) && (c.Service == "" || c.Service == other.Service) &&
		(c.Action == "" || c.Action == other.Action)
}

// Kind is the kind of a fault.
type Kind string

// The kinds. There are also the Hooks of the Injector.
const (
	Error    Kind = "error"    // the server answers with a failure
	Throttle Kind = "throttle" // the server answers with a throttling error
	Timeout  Kind = "timeout"  // no answer comes, and the call has no effect
	Slow     Kind = "slow"     // the answer takes Delay
	Reset    Kind = "reset"    // the connection breaks before the call has an effect
	Lost     Kind = "lost"     // the call has its effect, and the connection breaks before the answer
	Kill     Kind = "kill"     // the function's process is killed
	Sleep    Kind = "sleep"    // the function's process stands still, until Lambda ends it at its timeout
	Refuse   Kind = "refuse"   // the server answers with the error Code
	Fail     Kind = "fail"     // EKS accepts an update or a node group, which then fails with the error Code
)

// Delay is how long a slow answer takes.
const Delay = 3 * time.Second

// Fault is one fault. It hits the Nth to the (Nth+Times-1)th call of its kind since it was armed. With Seconds, it hits
// the Nth call and all calls that follow within so many seconds.
type Fault struct {
	Call
	Nth     int  `json:"nth"`
	Times   int  `json:"times,omitempty"` // 0 means 1
	Seconds int  `json:"seconds,omitempty"`
	Kind    Kind `json:"kind"`
	// Code is the error code of Refuse and Fail: "AccessDenied", "InsufficientInstanceCapacity".
	Code string `json:"code,omitempty"`
}

func (f Fault) String() string {
	if f.Seconds > 0 {
		return fmt.Sprintf("%s %s for %d s from the %d. call", f.Call, f.Kind, f.Seconds, f.Nth)
	}
	return fmt.Sprintf("%s %d×%s at the %d. call", f.Call, max(1, f.Times), f.Kind, f.Nth)
}

// refusal returns why a fault cannot be armed, "" if it can.
func (f Fault) refusal() string {
	switch {
	case f.Nth < 1 || f.Times < 0 || f.Seconds < 0:
		return "nth must be at least 1, times and seconds at least 0"
	case (f.Kind == Kill || f.Kind == Sleep) && (f.Function == "" || f.Function == StateMachine || !f.counted()):
		return "only the process of a function that is named can be killed or stopped"
	case (f.Kind == Refuse || f.Kind == Fail) != (f.Code != ""):
		return "refuse and fail have a code, and no other kind has"
	case f.Kind == Fail && f.Service != "eks":
		return "only an update or a node group of eks fails"
	}
	return ""
}

// armed is a fault that has been armed.
type armed struct {
	Fault
	seen  int       // calls of its kind
	until time.Time // end of a fault with Seconds
}

// meets counts a call of the fault's kind and reports whether the fault hits it.
func (a *armed) meets(now time.Time) bool {
	a.seen++
	if a.Seconds == 0 {
		return a.seen >= a.Nth && a.seen < a.Nth+max(1, a.Times)
	}
	if a.seen == a.Nth {
		a.until = now.Add(time.Duration(a.Seconds) * time.Second)
	}
	return now.Before(a.until)
}

// Counted is the number of times a call was made.
type Counted struct {
	Call
	Count int `json:"count"`
}

// Fired is a fault that has happened.
type Fired struct {
	Fault
	At time.Time `json:"at"`
}

// Injector counts calls and injects the armed faults.
type Injector struct {
	// Hooks implements further kinds: each function runs before the call continues.
	Hooks map[Kind]func(context.Context) error

	mu    sync.Mutex
	armed []*armed
	count map[Call]int
	fired []Fired
}

// Arm replaces the faults and resets the counts. It returns an error if a fault's kind is unknown or
// its numbers are invalid.
func (i *Injector) Arm(faults []Fault) error {
	var all []*armed
	for _, f := range faults {
		if !i.knows(f.Kind) {
			return fmt.Errorf("fault %s: there is no such kind", f)
		}
		if refusal := f.refusal(); refusal != "" {
			return fmt.Errorf("fault %s: %s", f, refusal)
		}
		all = append(all, &armed{Fault: f})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.armed, i.count, i.fired = all, map[Call]int{}, nil
	return nil
}

func (i *Injector) knows(kind Kind) bool {
	if i.Hooks[kind] != nil {
		return true
	}
	return slices.Contains([]Kind{Error, Throttle, Timeout, Slow, Reset, Lost, Kill, Sleep, Refuse, Fail}, kind)
}

// Take counts a call and returns the fault that hits it, or one without a Kind.
func (i *Injector) Take(call Call) Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count == nil {
		i.count = map[Call]int{}
	}
	if call.counted() {
		i.count[call]++
	}
	now, hit := time.Now(), Fault{}
	for _, a := range i.armed { // every fault counts the call, also if another one hits it
		if a.covers(call) && a.meets(now) && hit.Kind == "" {
			i.fired = append(i.fired, Fired{a.Fault, now})
			hit = a.Fault
		}
	}
	return hit
}

// Report has the calls that were counted and the faults that happened since the last Arm.
type Report struct {
	Calls []Counted `json:"calls"`
	Fired []Fired   `json:"fired"`
}

// Report returns the calls sorted by name and the faults sorted by time.
func (i *Injector) Report() Report {
	i.mu.Lock()
	defer i.mu.Unlock()
	report := Report{Calls: []Counted{}, Fired: slices.Clone(i.fired)}
	for call, n := range i.count {
		report.Calls = append(report.Calls, Counted{call, n})
	}
	slices.SortFunc(report.Calls, func(a, b Counted) int { return cmp.Compare(a.String(), b.String()) })
	return report
}
