package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// ChangeState is what is next for a change.
type ChangeState string

// States of a change. One that is refused is not kept.
const (
	// ChangeRequested means that the change was read and has not been judged.
	ChangeRequested ChangeState = "requested"
	// ChangeAccepted means that the change is in force and is being written to Parameter Store.
	ChangeAccepted ChangeState = "accepted"
	// ChangeGivenUp means that the change is not in force any more, and that what it has written is being put back.
	ChangeGivenUp ChangeState = "given up"
	// ChangeEnded means that nothing is left to be written. The change is kept for as long as Parameter Store may answer with
	// what was there before (keepEnded).
	ChangeEnded ChangeState = "ended"
)

// ChangeOutcome is what became of a change, for the status.
type ChangeOutcome string

// Outcomes of a change.
const (
	ChangeWriting ChangeOutcome = "Writing"
	ChangeWritten ChangeOutcome = "Written"
	ChangeRefused ChangeOutcome = "Refused"
	// ChangeIsGivenUp means that a part of the change could not be written, and that the rest is put back.
	ChangeIsGivenUp ChangeOutcome = "GivenUp"
)

// ChangeStatus says in a rack's status what became of the last change.
type ChangeStatus struct {
	// Version and Modified are those of the parameter change. The versions of one that was deleted begin again.
	Version  int64            `json:"version"`
	Modified time.Time        `json:"modified,omitzero"`
	Outcome  ChangeOutcome    `json:"outcome"`
	Problems []params.Problem `json:"problems,omitempty"`
	Note     string           `json:"note,omitempty"`
}

// Change is one version of the parameter change of a rack: several parameters that are set together.
type Change struct {
	Requested
	// Version and Modified are those of the parameter change.
	Version  int64       `json:"version"`
	Modified time.Time   `json:"modified"`
	State    ChangeState `json:"state"`
	// Since is when the change came to its state.
	Since time.Time `json:"since,omitzero"`
	// Attempts is how often a write has failed in this state, Failing the reason of the last failure, and Next when the write
	// is tried again.
	Attempts int       `json:"attempts,omitempty"`
	Failing  string    `json:"failing,omitempty"`
	Next     time.Time `json:"next,omitzero"`
	// Ends are the problems with which an iteration is to end whose plan was made for the change: the step that gave the change up may be
	// called again. The next plan is made without the change.
	Ends []params.Problem `json:"ends,omitempty"`
	// Writes are sorted by name. A change that has not been accepted has none.
	Writes []Write `json:"writes,omitempty"`
}

// Write is the new value of one parameter in a change that was accepted. The value params.Unset means the default.
type Write struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Before and Base are the value and the version on which the write was judged. Base is 0 if there was no such parameter.
	Before string `json:"before"`
	Base   int64  `json:"base,omitempty"`
	// Done means that the value has been written, and PutBack that Before was written again. Version is the version that
	// the last of these writes made; it is 0 if the value was there already.
	Done    bool  `json:"done,omitempty"`
	PutBack bool  `json:"putBack,omitempty"`
	Version int64 `json:"version,omitempty"`
	// At is when that was, or else when the change was accepted.
	At time.Time `json:"at,omitzero"`
	// Since is the version over which the last of these writes was made, if somebody else may have written between the two, and
	// Parameter Store's history has not told yet what.
	Since *int64 `json:"since,omitempty"`
	// Theirs is when somebody else wrote Before, if that was found out after the write, and zero otherwise.
	Theirs time.Time `json:"theirs,omitzero"`
}

// Made records the version that a write has made over another one.
func (w *Write) Made(over, version int64, at time.Time) {
	w.Done, w.Version, w.At, w.Since = true, version, at.UTC(), nil
	if version != over+1 {
		w.Since = &over
	}
}

