package events

// RolledOut is sent when the nodes have followed a pass: no node is outdated any more, and all pools are Ready. It is
// sent at least once for a generation.
type RolledOut struct {
	// Rack is the rack's name.
	Rack string `json:"rack"`
	// Generation is that of the last pass whose changes the nodes have followed, Execution the ARN of its execution.
	Generation int64  `json:"generation"`
	Execution  string `json:"execution"`
	// DurationSeconds is the time since the execution started.
	DurationSeconds float64 `json:"durationSeconds"`
	// Pools are the rack's pools, sorted by name.
	Pools List[RolledOutPool] `json:"pools"`
	// Omitted is the number of pools that did not fit into the event.
	Omitted int `json:"omitted,omitempty"`
}

// RolledOutPool is one pool, with the number of its nodes.
type RolledOutPool struct {
	Pool  string `json:"pool"`
	Nodes int    `json:"nodes"`
}

// DetailType returns TypeRolledOut.
func (RolledOut) DetailType() string { return TypeRolledOut }

// Shorten removes pools from the end of the list until enough bytes are saved.
func (e *RolledOut) Shorten(bytes int) {
	e.Pools = Shorten(e.Pools, 0, &bytes, &e.Omitted)
}
