package rack

import (
	"encoding/json"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// OfInput reads the rack from an execution's input, which is an event of one of the shapes that the state machine takes; empty where it
// names none.
func OfInput(input string, paths names.Paths) string {
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
	if !names.ValidRack(name) {
		return ""
	}
	return name
}
