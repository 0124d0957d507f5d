package events

// MaxRequest is the maximum length of a request's ID in characters.
const MaxRequest = 128

// ReconcileRequested requests a pass over one rack.
type ReconcileRequested struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Reason is for people. Sawhorse does not use it.
	Reason string `json:"reason,omitempty"`
	// Request is any text of at most MaxRequest characters by which the sender recognizes the answer: the event that
	// answers a dry run, or that refuses this request, repeats it.
	Request string `json:"request,omitempty"`
	// Full compares every step with the real state, also steps whose plan has not changed.
	Full bool `json:"full,omitempty"`
	// DryRun only plans, and answers with an event.
	DryRun bool `json:"dryRun,omitempty"`
	// Set and Unset are a change of parameters, as in the parameter change. The dry run answers for the rack as it would then
	// be. Only dry runs take them.
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
	// Force has the guards to override (ForceWords).
	Force Force `json:"force,omitempty"`
}

// DetailType returns TypeReconcileRequested.
func (ReconcileRequested) DetailType() string { return TypeReconcileRequested }
