package plan

import (
	"encoding/json"
	"fmt"
)

// Read decodes a stored plan. The result is nil for a plan of another format, in whose place the next pass makes one.
func Read(text []byte) (*Plan, error) {
	var stored struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	if stored.Format < Format || stored.Format > readable {
		return nil, nil
	}
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("plan: decode format %d: %w", stored.Format, err)
	}
	return p, nil
}
