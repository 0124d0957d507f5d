package awsfake

import (
	"encoding/json"
	"slices"
)

// reordered returns a policy as AWS may return it: statements, actions, resources and similar lists are sets, so their
// order may differ from ours.
func reordered(policy string) string {
	var document any
	if json.Unmarshal([]byte(policy), &document) != nil {
		return policy
	}
	text, _ := json.Marshal(reversed(document))
	return string(text)
}

func reversed(value any) any {
	switch v := value.(type) {
	case []any:
		slices.Reverse(v)
		for i := range v {
			v[i] = reversed(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = reversed(v[key])
		}
	}
	return value
}
