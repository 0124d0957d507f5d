package statemachine

import (
	"encoding/json"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The messages between the state machine and the functions. The functions serve them, and `sawhorse watch` and the function
// resync read them in executions' histories. A test compares them with the definition.

// ValidateCall calls the function validate, or audit or dryrun in its place. The schedule's call of audit has only the rack.
type ValidateCall struct {
	Rack      string `json:"rack"`
	Execution string `json:"execution,omitzero"`
	DryRun    bool   `json:"dryRun,omitzero"`
	// Full asks for a full dry run. A pass finds in its lease what its requests ask for.
	Full bool `json:"full,omitzero"`
	// Force are the guards that a dry run is asked to override, as in events.ReconcileRequested.
	Force events.Force `json:"force,omitzero"`
	// Unknown is an event on Sawhorse's bus that is not a valid request. It is zero in all other calls.
	Unknown UnknownEvent `json:"unknown,omitzero"`
	// Request is the text by which the sender of a dry run, or of an Unknown event, recognizes the answer.
	Request string `json:"request,omitzero"`
	// Proposed has set and unset of a dry run that is asked about a change, as events.ReconcileRequested has them.
	Proposed json.RawMessage `json:"proposed,omitzero"`
}

// UnknownEvent is an event on Sawhorse's bus that is not a valid request: its detail-type or a field is misspelled, a
// value has the wrong type, or it names no rack.
type UnknownEvent struct {
	DetailType string `json:"detailType"`
	ID         string `json:"id"`
	// Detail is the event's detail as JSON. It is empty if it is larger than the state machine passes on.
	Detail string `json:"detail"`
}

// About returns the attributes of a call for the log.
func (c ValidateCall) About() []any { return []any{"rack", c.Rack, "execution", c.Execution} }

// ValidateAnswer says what the state machine does next.
type ValidateAnswer struct {
	// Generation is the number of requests that the iteration includes.
	Generation int64           `json:"generation"`
	Outcome    outcome.Outcome `json:"outcome"`
	// Report asks for a report even if there are no steps.
	Report bool        `json:"report"`
	Steps  []plan.Step `json:"steps"`
	// Versions maps the parameters that were read to their versions in Parameter Store. The state machine does not use
	// them: `sawhorse watch` reads them in the execution's history, because some iterations leave no record.
	Versions map[string]int64 `json:"versions"`
	// DryRun is the detail of the event that answers a dry run. It is there for readers of the history too: `sawhorse apply --dry-run`
	// receives no events.
	DryRun *events.Pass `json:"dryRun,omitempty"`
}

// StepInput is the input of the state RunStep. It is there for readers of the history.
type StepInput struct {
	Step       string `json:"step"`
	Generation int64  `json:"generation"`
}

// StepCall calls a step.
type StepCall struct {
	Rack       string    `json:"rack"`
	Generation int64     `json:"generation"`
	Execution  string    `json:"execution"`
	Step       plan.Step `json:"step"`
}

// About returns the attributes of a call for the log.
func (c StepCall) About() []any {
	return []any{"rack", c.Rack, "generation", c.Generation, "step", c.Step.Name, "execution", c.Execution}
}

// StepAnswer is the result of one call of a step.
type StepAnswer struct {
	// Step is the step's name, for readers of the execution's history.
	Step string `json:"step"`
	// Status is Done, Wait or Superseded.
	Status string `json:"status"`
	// WaitSeconds is the time until the next call, if Status is Wait.
	WaitSeconds int `json:"waitSeconds"`
	// Note says what the step waits for.
	Note string `json:"note"`
}

// Values of StepAnswer.Status.
const (
	Done = "done"
	Wait = "wait"
	// Superseded ends the iteration early: the step waits, and there are requests that are newer than the plan.
	Superseded = "superseded"
)

// ReportCall calls the function report.
type ReportCall struct {
	Rack       string `json:"rack"`
	Execution  string `json:"execution"`
	Generation int64  `json:"generation"`
	// Started is when the execution started, RFC 3339.
	Started time.Time `json:"started"`
	// Outcome is validate's outcome, Rejected if a step rejected the input, or Failed.
	Outcome outcome.Outcome `json:"outcome"`
	// Steps are the names of the steps that were due.
	Steps []string `json:"steps"`
	// Error and Cause are those that the state machine caught, and Step is the step that failed. They are empty if the
	// pass did not fail.
	Error string `json:"error"`
	Cause string `json:"cause"`
	Step  string `json:"step"`
	// DryRun means that a dry run failed. The report sends the event and changes no status.
	DryRun bool `json:"dryRun"`
	// Request is the text by which the sender of a dry run recognizes the answer.
	Request string `json:"request"`
	// Wait means that the pass goes on, and says what it waits for. The status then gets only that.
	Wait *StepWait `json:"wait"`
}

// StepWait is a step that has been waiting for some seconds.
type StepWait struct {
	Step string `json:"step"`
	// Since is when the step began, and Note what it waits for.
	Since time.Time `json:"since"`
	Note  string    `json:"note"`
}

// About returns the attributes of a call for the log.
func (c ReportCall) About() []any {
	return []any{"rack", c.Rack, "generation", c.Generation, "execution", c.Execution}
}

// ReportAnswer is the result of a report.
type ReportAnswer struct {
	// Unknown means that the rack does not exist and never did. The state machine then deletes the lease that the event
	// has created.
	Unknown bool `json:"unknown"`
}

// Failure is the cause of an execution that ends in the state Failed.
type Failure struct {
	// Cause is the cause that the state machine caught in the state State.
	Cause string `json:"cause"`
	State string `json:"state"`
	// Step and Generation are those of the pass at that time, as far as it had come.
	Step       string `json:"step"`
	Generation int64  `json:"generation"`
}
