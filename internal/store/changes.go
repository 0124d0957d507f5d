package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// ChangeState is the state of a change request.
type ChangeState string

// States of a change. The item of a refused or finished change is kept, without the requested values, until its time to
// live ends. It is how a repeated event is recognized.
const (
	// ChangeRequested means that the state machine has recorded the change and it has not been checked.
	ChangeRequested ChangeState = "requested"
	// ChangeAccepted means that the change is in force and is being written to Parameter Store.
	ChangeAccepted ChangeState = "accepted"
	ChangeRefused  ChangeState = "refused"
	ChangeFinished ChangeState = "finished"
)

// ChangeRequest is a request to change several parameters together.
type ChangeRequest struct {
	// ID is the ID of the event that requested the change.
	ID    string
	State ChangeState
	// Set maps names to new values. Unset has the names of parameters that get their default.
	Set   map[string]string
	Unset []string
	// Malformed is the problem with the request itself, independent of the rack, as the end of a sentence: "has
	// karpenter_cpu_limit both in set and in unset". If it is set, Set and Unset are empty.
	Malformed string
	// Written is the number of Writes that are done.
	Written int
}

// Problem returns the problem with the request itself, and whether there is one.
func (c ChangeRequest) Problem() (params.Problem, bool) {
	return params.Problem{Parameter: "rack", Message: "the change request " + c.ID + " " + c.Malformed}, c.Malformed != ""
}

// Write is the new value of one parameter. The value params.Unset means the default.
type Write struct{ Name, Value string }

// Writes returns all writes of the change, sorted by name.
func (c ChangeRequest) Writes() []Write {
	var all []Write
	for name, value := range c.Set {
		all = append(all, Write{name, value})
	}
	for _, name := range c.Unset {
		all = append(all, Write{name, params.Unset})
	}
	slices.SortFunc(all, func(a, b Write) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Left returns the Writes that are not done yet.
func (c ChangeRequest) Left() []Write {
	all := c.Writes()
	return all[min(c.Written, len(all)):]
}

// Overlay returns the tree as it will be when the changes are written, with the versions that Parameter Store will then
// have; later changes take precedence. Writes that are already done are not applied again, because users may have written
// those parameters since.
func Overlay(tree Tree, changes []ChangeRequest) Tree {
	laid := Tree{Values: map[string]string{}, Secure: slices.Clone(tree.Secure), Versions: map[string]int64{}}
	maps.Copy(laid.Values, tree.Values)
	maps.Copy(laid.Versions, tree.Versions)
	for _, c := range changes {
		for _, w := range c.Left() {
			if value, is := laid.Values[w.Name]; is && value != w.Value || !is && w.Value != params.Unset {
				laid.Versions[w.Name]++
			}
			laid.Values[w.Name] = w.Value
		}
	}
	return laid
}

// changeKey is the key of a change. Changes have a partition of their own, because the functions of other steps may not
// write what the function change writes to Parameter Store.
func changeKey(rack, id string) item {
	return item{"pk": text(ownership.PartitionChange + rack), "sk": text("change#" + id)}
}

// Changes returns the rack's requested and accepted changes, in the order in which they were requested.
func (s *Store) Changes(ctx context.Context, rack string) ([]ChangeRequest, error) {
	items, err := s.query(ctx, ownership.PartitionChange+rack, "change#", "change#"+end)
	if err != nil {
		return nil, fmt.Errorf("rack %s: read changes: %w", rack, err)
	}
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(strings.Compare(stringOf(a, "at"), stringOf(b, "at")), strings.Compare(stringOf(a, "sk"), stringOf(b, "sk")))
	})
	var open []ChangeRequest
	for _, values := range items {
		c := ChangeRequest{
			ID: strings.TrimPrefix(stringOf(values, "sk"), "change#"), State: ChangeState(stringOf(values, "state")),
			Written: int(numberOf(values, "written")),
		}
		if c.State == ChangeRequested || c.State == ChangeAccepted {
			c.read(stringOf(values, "payload"))
			open = append(open, c)
		}
	}
	return open, nil
}

// Accept puts a change in force: it applies to the tree from now on, and is written.
func (s *Store) Accept(ctx context.Context, rack, id string) error {
	return s.transition(ctx, rack, id, "SET #state = :to", item{}, ChangeAccepted, ChangeRequested)
}

// Refuse ends a change that cannot be applied.
func (s *Store) Refuse(ctx context.Context, rack, id string) error {
	return s.transition(ctx, rack, id, "SET #state = :to REMOVE payload, written", item{}, ChangeRefused, ChangeRequested, ChangeAccepted)
}

// keepDismissed is how long DynamoDB keeps a change of a rack that does not exist.
const keepDismissed = 5 * time.Minute

