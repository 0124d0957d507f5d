package plan

// KarpenterRecord is what is recorded about the Karpenter of a rack.
type KarpenterRecord struct {
	// Version is the version whose controller was Ready last, the version in force. It is empty if Karpenter is off.
	Version string `json:"version,omitempty"`
	// Planned is the version of the last accepted plan with Karpenter. Without it, a rack that has Karpenter on and no
	// Version is one of a Sawhorse that did not record versions.
	Planned string `json:"planned,omitempty"`
	// Before is the version that was in force before Version.
	Before string `json:"before,omitempty"`
	// CRDs is the newest version whose CRDs were installed. CRDs never go back, because stored objects may need them.
	CRDs string `json:"crds,omitempty"`
	// RolledBack is an upgrade that failed, until karpenter_version is written again. It is nil if there is none.
	RolledBack *RolledBack `json:"rolledBack,omitempty"`
}

// RolledBack is a change of Karpenter's version that failed, after which the version in force came back.
type RolledBack struct {
	// Version is the version that failed.
	Version string `json:"version"`
	// Reason says why, in the words of its pods or NodePools.
	Reason string `json:"reason"`
	// Write is the version of the parameter karpenter_version, in Parameter Store, that asked for it.
	Write int64 `json:"write"`
}
