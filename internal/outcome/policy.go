package outcome

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
)

// SamePolicy reports whether two policy documents (JSON) are equivalent. AWS stores a policy's statements, actions,
// resources, principals and condition values as sets: it may return them in another order, and a set of one as a plain
// string.
func SamePolicy(a, b string) bool {
	x, ok := normal(a)
	y, also := normal(b)
	return ok && also && x == y
}

// normal returns one text for all spellings of a policy. It returns false if the text is not a JSON object.
func normal(policy string) (string, bool) {
	var document map[string]any
	if json.Unmarshal([]byte(policy), &document) != nil {
		return "", false
	}
	document["Statement"] = set(document["Statement"], statement)
	return encoded(document), true
}

// statement returns a statement with its parts as sets.
func statement(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for name, part := range fields {
		switch name {
		case "Action", "NotAction":
			fields[name] = set(part, func(action any) any { return strings.ToLower(encoded(action)) }) // actions are case-insensitive
		case "Resource", "NotResource":
			fields[name] = set(part, same)
		case "Principal", "NotPrincipal":
			if part == "*" {
				part = map[string]any{"AWS": "*"} // IAM treats both alike
			}
			fields[name] = eachSet(part)
		case "Condition":
			if operators, ok := part.(map[string]any); ok {
				for operator, keys := range operators {
					operators[operator] = eachSet(keys)
				}
			}
		}
	}
	return fields
}

// eachSet returns an object with each of its values as a set.
func eachSet(value any) any {
	if fields, ok := value.(map[string]any); ok {
		for name, values := range fields {
			fields[name] = set(values, same)
		}
	}
	return value
}

// set returns a list, or a single value, as a sorted list of strings without duplicates.
func set(value any, each func(any) any) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var all []string
	for _, one := range list {
		all = append(all, encoded(each(one)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func same(value any) any { return value }

// encoded returns a decoded value as JSON with sorted keys.
func encoded(value any) string { return string(canonical.JSON(value)) }
