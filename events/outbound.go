package events

import "encoding/json"

// Outbound is the detail of an event that Sawhorse sends.
type Outbound interface {
	Detail
	// Shorten makes the event's lists shorter by at least so many bytes, if possible.
	Shorten(bytes int)
}

// Pass has the fields that every event about a pass has.
type Pass struct {
	// Rack is the rack's name. It is empty in the answer to an event that has no valid one.
	Rack string `json:"rack"`
	// Generation is the number of the latest request for the rack that the pass includes.
	Generation int64 `json:"generation"`
	// Execution is the ARN of the state machine's execution.
	Execution string `json:"execution"`
	// Request is the text of that name in the request that this event answers; empty in every other event.
	Request string `json:"request,omitempty"`
	// DryRun is true for a pass that only planned.
	DryRun bool `json:"dryRun,omitempty"`
	// Steps are the names of the steps that the pass runs or, in a dry run, would run, in order.
	Steps List[string] `json:"steps"`
	// Differs has, in a dry run, the names of the steps whose section of the plan differs from the plan in force, in order:
	// what the pass would change as far as the plan tells. Each step is in it at most once.
	Differs List[string] `json:"differs,omitzero"`
	// Differences says, in a dry run, what differs in those sections, one field each.
	Differences List[Difference] `json:"differences,omitzero"`
	// Changed lists what the pass has changed, in order.
	Changed List[Change] `json:"changed"`
	// Pools lists the changes to the pools. Unchanged pools are left out.
	Pools List[PoolEffect] `json:"pools"`
	// Problems are the reasons why the parameters were rejected.
	Problems List[Problem] `json:"problems"`
	// Warnings are warnings about accepted parameters that the rack's status did not have before. In a dry run they are all.
	Warnings List[Problem] `json:"warnings"`
	// UnchangedWarnings is how many warnings more there are, which the status had before and still has.
	UnchangedWarnings int `json:"unchangedWarnings,omitempty"`
	// DurationSeconds is how long the pass has taken so far, including the debounce wait.
	DurationSeconds float64 `json:"durationSeconds"`
	// Omitted is the number of elements that did not fit into the event. The rack's record has the complete lists.
	Omitted int `json:"omitted,omitempty"`
}

// Shorten removes elements from the end of the lists until enough bytes are saved: first differences, then changes, then
// pools, then warnings, then problems except the first.
func (p *Pass) Shorten(bytes int) {
	p.Differences = Shorten(p.Differences, 0, &bytes, &p.Omitted)
	p.Changed = Shorten(p.Changed, 0, &bytes, &p.Omitted)
	p.Pools = Shorten(p.Pools, 0, &bytes, &p.Omitted)
	p.Warnings = Shorten(p.Warnings, 0, &bytes, &p.Omitted)
	p.Problems = Shorten(p.Problems, 1, &bytes, &p.Omitted)
}

// Shorten removes elements from the end of a list until enough bytes of JSON are saved, and counts them. To encode the whole message
// after each would take seconds if there are thousands.
func Shorten[S ~[]T, T any](list S, keep int, bytes, omitted *int) S {
	for *bytes > 0 && len(list) > keep {
		last, err := json.Marshal(list[len(list)-1])
		if err != nil {
			panic("events: shorten: " + err.Error()) // plain data always marshals
		}
		list = list[:len(list)-1]
		*bytes -= len(last) + len(",")
		*omitted++
	}
	return list
}

// Difference is one field of a step's section that differs from the plan in force.
type Difference struct {
	// Step is the step's name in the plan.
	Step string `json:"step"`
	// Field has the place in the section, the old and the new value, shortened, for example "replicas: 2 → 1".
	Field string `json:"field"`
}

// Change is one change that a step made.
type Change struct {
	// Step is the step's name in the plan.
	Step string `json:"step"`
	// Subject is the thing that was changed, for example "NodePool/workload".
	Subject string `json:"subject"`
	// Action is what was done, for example "created", "updated" or "deleted".
	Action string `json:"action"`
}

// Problem is a message about one parameter.
type Problem struct {
	// Parameter is the name under params/, "rack" for the rack's own name, or "detail-type" or "detail" for an event that
	// is not a valid request.
	Parameter string `json:"parameter"`
	// Path is the place inside a JSON parameter, or the field of a request's detail.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and what to write instead.
	Message string `json:"message"`
}

// ReconcileStarted is sent when a pass knows its steps.
type ReconcileStarted struct{ Pass }

// DetailType returns TypeReconcileStarted.
func (ReconcileStarted) DetailType() string { return TypeReconcileStarted }

// Reconciled is sent when the rack is as its parameters say. With DryRun it is sent when the plan is made. For a rack
// that is paused or held it is sent when the Steps have changed.
type Reconciled struct{ Pass }

// DetailType returns TypeReconciled.
func (Reconciled) DetailType() string { return TypeReconciled }

// Rejected is sent when the rack's parameters or a change of them cannot be applied, and for an event on the bus that is not a
// request. What is in force stays in force.
type Rejected struct {
	Pass
	// Change is the version of the parameter change that was refused, or given up. It is 0 if the rack's parameters were
	// rejected.
	Change int64 `json:"change,omitempty"`
	// Event is the ID of the event that is no valid request, or empty.
	Event string `json:"event,omitempty"`
}

// DetailType returns TypeRejected.
func (Rejected) DetailType() string { return TypeRejected }

// ReconcileFailed is sent when a step failed. The next event or the schedule tries again.
type ReconcileFailed struct {
	Pass
	// Step is the step that failed. It is validate or report if the failure was not in a step of the plan, and empty if it is not known
	// where.
	Step string `json:"step,omitempty"`
	// Error is the error's name in the state machine.
	Error string `json:"error"`
	// Reason says why it failed, for people.
	Reason string `json:"reason"`
	// Remedy says what to do about it.
	Remedy string `json:"remedy,omitempty"`
}

// DetailType returns TypeReconcileFailed.
func (ReconcileFailed) DetailType() string { return TypeReconcileFailed }
