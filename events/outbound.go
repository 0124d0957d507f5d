package events

import "encoding/json"

// Outbound is the detail of an event that Sawhorse sends.
type Outbound interface {
	Detail
	// Shortened is the same event with lists that are at least so many bytes shorter, if that is possible.
	Shortened(bytes int) Outbound
}

// Pass is what every event about a pass says.
type Pass struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Generation counts the requests for the rack; the pass has seen all of them up to this one.
	Generation int64 `json:"generation"`
	// Execution is the ARN of the state machine's execution.
	Execution string `json:"execution"`
	// DryRun marks a pass that only planned.
	DryRun bool `json:"dryRun,omitempty"`
	// Steps are the names of the steps that the pass is to take or, in a dry run, would take, in order.
	Steps List[string] `json:"steps"`
	// Changed is what the pass has changed, in order.
	Changed List[Change] `json:"changed"`
	// Pools are what becomes of the pools; those that stay as they are are left out.
	Pools List[PoolEffect] `json:"pools"`
	// Problems are why the parameters were rejected.
	Problems List[Problem] `json:"problems"`
	// Warnings are advice about parameters that were accepted.
	Warnings List[Problem] `json:"warnings"`
	// DurationSeconds is how long the pass has taken so far, its settle time included.
	DurationSeconds float64 `json:"durationSeconds"`
	// Omitted counts what did not fit into an event; the lists are complete in the rack's record.
	Omitted int `json:"omitted,omitempty"`
}

// without leaves out what is needed least, from the end of each list: changes, pools, warnings, then problems but one.
func (p Pass) without(bytes int) Pass {
	p.Changed = shorten(p.Changed, 0, &bytes, &p.Omitted)
	p.Pools = shorten(p.Pools, 0, &bytes, &p.Omitted)
	p.Warnings = shorten(p.Warnings, 0, &bytes, &p.Omitted)
	p.Problems = shorten(p.Problems, 1, &bytes, &p.Omitted)
	return p
}

func shorten[T any](list List[T], keep int, bytes, omitted *int) List[T] {
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

// Change is one thing that a step did.
type Change struct {
	// Step is the step's name in the plan.
	Step string `json:"step"`
	// Subject names the thing as its owner does: "NodePool/workload".
	Subject string `json:"subject"`
	// Action is what was done: "created", "updated", "deleted", …
	Action string `json:"action"`
}

// PoolEffect is what becomes of one pool, and of its nodes.
type PoolEffect struct {
	// Pool is the NodePool's name.
	Pool string `json:"pool"`
	// Change is "created", "changed" or "removed".
	Change string `json:"change"`
	// Replaces tells that Karpenter replaces nodes of the pool, or drains all of them where the pool goes.
	Replaces bool `json:"replaces,omitempty"`
	// MayReplace tells that Karpenter may replace nodes beside those: whether it does depends on facts that nobody has looked up.
	MayReplace bool `json:"mayReplace,omitempty"`
	// Reasons are Karpenter's own words for why nodes are replaced, such as NodePoolDrifted or RequirementsDrifted.
	Reasons []string `json:"reasons,omitempty"`
	// Nodes is how many nodes the pool has; absent where nobody has counted.
	Nodes *int `json:"nodes,omitempty"`
	// Replaced is how many of them Karpenter replaces for certain; absent where the NodeClaims were not looked at.
	Replaced *int `json:"replaced,omitempty"`
}

// Problem is a sentence about one parameter.
type Problem struct {
	// Parameter is the name under params/, "rack" for the rack's own name, or "detail-type" for that of an event that is no request.
	Parameter string `json:"parameter"`
	// Path is the place inside a JSON parameter.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and what to write instead.
	Message string `json:"message"`
}

// ReconcileStarted is sent once a pass knows what it has to do.
type ReconcileStarted struct{ Pass }

// DetailType is TypeReconcileStarted.
func (ReconcileStarted) DetailType() string { return TypeReconcileStarted }

// Shortened leaves out of the lists what does not fit.
func (e ReconcileStarted) Shortened(bytes int) Outbound {
	e.Pass = e.without(bytes)
	return e
}

// Reconciled is sent when the rack is as its parameters say, with DryRun when its plan has been made, and of a rack that is paused
// when Steps are others than before.
type Reconciled struct{ Pass }

// DetailType is TypeReconciled.
func (Reconciled) DetailType() string { return TypeReconciled }

// Shortened leaves out of the lists what does not fit.
func (e Reconciled) Shortened(bytes int) Outbound {
	e.Pass = e.without(bytes)
	return e
}

// Rejected is sent when the parameters cannot be applied, those of the tree or those of a change request, and when an event on the bus is no
// request that Sawhorse takes. What is in force stays in force.
type Rejected struct {
	Pass
	// Change is the id of the event that was refused, a change request or one of an unknown detail-type; empty where the tree itself was.
	Change string `json:"change,omitempty"`
}

// DetailType is TypeRejected.
func (Rejected) DetailType() string { return TypeRejected }

// Shortened leaves out of the lists what does not fit.
func (e Rejected) Shortened(bytes int) Outbound {
	e.Pass = e.without(bytes)
	return e
}

// ReconcileFailed is sent when a step failed. The next event or the schedule tries again.
type ReconcileFailed struct {
	Pass
	// Step is the step that failed; empty where it was none of the plan's.
	Step string `json:"step,omitempty"`
	// Error is the error's name, as the state machine has it.
	Error string `json:"error"`
	// Reason is why it failed, for people.
	Reason string `json:"reason"`
	// Remedy is what to do about it.
	Remedy string `json:"remedy,omitempty"`
}

// DetailType is TypeReconcileFailed.
func (ReconcileFailed) DetailType() string { return TypeReconcileFailed }

// Shortened leaves out of the lists what does not fit.
func (e ReconcileFailed) Shortened(bytes int) Outbound {
	e.Pass = e.without(bytes)
	return e
}
