package events

// ReconcileRequested asks for a pass over one rack, now.
type ReconcileRequested struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Reason is for people; nothing depends on it.
	Reason string `json:"reason,omitempty"`
	// Full compares every step with reality, also those whose plan has not changed.
	Full bool `json:"full,omitempty"`
	// DryRun plans and answers with an event, and does nothing else.
	DryRun bool `json:"dryRun,omitempty"`
	// Force overrides the guards against removing Karpenter while its pods fit nowhere else.
	Force bool `json:"force,omitempty"`
}

// DetailType is TypeReconcileRequested.
func (ReconcileRequested) DetailType() string { return TypeReconcileRequested }

// ParametersChangeRequested asks for several parameters as one change: all of them are written, or none. The same event
// twice is one change.
type ParametersChangeRequested struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Set are the new values by name. The empty text and the word unset mean what Unset does.
	Set map[string]string `json:"set,omitempty"`
	// Unset are the names of parameters that are to have their defaults. None may be in Set too.
	Unset []string `json:"unset,omitempty"`
}

// DetailType is TypeParametersChangeRequested.
func (ParametersChangeRequested) DetailType() string { return TypeParametersChangeRequested }
