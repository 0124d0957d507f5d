package params

// Problem is why something was refused (or, as a warning, what to know about it), for the user: a sentence that names the
// parameter and its value, what is allowed and what to write instead.
type Problem struct {
	// Parameter is the name under params/, or "rack" for the rack's own name.
	Parameter string `json:"parameter"`
	// Path is where inside a JSON parameter: nodePool.limits.cpu.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}
