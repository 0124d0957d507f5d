package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// A snapshot is two items of the rack's partition of snapshots: the values, which can be large, and a summary, so that a list of a
// thousand reads no values. The values come first, under a condition, and give the number to the snapshot. The summary is taken from
// them, so that whoever finds values without one completes them.

// Snapshot is what was in force from a generation on.
type Snapshot struct {
	Summary
	Values
}

// Summary is a snapshot without its values.
type Summary struct {
	Number     int64     `json:"number"`
	Time       time.Time `json:"time"`
	Generation int64     `json:"generation"`
	// Karpenter is the version of Karpenter that was in force. It is empty if Karpenter was off.
	Karpenter string `json:"karpenter,omitempty"`
	// Changed are the parameters that have other values than in the snapshot before. The first snapshot has none.
	Changed []Changed `json:"changed"`
	// Nodes is how many nodes Karpenter had to replace for it. More means that it may have been more.
	Nodes int  `json:"nodes"`
	More  bool `json:"more,omitempty"`
	// Pools are the effects on the pools' nodes.
	Pools []plan.Effect `json:"pools,omitempty"`
	// Note is what the changes of several parameters said.
	Note string `json:"note,omitempty"`
}

// Changed is a parameter that has another value.
type Changed struct {
	Parameter string `json:"parameter"`
	// By is the ARN of who wrote it, as Parameter Store has it. It is empty if Parameter Store does not say.
	By string `json:"by,omitempty"`
}

// SnapshotRef says in a rack's status which snapshot is its last, and where it is.
type SnapshotRef struct {
	Number int64  `json:"number"`
	Table  string `json:"table"`
}

// Of a rack's snapshots, the last keepSnapshots are kept, and those of the last keepTime among the last mostSnapshots.
const (
	keepSnapshots = 100
	mostSnapshots = 1000
	keepTime      = 400 * 24 * time.Hour
	// pruned is how many snapshots one report deletes at most.
	pruned = 10
)

func snapshots(rack string) string { return ownership.PartitionSnapshot + rack }

func summaryKey(rack string, n int64) item { return numbered(rack, "summary", n) }
func valuesKey(rack string, n int64) item  { return numbered(rack, "values", n) }

func numbered(rack, kind string, n int64) item {
	return item{"pk": text(snapshots(rack)), "sk": text(fmt.Sprintf("%s#%012d", kind, n))}
}

// LastSnapshot returns the snapshot of a rack with the highest number, or nil if there is none.
func (s *Store) LastSnapshot(ctx context.Context, rack string) (*Snapshot, error) {
	items, err := s.first(ctx, snapshots(rack), "values#", "values#"+end, 1, true)
	if err != nil || len(items) == 0 {
		return nil, wrap(err, "rack %s: read the last snapshot", rack)
	}
	last := &Snapshot{}
	return last, wrap(unpack(items[0], "snapshot", last), "rack %s: decode %s", rack, stringOf(items[0], "sk"))
}

// Snapshot returns a snapshot of a rack by its number, or nil if there is none.
func (s *Store) Snapshot(ctx context.Context, rack string, n int64) (*Snapshot, error) {
	snapshot := &Snapshot{}
	found, err := s.load(ctx, valuesKey(rack, n), rack, "snapshot", fmt.Sprintf("snapshot %d", n), snapshot)
	if err != nil || !found {
		return nil, err
	}
	return snapshot, nil
}

// AddSnapshot adds a snapshot of a rack. Its number is the one after the last. If there is one with this number and these values, it
// is this one: a report may be repeated, and so may a call whose answer was lost.
func (s *Store) AddSnapshot(ctx context.Context, rack string, snapshot Snapshot) error {
	values := valuesKey(rack, snapshot.Number)
	values["snapshot"] = packed(snapshot)
	err := s.put(ctx, values, new("attribute_not_exists(pk)"))
	if refused(err) {
		there, err := s.LastSnapshot(ctx, rack) // the function report may query snapshots, and not get one
		switch {
		case err != nil:
			return err
		case there == nil || there.Number != snapshot.Number || there.Digest() != snapshot.Digest():
			return ErrLeaseLost // only the pass that holds the lease adds snapshots
		}
		snapshot = *there
	} else if err != nil {
		return fmt.Errorf("rack %s: add snapshot %d: %w", rack, snapshot.Number, err)
	}
	return s.CompleteSnapshot(ctx, rack, snapshot)
}

