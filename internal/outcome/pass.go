package outcome

// Outcome is the result of validate, and what the report of a pass is called with.
type Outcome string

// The outcomes.
const (
	// PassUnchanged means that there is nothing to do.
	PassUnchanged Outcome = "Unchanged"
	// PassPlanned means that a plan is in force and that steps are due.
	PassPlanned Outcome = "Planned"
	// PassRejected means that there are problems. If there are steps, they repair towards the last good plan. The state
	// machine also reports it if a step rejected the input.
	PassRejected Outcome = "Rejected"
	// PassPaused means paused=true. Only accepted changes are written.
	PassPaused Outcome = "Paused"
	// PassDryRun means that a dry run was answered.
	PassDryRun Outcome = "DryRun"
	// PassOutdated means that the tree was read from a replica that lacks a write for which this iteration runs. The state
	// machine calls validate again.
	PassOutdated Outcome = "Outdated"
	// PassForgotten means that the tree is deleted and Karpenter is off. The rack's records are deleted.
	PassForgotten Outcome = "Forgotten"
	// PassUnknown means that the rack does not exist and never did. The state machine deletes the lease that the event has
	// created.
	PassUnknown Outcome = "Unknown"
	// PassFailed means that the pass failed. Validate does not return it: the state machine reports it.
	PassFailed Outcome = "Failed"
)

// State is the state of a rack: the result of its last pass.
type State string

// States of a rack.
const (
	// StateReconciled means that the rack is as its parameters say.
	StateReconciled State = "Reconciled"
	// StateRejected means that the parameters cannot be applied. What was in force stays in force.
	StateRejected State = "Rejected"
	// StateFailed means that a step failed. The next event or the schedule tries again.
	StateFailed State = "Failed"
	// StatePaused means paused=true. The status has the steps that a pass would run.
	StatePaused State = "Paused"
	// StateDegraded means that the last pass was StateReconciled, and that since then a pool is not Ready, its nodes do not
	// register, or pods wait for nodes that cannot be launched. No pass has this result: the status parameter has it from
	// store.Status.With.
	StateDegraded State = "Degraded"
)
