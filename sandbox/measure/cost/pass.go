package cost

import (
	"regexp"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// Pass is what one kind of pass took.
type Pass struct {
	Name string
	// Executions is the number of executions, and Transitions the number of states that they entered.
	Executions, Transitions int
	Calls                   []functionlog.Call
	// Reads and Writes are those of the table, also by the state machine itself.
	Reads, Writes int
	// Events are the custom events that were put.
	Events int
	// Services has the other calls, by service.
	Services map[string]int
	// Changes are the calls among these that change something.
	Changes int
	// Logged is the size of the logs in bytes.
	Logged int
}

// others reports whether a function's calls belong to no pass: a schedule calls it for all racks, and its tick can fall
// into any measurement. The one of a look counts only what the look takes.
func (p *Pass) others(function string) bool {
	if p.Name == lookThat {
		return function != "rollout"
	}
	return function == "resync" || function == "rollout"
}

// reading has the beginnings of AWS's operations and Kubernetes' verbs that only read.
var reading = regexp.MustCompile(`^(Describe|Get|List|Query|Scan|Assume|get |list |watch )`)

// add adds calls that the gateway has counted.
func (p *Pass) add(c fault.Counted) {
	read := reading.MatchString(c.Action)
	switch {
	case c.Function == "" || p.others(c.Function): // "" is the user, who writes the parameters
	case c.Service == "dynamodb" && read:
		p.Reads += c.Count
	case c.Service == "dynamodb":
		p.Writes += c.Count
	default:
		if c.Service == "events" && c.Action == "PutEvents" {
			p.Events += c.Count
		}
		if p.Services == nil {
			p.Services = map[string]int{}
		}
		p.Services[c.Service] += c.Count
		if !read {
			p.Changes += c.Count
		}
	}
}

// log adds a line of a function's log.
func (p *Pass) log(line functionlog.Line) {
	if p.others(line.Function) {
		return
	}
	p.Logged += len(line.Text)
	if call, is := line.Call(); is {
		p.Calls = append(p.Calls, call)
	}
}

// seconds returns the time of all calls together.
func (p *Pass) seconds() (sum float64) {
	for _, c := range p.Calls {
		sum += c.Took.Seconds()
	}
	return sum
}

// counts returns what AWS charges for, with the times as measured.
func (p *Pass) counts() Counts {
	return p.priced(func(functionlog.Call) time.Duration { return 0 })
}

// cold returns the same with a cold start in every call.
func (p *Pass) cold() Counts {
	return p.priced(func(c functionlog.Call) time.Duration {
		if c.Function == "audit" {
			return coldAudit
		}
		return coldCall
	})
}

// warm returns the same with the time that a call takes on AWS in a function that is called every few minutes.
func (p *Pass) warm() Counts {
	return p.priced(func(functionlog.Call) time.Duration { return warmLook })
}

func (p *Pass) priced(atLeast func(functionlog.Call) time.Duration) Counts {
	c := Counts{
		Transition: float64(p.Transitions), Request: float64(len(p.Calls)), Write: float64(p.Writes), Read: float64(p.Reads),
		Event: float64(p.Events), LogGB: float64(p.Logged) / 1e9,
	}
	for _, call := range p.Calls {
		c[GBSecond] += max(call.Took, atLeast(call)).Seconds() * call.Memory / 1024
	}
	return c
}