// CompleteSnapshot adds the summary of a snapshot, unless it is there.
func (s *Store) CompleteSnapshot(ctx context.Context, rack string, snapshot Snapshot) error {
	values := summaryKey(rack, snapshot.Number)
	values["pools"] = packed(snapshot.Pools)
	snapshot.Pools = nil
	values["summary"] = plain(snapshot.Summary)
	err := s.put(ctx, values, new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: add the summary of snapshot %d", rack, snapshot.Number)
}

// PruneSnapshots deletes the oldest snapshots of a rack that need not be kept, some at a time. last is the number of the last one.
func (s *Store) PruneSnapshots(ctx context.Context, rack string, last int64, now time.Time) error {
	items, err := s.first(ctx, snapshots(rack), "summary#", fmt.Sprintf("summary#%012d", max(0, last-keepSnapshots)), pruned, false)
	if err != nil {
		return fmt.Errorf("rack %s: read the oldest snapshots: %w", rack, err)
	}
	for _, values := range items {
		var summary Summary
		if err := unpack(values, "summary", &summary); err != nil {
			return fmt.Errorf("rack %s: decode %s: %w", rack, stringOf(values, "sk"), err)
		}
		if now.Sub(summary.Time) <= keepTime && summary.Number > last-mostSnapshots {
			return nil
		}
		if err := s.deleteSnapshot(ctx, rack, summary.Number); err != nil {
			return err
		}
	}
	return nil
}

// deleteSnapshot deletes the summary last, because it is what tells of the values.
func (s *Store) deleteSnapshot(ctx context.Context, rack string, n int64) error {
	return s.deleteEach(ctx, rack, valuesKey(rack, n), summaryKey(rack, n))
}

func (s *Store) deleteEach(ctx context.Context, rack string, records ...item) error {
	for _, record := range records {
		if err := s.remove(ctx, record); err != nil {
			return fmt.Errorf("rack %s: delete %s: %w", rack, stringOf(record, "sk"), err)
		}
	}
	return nil
}

// forgotten is how many snapshots are deleted at a time: a thousand one after the other would take longer than a report may.
const forgotten = 25

// ForgetSnapshots deletes all snapshots of a rack. A call that was interrupted is continued by the next one with what is left.
func (s *Store) ForgetSnapshots(ctx context.Context, rack string) error {
	for {
		items, err := s.first(ctx, snapshots(rack), "summary#", "summary#"+end, forgotten, false)
		if err != nil {
			return fmt.Errorf("rack %s: read the snapshots that are left: %w", rack, err)
		}
		if len(items) == 0 {
			break
		}
		if err := s.forget(ctx, rack, items); err != nil {
			return err
		}
	}
	// Only the last one can have values without a summary.
	last, err := s.LastSnapshot(ctx, rack)
	if err != nil || last == nil {
		return err
	}
	return s.deleteEach(ctx, rack, valuesKey(rack, last.Number))
}

// forget deletes the snapshots of these summaries at the same time.
func (s *Store) forget(ctx context.Context, rack string, summaries []item) error {
	deletes, ctx := errgroup.WithContext(ctx)
	for _, values := range summaries {
		deletes.Go(func() error {
			n, err := strconv.ParseInt(strings.TrimPrefix(stringOf(values, "sk"), "summary#"), 10, 64) // whatever the summary says
			if err != nil {
				return fmt.Errorf("rack %s: number of %s: %w", rack, stringOf(values, "sk"), err)
			}
			return s.deleteSnapshot(ctx, rack, n)
		})
	}
	return deletes.Wait()
}

// History returns the summaries of a rack's snapshots, the last one first, with the effects on pools or without: of a hundred pools and a
// thousand snapshots these take longer than all else. It is no method, because no function of the stack reads it.
func History(ctx context.Context, s *Store, rack string, pools bool) ([]Summary, error) {
	items, err := s.query(ctx, snapshots(rack), "summary#", "summary#"+end)
	if err != nil {
		return nil, fmt.Errorf("rack %s: read snapshots: %w", rack, err)
	}
	all := make([]Summary, len(items))
	for i, values := range items {
		summary := &all[len(items)-1-i]
		err := unpack(values, "summary", summary)
		if err == nil && pools {
			err = unpack(values, "pools", &summary.Pools)
		}
		if err != nil {
			return nil, fmt.Errorf("rack %s: decode %s: %w", rack, stringOf(values, "sk"), err)
		}
	}
	return all, nil
}
