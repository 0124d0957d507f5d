package steps

import (
	"encoding/json"
	"slices"
	"strings"
)

// SamePolicy tells whether two policy documents (JSON) say the same. AWS keeps a policy's statements, actions, resources,
// principals and condition values as sets: it may give them back in another order, and a set of one as a single text.
func SamePolicy(a, b string) bool {
	x, ok := canonical(a)
	y, also := canonical(b)
	return ok && also && x == y
}

// canonical is one text for all ways to write a policy; false where it is no JSON object.
func canonical(policy string) (string, bool) {
	var document map[string]any
	if json.Unmarshal([]byte(policy), &document) != nil {
		return "", false
	}
	document["Statement"] = set(document["Statement"], statement)
	return encoded(document), true
}

// statement is a statement with its parts as sets.
func statement(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for name, part := range fields {
		switch name {
		case "Action", "NotAction":
			fields[name] = set(part, func(action any) any { return strings.ToLower(encoded(action)) }) // actions know no capitals
		case "Resource", "NotResource":
			fields[name] = set(part, same)
		case "Principal", "NotPrincipal":
			if part == "*" {
				part = map[string]any{"AWS": "*"} // which IAM takes for the same
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

// eachSet is an object with each of its values as a set.
func eachSet(value any) any {
	if fields, ok := value.(map[string]any); ok {
		for name, values := range fields {
			fields[name] = set(values, same)
		}
	}
	return value
}

// set is a list, or a value that stands alone, as a sorted list of texts without repetition.
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

// encoded is a decoded value as JSON again, with its keys in order.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("policy: encode: " + err.Error()) // what JSON was read from can be written
	}
	return string(text)
}
