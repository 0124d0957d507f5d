package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Section is what one step applies.
type Section struct {
	// Step is the step's name.
	Step string `json:"step"`
	// Section is plain data that marshals to a JSON object.
	Section any `json:"section"`
}

// Sections returns what each step applies, in the order of the steps.
func (p *Plan) Sections() []Section {
	var all []Section
	for _, s := range p.Steps {
		if r, ok := rowOf(s.Name); ok {
			all = append(all, Section{s.Name, r.section(p)})
		}
	}
	return all
}

// Difference says how the section of a step differs from that of an earlier plan.
type Difference struct {
	Step string
	// Lines describe what differs, one line for each JSON path, with the values shortened.
	Lines []string
}

// Differences compares the sections of a plan's steps with those of an earlier plan. Sections that are equal are left
// out. Without an earlier plan (nil) everything is new.
func Differences(earlier, later *Plan) []Difference {
	if earlier == nil {
		earlier = &Plan{}
	}
	var all []Difference
	for _, s := range later.Sections() {
		r, _ := rowOf(s.Step)
		var lines comparison
		if lines.compare("", decoded(r.section(earlier)), decoded(s.Section)); len(lines) > 0 {
			all = append(all, Difference{s.Step, lines})
		}
	}
	return all
}

// decoded returns a section as it is after storing and reading it.
func decoded(section any) (value any) {
	if err := json.Unmarshal(canonical.JSON(section), &value); err != nil {
		panic("plan: decode: " + err.Error()) // it was encoded a moment ago
	}
	return value
}

type comparison []string

// add adds a line. A dry run sends it on the bus, and a node's script may have secrets, so that is not quoted.
func (c *comparison) add(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasSuffix(path, ".userData") {
		text = "changed"
	}
	*c = append(*c, path+": "+text)
}

// compare adds lines for what differs between two decoded JSON values.
func (c *comparison) compare(path string, old, new any) {
	if reflect.DeepEqual(old, new) {
		return
	}
	was, is := fields(old), fields(new)
	if was != nil && is != nil {
		c.fields(was, is, func(key string) string { return params.Join(path, key) })
		return
	}
	before, wasList := old.([]any)
	after, isList := new.([]any)
	if !wasList || !isList {
		c.add(path, "%s → %s", short(old), short(new))
		return
	}
	was, is = labelled(before), labelled(after)
	switch {
	case was != nil && is != nil:
		c.fields(was, is, func(label string) string { return path + "[" + label + "]" })
	case slices.ContainsFunc(slices.Concat(before, after), func(each any) bool { return !scalar(each) }):
		c.add(path, "%s → %s", short(old), short(new))
	default:
		c.scalars(path, before, after)
	}
}

func fields(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

// fields compares two objects. place returns the path of a key.
func (c *comparison) fields(old, new map[string]any, place func(key string) string) {
	both := maps.Clone(old)
	maps.Copy(both, new)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, had := old[key]
		is, has := new[key]
		switch {
		case !had:
			c.add(place(key), "added %s", short(is))
		case !has:
			c.add(place(key), "removed %s", short(was))
		default:
			c.compare(place(key), was, is)
		}
	}
}

// labelled returns the elements of a list of objects by a label that people know them by. It returns nil if an element
// has none, or two have the same.
func labelled(list []any) map[string]any {
	all := map[string]any{}
	for _, each := range list {
		label := label(fields(each))
		if _, twice := all[label]; twice || label == "" {
			return nil
		}
		all[label] = each
	}
	return all
}

// label returns the name of a Kubernetes object, a policy's statement, a volume or the like.
func label(object map[string]any) string {
	text := func(from map[string]any, key string) string {
		value, _ := from[key].(string)
		return value
	}
	if name := text(fields(object["metadata"]), "name"); name != "" {
		return text(object, "kind") + "/" + name
	}
	return cmp.Or(text(object, "Sid"), text(object, "name"), text(object, "key"))
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// scalars compares two lists of texts and numbers. Their order is only reported if nothing else differs.
func (c *comparison) scalars(path string, old, new []any) {
	lines := len(*c)
	for _, each := range old {
		if !slices.Contains(new, each) {
			c.add(path, "removed %s", short(each))
		}
	}
	for _, each := range new {
		if !slices.Contains(old, each) {
			c.add(path, "added %s", short(each))
		}
	}
	if len(*c) == lines {
		c.add(path, "%s → %s", short(old), short(new))
	}
}

// short returns a value as JSON of at most 60 characters.
func short(value any) string {
	const most = 60
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("plan: encode: " + err.Error()) // decoded JSON can be encoded
	}
	if all := []rune(strings.TrimSpace(text.String())); len(all) > most {
		return string(all[:most]) + "…"
	}
	return strings.TrimSpace(text.String())
}
