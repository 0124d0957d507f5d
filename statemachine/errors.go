package statemachine

// Names of the errors between the functions and the state machine. A function's error is named after its outermost Go
// type, so the types that the functions return bear these names.
const (
	// Throttled asks for the same call again later, for minutes: somebody asked for patience, and slowing down is all it takes.
	Throttled = "Throttled"
	// Unavailable asks for the same call again, a few times: somebody did not answer, or failed himself.
	Unavailable = "Unavailable"
	// LeaseLost ends the pass: another one has taken the rack over.
	LeaseLost = "LeaseLost"
	// Rejected is a step's finding, before it changed anything, that the parameters cannot be applied.
	Rejected = "Rejected"
	// StepFailed is every other failure; the state machine reports it as it does any error that it has no name for.
	StepFailed = "StepFailed"
)

// Names of the errors that the state machine raises itself.
const (
	// StepDeadlineExceeded is a step that waited beyond its deadline.
	StepDeadlineExceeded = "StepDeadlineExceeded"
)
