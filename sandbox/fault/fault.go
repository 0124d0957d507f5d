// Package fault makes chosen calls go wrong: it counts the calls that the Lambda functions make, of AWS and of the API server,
// and has what was ordered happen at the n-th one.
package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Call is a call by its kind.
type Call struct {
	Function string `json:"function"`
	Service  string `json:"service"` // as AWS signs it, "ssm"; or "kubernetes"
	Action   string `json:"action"`  // "PutParameter"; or verb and resource, "apply nodepools.karpenter.sh"
}

func (c Call) String() string { return c.Function + " " + c.Service + " " + c.Action }

// Kind is what goes wrong.
type Kind string

// The kinds. Further ones are Hooks of the Injector.
const (
	Error    Kind = "error"    // the server fails
	Throttle Kind = "throttle" // the server asks for patience
	Timeout  Kind = "timeout"  // no answer comes, and nothing is done
	Slow     Kind = "slow"     // the answer takes Delay
	Reset    Kind = "reset"    // the connection breaks before anything is done
	Lost     Kind = "lost"     // it is done, and the connection breaks before the answer
	Kill     Kind = "kill"     // the function's process dies
)

// Delay is how long a slow answer takes.
const Delay = 3 * time.Second

// Fault is one thing that goes wrong, at the Nth to the (Nth+Times-1)th call of its kind since it was armed.
type Fault struct {
	Call
	Nth   int  `json:"nth"`
	Times int  `json:"times,omitempty"` // 0 is 1
	Kind  Kind `json:"kind"`
}

func (f Fault) String() string {
	return fmt.Sprintf("%s %d×%s at the %d. call", f.Call, max(1, f.Times), f.Kind, f.Nth)
}

func (f Fault) hits(n int) bool { return n >= f.Nth && n < f.Nth+max(1, f.Times) }

// Counted is how often a call was made.
type Counted struct {
	Call
	Count int `json:"count"`
}

// Fired is a fault that has happened.
type Fired struct {
	Fault
	At time.Time `json:"at"`
}

// Injector counts calls and holds the faults.
type Injector struct {
	// Hooks are kinds that the sandbox has: what they do, before the call goes on.
	Hooks map[Kind]func(context.Context) error

	mu    sync.Mutex
	armed []Fault
	count map[Call]int
	fired []Fired
}

// Arm replaces the faults and begins to count anew.
func (i *Injector) Arm(faults []Fault) error {
	for _, f := range faults {
		if !i.knows(f.Kind) || f.Nth < 1 || f.Times < 0 {
			return fmt.Errorf("fault %s: the kind must be a known one, nth at least 1, times at least 0", f)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.armed, i.count, i.fired = faults, map[Call]int{}, nil
	return nil
}

func (i *Injector) knows(kind Kind) bool {
	if i.Hooks[kind] != nil {
		return true
	}
	return slices.Contains([]Kind{Error, Throttle, Timeout, Slow, Reset, Lost, Kill}, kind)
}

// take counts a call and gives the kind of fault that it meets, or none.
func (i *Injector) take(call Call) Kind {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count == nil {
		i.count = map[Call]int{}
	}
	i.count[call]++
	for _, f := range i.armed {
		if f.Call == call && f.hits(i.count[call]) {
			i.fired = append(i.fired, Fired{f, time.Now()})
			return f.Kind
		}
	}
	return ""
}

// Report is what has been counted and what has happened since the last Arm.
type Report struct {
	Calls []Counted `json:"calls"`
	Fired []Fired   `json:"fired"`
}

// Report gives the calls in order of their names and the faults in that of time.
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
