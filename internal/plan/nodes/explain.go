package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Explanation says of each field of a manifest's spec where its value comes from.
type Explanation struct {
	Kind   string       `json:"kind"`
	Name   string       `json:"name"`
	Fields []FieldLayer `json:"fields"`
}

// FieldLayer is a field, and what set it: a parameter with the path in its JSON, or BuiltIn.
type FieldLayer struct {
	Path string `json:"path"`
	From string `json:"from"`
}

// BuiltIn is where values come from that no parameter sets.
const BuiltIn = "built-in default"

// Explain returns the explanations of the manifests to apply, in their order, or none if Karpenter is off.
func (c Compiled) Explain() []Explanation {
	made := []Explanation{}
	for _, d := range c.drafts {
		if c.config.Enabled && !d.idle {
			made = append(made, Explanation{d.kind, d.name, d.explain(d.spec(), []string{"spec"})})
		}
	}
	return made
}

// explain returns the fields of a value at a path. An empty object or list is a field itself.
func (d *draft) explain(value any, path []string) (all []FieldLayer) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, d.explain(v[key], append(slices.Clone(path), key))...)
		}
	case []any:
		for i, inside := range v {
			all = append(all, d.explain(inside, append(slices.Clone(path), strconv.Itoa(i)))...)
		}
	}
	if len(all) > 0 {
		return all
	}
	from, known := d.origin(path)
	return []FieldLayer{{extend("", path), from.layer(known)}}
}

// layer describes an origin.
func (o origin) layer(known bool) string {
	switch {
	case !known || o.builtin:
		return BuiltIn
	case o.path == "":
		return o.parameter
	default:
		return o.parameter + " " + o.path
	}
}

// String is the explanation as text, a line for each field.
func (e Explanation) String() (text string) {
	for _, f := range e.Fields {
		text += fmt.Sprintf("%s/%s %s: %s\n", e.Kind, e.Name, f.Path, f.From)
	}
	return text
}