// Dismiss ends a change of a rack that does not exist. Other changes are kept for as long as their event may be
// repeated, but the number of racks that do not exist has no limit.
func (s *Store) Dismiss(ctx context.Context, rack, id string, now time.Time) error {
	return s.transition(ctx, rack, id, "SET #state = :to, #ttl = :ttl REMOVE payload, written",
		item{":ttl": number(now.Add(keepDismissed).Unix())}, ChangeRefused, ChangeRequested, ChangeAccepted)
}

// Finish ends a change that has been written.
func (s *Store) Finish(ctx context.Context, rack, id string) error {
	return s.transition(ctx, rack, id, "SET #state = :to REMOVE payload, written", item{}, ChangeFinished, ChangeAccepted)
}

// transition moves a change to the state "to", if it is in one of the states "from" or in "to" already. values are the other
// values of the update.
func (s *Store) transition(ctx context.Context, rack, id, update string, values item, to ChangeState, from ...ChangeState) error {
	states := "#state = :to"
	values[":to"] = text(string(to))
	for i, f := range from {
		name := fmt.Sprintf(":from%d", i)
		values[name], states = text(string(f)), states+" OR #state = "+name
	}
	return s.updateChange(ctx, rack, id, update, "("+states+")", values)
}

// NoteWritten records how many of an accepted change's Writes are done.
func (s *Store) NoteWritten(ctx context.Context, rack, id string, written int) error {
	return s.updateChange(ctx, rack, id, "SET written = :written", "#state = :accepted",
		item{":written": number(int64(written)), ":accepted": text(string(ChangeAccepted))})
}

func (s *Store) updateChange(ctx context.Context, rack, id, update, condition string, values item) error {
	err := s.update(ctx, changeKey(rack, id), update, condition, values)
	if refused(err) {
		return fmt.Errorf("rack %s: change %s: it has come to another end already", rack, id)
	}
	return wrap(err, "rack %s: change %s: update", rack, id)
}

// MaxValue is the longest value of a parameter in bytes: the limit of SSM's advanced tier.
const MaxValue = 8192

// read parses the detail of an event. It sets Malformed if the detail is invalid. In set, the empty text and the word
// unset mean the same as unset, because SSM cannot store an empty value.
func (c *ChangeRequest) read(payload string) {
	if len(payload) == 0 {
		c.Malformed = "is larger than Sawhorse records: send it in parts, or put its JSON into S3"
		return
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &fields); err != nil || fields == nil {
		c.Malformed = "has a detail that is no JSON object"
		return
	}
	set, problem := readSet(fields["set"])
	unset, more := readUnset(fields["unset"])
	if c.Malformed = cmp.Or(unknownField(fields), problem, more, both(set, unset)); c.Malformed != "" {
		return
	}
	for name, value := range set {
		if value == "" || value == params.Unset {
			delete(set, name)
			unset = append(unset, name)
		}
	}
	slices.Sort(unset)
	c.Set, c.Unset = set, unset
}

// shown formats names and fields, which come from outside and may have any length.
const shown = "%.60q"

func unknownField(fields map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "rack" && name != "set" && name != "unset" {
			return fmt.Sprintf("has the unknown field "+shown+": it may have rack, set and unset; %s", name,
				params.DidYouMean(name, []string{"rack", "set", "unset"}, "leave it out"))
		}
	}
	return ""
}

func readSet(field json.RawMessage) (map[string]string, string) {
	if field == nil {
		return nil, ""
	}
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(field, &texts); err != nil || texts == nil {
		return nil, `has a set that is no object of texts: write {"set": {"karpenter_cpu_limit": "200"}}`
	}
	set := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var value *string
		switch err := json.Unmarshal(texts[name], &value); {
		case err != nil || value == nil:
			return nil, fmt.Sprintf("sets "+shown+" to something that is no text: put the value into quotes", name)
		case len(*value) > MaxValue:
			return nil, fmt.Sprintf("sets "+shown+
				" to %d bytes, and Parameter Store holds %d: put the JSON into S3 and set s3://bucket/key.json", name,
				len(*value), MaxValue)
		}
		set[name] = *value
	}
	return set, ""
}

func readUnset(field json.RawMessage) ([]string, string) {
	if field == nil {
		return nil, ""
	}
	var names []*string
	if err := json.Unmarshal(field, &names); err != nil || names == nil || slices.Contains(names, nil) {
		return nil, `has an unset that is no list of names: write {"unset": ["karpenter_cpu_limit"]}`
	}
	var unset []string
	for _, name := range names {
		if slices.Contains(unset, *name) {
			return nil, fmt.Sprintf("unsets "+shown+" twice", *name)
		}
		unset = append(unset, *name)
	}
	return unset, ""
}

// both returns the problem with a change that sets and unsets the same parameter.
func both(set map[string]string, unset []string) string {
	for _, name := range unset {
		if _, too := set[name]; too {
			return fmt.Sprintf("has "+shown+" both in set and in unset: leave it out of one", name)
		}
	}
	return ""
}
