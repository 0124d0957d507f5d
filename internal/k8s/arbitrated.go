package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// arbiter is an Arbiter for the objects of a rack.
type arbiter struct {
	outcome.Arbiter
	rack string
}

// Arbitrated returns a copy of the client that does not fight over fields of a rack's objects: Apply and Adopt set a field back if
// the arbiter says so, and leave it to its manager otherwise.
func (c *Client) Arbitrated(rack string, by outcome.Arbiter) *Client {
	arbitrated := *c
	arbitrated.arbiter = &arbiter{by, rack}
	return &arbitrated
}

// settle applies a manifest whose fields other managers hold with other values: it sets them back, or leaves them out. A field of
// an element of a list cannot be left out alone: then the object stays as it is. It returns what was decided about each field.
func (c *Client) settle(ctx context.Context, kind Kind, object *unstructured.Unstructured, held []Conflict) (
	*unstructured.Unstructured, []Conflict, error,
) {
	rest := object.DeepCopy()
	for i := range held {
		parent, key := located(rest.Object, held[i].Field)
		if held[i].Wanted = wish(object.Object); key != "" {
			held[i].Wanted = wish(parent[key])
		}
		if err := c.rule(ctx, object, &held[i]); err != nil {
			return nil, nil, err
		}
		switch {
		case held[i].Ruling.Write:
		case key == "":
			live, err := c.Get(ctx, kind, object.GetNamespace(), object.GetName())
			return live, held[i : i+1], err
		default:
			delete(parent, key)
		}
	}
	result, err := c.patch(ctx, kind, rest, true)
	if err == nil {
		err = c.made(ctx, object, held)
	}
	return result, held, err
}

// removed decides about an object that lacks a field of the manifest, although the manifest was applied: somebody has taken the
// field away. No manager holds it, so the API server knows no conflict. It returns nil if that is not so, or nobody decides.
func (c *Client) removed(ctx context.Context, live, object *unstructured.Unstructured) (*Conflict, error) {
	if c.arbiter == nil || live == nil {
		return nil, nil
	}
	path, lacks := lacking(object.Object, live.Object)
	if _, there := located(live.Object, path); !lacks || there != "" || strings.Contains(path, "[") {
		return nil, nil
	}
	field := &Conflict{Manager: "somebody whom the API server does not name", Field: path, Wanted: wish(object.Object)}
	ruling, err := c.arbiter.Rule(ctx, c.arbiter.rack, contest(object, ""), field.Wanted)
	if err != nil || ruling.Times == 0 { // the manifest is new
		return nil, err
	}
	field.Ruling = ruling
	return field, nil
}

// recordWhole records that a manifest was applied, in which the field was set back, unless it is nil. It does so also where nothing has
// changed: the call that applied it may have been stopped before.
func (c *Client) recordWhole(ctx context.Context, object *unstructured.Unstructured, field *Conflict) error {
	switch subject := contest(object, ""); {
	case c.arbiter == nil:
		return nil
	case field != nil:
		return c.arbiter.Made(ctx, c.arbiter.rack, subject, field.Wanted, field.Ruling)
	default:
		return c.arbiter.Holds(ctx, c.arbiter.rack, subject, wish(object.Object))
	}
}

// rule decides about a field.
func (c *Client) rule(ctx context.Context, object *unstructured.Unstructured, field *Conflict) (err error) {
	field.Ruling.Write = true
	if c.arbiter == nil {
		return nil
	}
	field.Ruling, err = c.arbiter.Rule(ctx, c.arbiter.rack, contest(object, field.Field), field.Wanted)
	if field.Ruling.Write { // the object is the rack's, so somebody has set the field after Sawhorse
		field.Ruling.Times = max(field.Ruling.Times, 1)
	}
	return err
}

// made records the fields that were set back.
func (c *Client) made(ctx context.Context, object *unstructured.Unstructured, fields []Conflict) error {
	for _, field := range fields {
		if c.arbiter == nil || !field.Ruling.Write {
			continue
		}
		if err := c.arbiter.Made(ctx, c.arbiter.rack, contest(object, field.Field), field.Wanted, field.Ruling); err != nil {
			return err
		}
	}
	return nil
}

// wish returns a text that is equal only for equal values, and short enough for a record and a sentence.
func wish(value any) string {
	text := canonical.JSON(value)
	if len(text) <= longestWish {
		return string(text)
	}
	sum := canonical.Hash(value)
	return fmt.Sprintf("its own value (%d bytes, SHA-256 %x…)", len(text), sum[:8])
}

// longestWish is in bytes.
const longestWish = 100

// contest names the record of a field.
func contest(object *unstructured.Unstructured, field string) string {
	return "field/" + Subject(object) + field
}

// located returns the map of an object that has a field as the API server names it in a conflict (.spec.limits.cpu), and the
// field's key in it. The key is empty for an element of a list, or a field of one. Keys may contain dots.
func located(object map[string]any, field string) (parent map[string]any, key string) {
	field = strings.TrimPrefix(field, ".")
	for name, value := range object {
		if name == field {
			return object, name
		}
		if inner, nested := value.(map[string]any); nested && strings.HasPrefix(field, name+".") {
			if parent, key = located(inner, strings.TrimPrefix(field, name)); key != "" {
				return parent, key
			}
		}
	}
	return nil, ""
}

// Report reports under a parameter what an Apply has changed, and what others have set back.
func (a Applied) Report(to *outcome.Progress, parameter string) {
	if a.Changed() {
		to.Changed(a.Action, "%s", a.Subject)
	}
	a.ReportContested(to, parameter)
}

// ReportContested reports under a parameter what others have set back.
func (a Applied) ReportContested(to *outcome.Progress, parameter string) {
	var back, fields, managers, wanted []string
	var ruling outcome.Ruling
	for _, conflict := range a.Contested {
		if !conflict.Ruling.Contested() {
			back = append(back, conflict.Manager+": "+conflict.Field)
			continue
		}
		fields, managers = append(fields, conflict.Field), append(managers, conflict.Manager)
		wanted = append(wanted, conflict.Wanted)
		if conflict.Ruling.Times > ruling.Times {
			ruling = conflict.Ruling
		}
	}
	if len(back) > 0 {
		to.Happened(parameter, "%s was changed by somebody else (%s) and is set back; stop that change, or use Sawhorse's parameters.",
			a.Subject, strings.Join(back, ", "))
	}
	if len(fields) > 0 {
		slices.Sort(managers)
		to.Contest(parameter, ruling, fmt.Sprintf("%s %s", a.Subject, strings.Join(fields, ", ")),
			strings.Join(slices.Compact(managers), ", "), strings.Join(wanted, ", "))
	}
}
