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