// Between returns what somebody else has written, or deleted, between the version over which a write of ours was made and the one
// that it made. PutParameter has no condition, but it answers with the version. Versions with our own value are of a write that was
// made twice. lacks means that the history has not all of these versions yet, and that they may come.
func (w Write) Between(history []Version, now time.Time) (theirs Version, edited, lacks bool) {
	over, ours := *w.Since, w.Value
	if w.PutBack {
		ours = w.Before
	}
	if w.Version <= over { // it was deleted and made again
		theirs, edited, over = Version{Text: params.Unset, Modified: w.At}, true, 0
	}
	missing := w.Version - over - 1
	for _, v := range history {
		if v.Number <= over || v.Number >= w.Version {
			continue
		}
		if missing--; v.Text != ours {
			theirs, edited = v, true
		}
	}
	return theirs, edited, missing > 0 && now.Sub(w.At) <= behind
}

// Changes are a rack's changes.
type Changes struct {
	// Version and Modified identify the last version of the parameter change that was read. A parameter that is deleted and
	// created again begins at version 1.
	Version  int64     `json:"version,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	// Last is what became of the last change, or nil if there was none.
	Last *ChangeStatus `json:"last,omitempty"`
	// List has the changes that have not ended, and those that ended a moment ago, in the order in which they were written.
	List []Change `json:"list,omitempty"`
	// revision is the number of writes of this record.
	revision int64
}

// keepEnded is how long a change is kept that has ended, and how long a read of Parameter Store may be older than a write
// (docs/reliability.md, *Eventual consistency*).
const keepEnded = 3 * time.Minute

// changesKey is the key of a rack's changes. They have a partition of their own, because the functions of other steps may not
// write what the function change writes to Parameter Store.
func changesKey(rack string) item {
	return item{"pk": text(ownership.PartitionChange + rack), "sk": text("changes")}
}

// Changes returns the rack's changes.
func (s *Store) Changes(ctx context.Context, rack string) (Changes, error) {
	var changes Changes
	values, err := s.get(ctx, changesKey(rack))
	if err == nil && values != nil {
		err = unpack(values, "changes", &changes)
	}
	changes.revision = numberOf(values, "revision")
	return changes, wrap(err, "rack %s: read changes", rack)
}

// SaveChanges replaces the rack's changes, without those that ended some time ago. It fails if somebody else has replaced them
// since they were read. A call whose answer was lost is made again by the SDK, and finds its own record.
func (s *Store) SaveChanges(ctx context.Context, rack string, changes *Changes, now time.Time) error {
	kept := *changes
	kept.List = slices.DeleteFunc(slices.Clone(changes.List), func(c Change) bool { return c.past(now) })
	in := s.updating(changesKey(rack), "SET changes = :changes, revision = :next",
		"attribute_not_exists(pk) OR revision = :read OR changes = :changes", item{
			":changes": packed(kept), ":read": number(changes.revision), ":next": number(changes.revision + 1),
		})
	if _, err := s.DB.UpdateItem(ctx, in); err != nil {
		if refused(err) {
			err = ErrLeaseLost // only the pass that holds the lease writes them
		}
		return fmt.Errorf("rack %s: save changes: %w", rack, err)
	}
	changes.revision++
	return nil
}

// ForgetChanges deletes the record of a rack's changes.
func (s *Store) ForgetChanges(ctx context.Context, rack string) error {
	return wrap(s.remove(ctx, changesKey(rack)), "rack %s: forget changes", rack)
}

// past reports whether a change has ended so long ago that every read of Parameter Store has what it wrote.
func (c Change) past(now time.Time) bool {
	return c.State == ChangeEnded && now.Sub(c.Since) > keepEnded
}

// Writing reports whether there is anything to write to Parameter Store.
func (c Changes) Writing() bool {
	return slices.ContainsFunc(c.List, func(c Change) bool { return c.State == ChangeAccepted || c.State == ChangeGivenUp })
}

// Rests reports whether a write of a change has failed and is not to be tried again yet.
func (c Changes) Rests(now time.Time) bool {
	return slices.ContainsFunc(c.List, func(c Change) bool { return c.Next.After(now) })
}

// Take adds the versions of the parameter change that have not been read yet, at most this many, and reports whether that
// were all of them.
func (c *Changes) Take(versions []Version, most int) (all bool) {
	for _, v := range versions {
		if !c.isNew(v) {
			continue
		}
		if most == 0 {
			return false
		}
		most--
		c.Version, c.Modified = v.Number, v.Modified
		c.List = append(c.List, Change{Requested: request(v), Version: v.Number, Modified: v.Modified, State: ChangeRequested})
	}
	return true
}

// isNew reports whether a version of the parameter change was written after the last one that was read.
func (c *Changes) isNew(v Version) bool { return v.after(c.Version, c.Modified) }

// Answers reports whether a status tells what became of a version of the parameter change, or of a later one. It may be nil.
func (s *ChangeStatus) Answers(v Version) bool { return s != nil && !v.after(s.Version, s.Modified) }

// Accept puts a change in force. tree is the one on which it was judged, without this change.
func (c *Changes) Accept(i int, tree Tree, now time.Time) {
	change := &c.List[i]
	change.enter(ChangeAccepted, now)
	change.Writes = nil
	for _, w := range change.wanted() {
		before, there := tree.Values[w.Name]
		if !there {
			before = params.Unset
		}
		w.Before, w.Base, w.Done, w.At = before, tree.Versions[w.Name], before == w.Value, now.UTC()
		change.Writes = append(change.Writes, w)
	}
	c.report(*change, ChangeWriting, nil)
}

// Refuse ends a change that was not accepted.
func (c *Changes) Refuse(i int, problems []params.Problem) {
	c.report(c.List[i], ChangeRefused, problems)
	c.List = slices.Delete(c.List, i, i+1)
}

// GiveUp ends a change that cannot be written. What it has written is to be put back, and the changes after it, which were
// accepted on top of it, are to be judged again.
func (c *Changes) GiveUp(i int, now time.Time, problems ...params.Problem) {
	c.List[i].enter(ChangeGivenUp, now)
	for j := i + 1; j < len(c.List); j++ {
		if c.List[j].State == ChangeAccepted {
			c.List[j].enter(ChangeRequested, now)
			c.List[j].Writes = nil
		}
	}
	c.report(c.List[i], ChangeIsGivenUp, problems)
}

// End ends a change of which all is written, or put back but for what the problems name.
func (c *Changes) End(i int, now time.Time, problems ...params.Problem) {
	if c.List[i].State == ChangeAccepted {
		c.report(c.List[i], ChangeWritten, nil)
	} else if len(problems) > 0 && c.Last.Version == c.List[i].Version && c.Last.Modified.Equal(c.List[i].Modified) {
		c.Last.Problems = slices.Concat(c.Last.Problems, problems)
	}
	c.rebase(i)
	c.List[i].enter(ChangeEnded, now)
}

// rebase sets the versions over which later changes write what a change has written. They were accepted on those that the change was
// expected to make; but what was given up may not be put back, and a write may be made twice. Those that were accepted on what somebody
// else has written since keep theirs.
func (c *Changes) rebase(i int) {
	written := c.List[i].State == ChangeAccepted
	for _, made := range c.List[i].Writes {
		later := c.later(i, made.Name)
		if made.Version == 0 || len(later) == 0 ||
			written && later[0].Base > made.Version || !written && later[0].Before != made.Before {
			continue
		}
		for n, w := range later {
			w.Base = made.Version + int64(n)
		}
	}
}

// later returns the writes of a parameter that changes after one have still to make.
func (c *Changes) later(i int, name string) (all []*Write) {
	for _, change := range c.List[i+1:] {
		for k := range change.Writes {
			if w := &change.Writes[k]; w.Name == name && !w.Done && change.State == ChangeAccepted {
				all = append(all, w)
			}
		}
	}
	return all
}

func (c *Change) enter(state ChangeState, now time.Time) {
	c.State, c.Since, c.Ends = state, now.UTC(), nil
	c.Succeeded()
}

// Succeeded forgets that writes have failed.
func (c *Change) Succeeded() { c.Attempts, c.Failing, c.Next = 0, "", time.Time{} }

// report says what became of a change, unless a later one is reported already.
func (c *Changes) report(change Change, outcome ChangeOutcome, problems []params.Problem) {
	if change.Version == c.Version && change.Modified.Equal(c.Modified) {
		c.Last = &ChangeStatus{
			Version: change.Version, Modified: change.Modified, Outcome: outcome, Problems: problems, Note: change.Note,
		}
	}
}

// WroteSince adds the changes that are in force, and those that ended a moment ago, to those of earlier iterations.
func (c Changes) WroteSince(before []WrittenBy) []WrittenBy {
	all := slices.Clone(before)
	for _, change := range c.List {
		by := WrittenBy{Version: change.Version, Note: change.Note, Names: map[string]int64{}}
		for _, w := range change.Writes {
			switch {
			case !w.Done:
				by.Names[w.Name] = w.Base + 1
			case !w.PutBack:
				by.Names[w.Name] = w.Version
			}
		}
		if change.State == ChangeAccepted || change.State == ChangeEnded {
			all = append(slices.DeleteFunc(all, func(b WrittenBy) bool { return b.Version == by.Version }), by)
		}
	}
	return all
}

// Recognize marks writes as done that Parameter Store has and the record has not, because a call was stopped in between.
func (c *Changes) Recognize(tree Tree) {
	for i, change := range c.List {
		writes := slices.Clone(change.Writes)
		for j, w := range writes {
			at := tree.Modified[w.Name]
			theirs := change.State == ChangeGivenUp && at.After(change.Since)
			if !w.Done && !theirs && tree.Versions[w.Name] == w.Base+1 && tree.Values[w.Name] == w.Value {
				writes[j].Done, writes[j].Version, writes[j].At = true, w.Base+1, at
			}
			puttingBack := change.State == ChangeGivenUp && w.Done && !w.PutBack && w.Version > 0 && w.Since == nil
			if puttingBack && tree.Versions[w.Name] == w.Version+1 && tree.Values[w.Name] == w.Before {
				writes[j].PutBack, writes[j].Version, writes[j].At = true, w.Version+1, at
			}
		}
		c.List[i].Writes = writes
	}
}

// Edited returns the parameters that somebody else has written since the change was accepted and before it came to them.
func (c Change) Edited(tree Tree) (names []string) {
	for _, w := range c.Writes {
		if c.State == ChangeAccepted && !w.Done && tree.Versions[w.Name] > w.Base {
			names = append(names, w.Name)
		}
	}
	return names
}

// Outdated returns the parameters that a change wants to set and that somebody else has written, or deleted, after it. What the other
// changes have written is nobody's, unless it turned out to lie over somebody's write.
func (c Changes) Outdated(i int, tree Tree, deleted []Written) (names []string) {
	change := c.List[i]
	for _, w := range change.wanted() {
		value, there := tree.Values[w.Name]
		at := tree.Modified[w.Name]
		if !there {
			value = params.Unset
			for _, d := range deleted {
				if d.Operation == "Delete" && d.Name == w.Name {
					at = d.At
				}
			}
		}
		for _, other := range c.List {
			for _, ours := range other.Writes {
				if ours.Name == w.Name && ours.Done && ours.Version > 0 && tree.Versions[w.Name] <= ours.Version {
					value, at = ours.Before, ours.Theirs
				}
			}
		}
		if value != w.Value && at.After(change.Modified) {
			names = append(names, w.Name)
		}
	}
	return names
}

// wanted returns the writes that a change asks for, sorted by name.
func (r Requested) wanted() []Write {
	var all []Write
	for name, value := range r.Set {
		all = append(all, Write{Name: name, Value: value})
	}
	for _, name := range r.Unset {
		all = append(all, Write{Name: name, Value: params.Unset})
	}
	slices.SortFunc(all, func(a, b Write) int { return strings.Compare(a.Name, b.Name) })
	return all
}
