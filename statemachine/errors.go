package statemachine

// Names of the errors that functions return to the state machine. The Lambda runtime names an error after its outermost
// Go type, so the functions return types with these names.
const (
	// Throttled means that a server rejected a call because of its rate. The state machine repeats the call for minutes.
	Throttled = "Throttled"
	// Unavailable means that a server did not answer or reported an error of its own. The state machine repeats the
	// call a few times.
	Unavailable = "Unavailable"
	// LeaseLost means that another pass has taken over the rack. The pass ends.
	LeaseLost = "LeaseLost"
	// Rejected means that a step found, before it changed anything, that the parameters cannot be applied.
	Rejected = "Rejected"
	// StepFailed means any other failure. The state machine reports it like every error that it does not know.
	StepFailed = "StepFailed"
)

// Names of the errors that the state machine raises.
const (
	// StepDeadlineExceeded means that a step was not done within its deadline.
	StepDeadlineExceeded = "StepDeadlineExceeded"
)
