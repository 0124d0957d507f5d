package store

// Migrating says how far migrate_node_groups has come.
type Migrating struct {
	// Groups is how many node groups have nodes that are to be emptied, Nodes how many such nodes there are.
	Groups int `json:"groups"`
	Nodes  int `json:"nodes"`
	// Held says which pod holds the node that is being emptied, and why, or which brake.
	Held string `json:"held,omitempty"`
	// Since is the time (RFC 3339) since which it is held so.
	Since string `json:"since,omitempty"`
}
