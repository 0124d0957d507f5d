package store

import (
	"encoding/json"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// OfInput returns the rack in an execution's input, which is one of the events that the state machine accepts. It
// returns "" if the input has no valid rack.
func OfInput(input string, paths ownership.Paths) string {
	var in struct {
		Detail struct {
			Rack string `json:"rack"`
			Name string `json:"name"`
		} `json:"detail"`
	}
	if json.Unmarshal([]byte(input), &in) != nil {
		return ""
	}
	name := in.Detail.Rack
	if name == "" {
		name, _, _ = strings.Cut(strings.TrimPrefix(in.Detail.Name, paths.Racks()+"/"), "/")
	}
	if !ownership.ValidRack(name) {
		return ""
	}
	return name
}
