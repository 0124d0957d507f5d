package store

import (
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Overlay returns the tree as it is with the first n changes, with the versions that Parameter Store will have. What a change
// has not written yet counts as written, and what a change that was given up has written counts as put back, so that no pass
// sees a part of a change. What was written in the last minutes counts also where Parameter Store answers with what was there
// before; deleted are deletions since.
func (c Changes) Overlay(tree Tree, n int, deleted []Written, now time.Time) Tree {
	overlaid := Tree{
		Values: map[string]string{}, Secure: slices.Clone(tree.Secure), Versions: map[string]int64{}, Modified: tree.Modified,
	}
	maps.Copy(overlaid.Values, tree.Values)
	maps.Copy(overlaid.Versions, tree.Versions)
	for _, change := range c.List[:n] {
		if change.past(now) {
			continue
		}
		for _, w := range change.Writes {
			had := overlaid.Versions[w.Name]
			value, version, is := w.overlay(change.State, had)
			switch {
			case is && !w.deletedBy(deleted) && !(w.Done && w.superseded(had, tree.Modified)):
				overlaid.Values[w.Name], overlaid.Versions[w.Name] = value, version
			case change.State == ChangeAccepted && overlaid.Versions[w.Name] == 0 && w.Value == params.Unset:
				overlaid.Values[w.Name] = w.Value // so that a name that is unknown is reported
			}
		}
	}
	return overlaid
}

// overlay returns what a write of a change lays over a parameter of a version, if anything.
func (w Write) overlay(state ChangeState, version int64) (value string, made int64, is bool) {
	switch {
	case !w.Done:
		return w.Value, version + 1, state == ChangeAccepted
	case state == ChangeGivenUp && !w.PutBack:
		return w.Before, w.Version + 1, w.Version > 0 && version <= w.Version
	case w.PutBack:
		return w.Before, w.Version, version < w.Version
	}
	return w.Value, w.Version, version < w.Version
}

// Supersede takes out of the changes what they wrote to parameters that were deleted since, and reports whether there were some. The
// lease has only the last write of a parameter, and dry runs and audits do not read it.
func (c *Changes) Supersede(tree Tree, deleted []Written) (some bool) {
	versions := maps.Clone(tree.Versions)
	if versions == nil {
		versions = map[string]int64{}
	}
	for i, change := range c.List {
		c.List[i].Writes = slices.DeleteFunc(slices.Clone(change.Writes), func(w Write) bool {
			if w.Done && (w.deletedBy(deleted) || w.superseded(versions[w.Name], tree.Modified)) {
				return true
			}
			versions[w.Name] = max(versions[w.Name], w.Version)
			return false
		})
		some = some || len(c.List[i].Writes) < len(change.Writes)
	}
	return some
}

// superseded reports whether what was read shows that a parameter was deleted since a write was made, or made again: versions begin at 1
// then. Of one that was there before the write, no replica says that it is not. version is what was read, with the changes before.
func (w Write) superseded(version int64, modified map[string]time.Time) bool {
	return w.Base > 0 && version == 0 || version < w.Version && modified[w.Name].After(w.At)
}

// deletedBy reports whether one of the deletions is of the write's parameter, and not older than the write.
func (w Write) deletedBy(deleted []Written) bool {
	return slices.ContainsFunc(deleted, func(d Written) bool {
		return d.Operation == "Delete" && d.Name == w.Name && !d.At.Before(w.At.Truncate(time.Second))
	})
}
