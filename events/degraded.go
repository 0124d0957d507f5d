package events

// Degraded is sent when Karpenter stops doing for a rack what it is for: a pool is not Ready, nodes do not register, or pods
// have waited ten minutes for a node that EC2 or a pool's limit refuses. It is sent at least once.
type Degraded struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Generation is that of the last pass whose changes the nodes follow, Execution the ARN of its execution.
	Generation int64  `json:"generation"`
	Execution  string `json:"execution"`
	// Pools are the degraded pools, sorted by name.
	Pools List[DegradedPool] `json:"pools"`
	// Waiting says what pods wait for.
	Waiting List[Wait] `json:"waiting"`
	// Omitted is the number of pools that did not fit into the event.
	Omitted int `json:"omitted,omitempty"`
}

// DegradedPool is a pool that is not Ready or whose nodes do not register, with Karpenter's reason.
type DegradedPool struct {
	Pool   string `json:"pool"`
	Reason string `json:"reason"`
}

// DetailType returns TypeDegraded.
func (Degraded) DetailType() string { return TypeDegraded }

// Shorten removes pools from the end of the list until enough bytes are saved.
func (e *Degraded) Shorten(bytes int) {
	e.Pools = Shorten(e.Pools, 0, &bytes, &e.Omitted)
}

// Recovered is sent when a rack is not degraded any more, or has no Karpenter any more. It is sent at least once for each Degraded.
type Recovered struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Generation is that of the last pass whose changes the nodes follow, or of the one that turned Karpenter off, Execution the ARN
	// of its execution.
	Generation int64  `json:"generation"`
	Execution  string `json:"execution"`
	// DurationSeconds is the time since the node check found the rack degraded.
	DurationSeconds float64 `json:"durationSeconds"`
}

// DetailType returns TypeRecovered.
func (Recovered) DetailType() string { return TypeRecovered }

// Shorten does nothing: the event is short.
func (*Recovered) Shorten(int) {}
