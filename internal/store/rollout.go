package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The rollouts are one item collection of the table, with one item for each rack with Karpenter. So the schedule learns
// with one query which clusters to look at, and what was found the last time.

// Rollout says how far the nodes of a rack have followed its parameters. A pass ends when the objects are applied;
// Karpenter then replaces nodes for hours.
type Rollout struct {
	Rack string `json:"rack"`
	// Cluster and Names are the cluster and the pools of the plan that was applied last.
	Cluster plan.Cluster `json:"cluster"`
	Names   []string     `json:"names,omitempty"`
	// Generation and Execution belong to the last pass whose changes the nodes follow. Started is when its execution
	// started, Applied when it ended.
	Generation int64     `json:"generation"`
	Execution  string    `json:"execution"`
	Started    time.Time `json:"started"`
	Applied    time.Time `json:"applied"`
	// Ended is when no node was outdated any more and all pools were Ready. It is zero until then.
	Ended time.Time `json:"ended,omitzero"`
	// Migration has the node groups of that plan that are emptied, and Migrating how far that has come, or nil if nothing is left.
	Migration plan.Migration `json:"migration,omitzero"`
	Migrating *Migrating     `json:"migrating,omitempty"`
	// Pools is what was found when they last had something new to tell, and Looked the time of that.
	Pools  Pools     `json:"pools,omitempty"`
	Looked time.Time `json:"looked,omitzero"`
	// Emptied are the retiring pools without nodes, for whose removal a pass was requested.
	Emptied []string `json:"emptied,omitempty"`
	// Waiting is what pods wait for, as it was found then.
	Waiting Waiting `json:"waiting,omitempty"`
	// Latest says which images the aliases @latest are, as it was found then.
	Latest []LatestImage `json:"latest,omitempty"`
	// Degraded is when the node check found the rack degraded, and said so with an event. It is zero if the rack is not.
	Degraded time.Time `json:"degraded,omitzero"`
	// revision counts the writes of the record, so that of two writers the second reads again.
	revision int64
}

// ErrRolloutChanged means that the record was written or deleted since it was read.
var ErrRolloutChanged = errors.New("the record of the rollout was written by somebody else since it was read")

func rolloutKey(rack string) item {
	return item{"pk": text(ownership.PartitionRollouts), "sk": text(rack)}
}

// Rollouts returns the rollouts of all racks with Karpenter, sorted by rack. A record that cannot be decoded is part of the
// error, and the others are returned too.
func (s *Store) Rollouts(ctx context.Context) ([]Rollout, error) {
	items, err := s.query(ctx, ownership.PartitionRollouts, "a", end)
	if err != nil {
		return nil, fmt.Errorf("rollouts: read: %w", err)
	}
	var all []Rollout
	var failed []error
	for _, values := range items {
		rollout, err := rolloutOf(values)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, *rollout)
	}
	return all, errors.Join(failed...)
}

// Rollout returns the rollout of a rack, or nil if Karpenter is off.
func (s *Store) Rollout(ctx context.Context, rack string) (*Rollout, error) {
	values, err := s.get(ctx, rolloutKey(rack))
	if err != nil || values == nil {
		return nil, wrap(err, "rack %s: read rollout", rack)
	}
	return rolloutOf(values)
}

func rolloutOf(values item) (*Rollout, error) {
	rollout := &Rollout{revision: numberOf(values, "revision")}
	if err := unpack(values, "rollout", rollout); err != nil {
		return nil, fmt.Errorf("rack %s: decode rollout: %w", stringOf(values, "sk"), err)
	}
	return rollout, nil
}

// SaveRollout stores a rollout that was read before, or the first one of a rack. If the record has changed since, it
// returns ErrRolloutChanged.
func (s *Store) SaveRollout(ctx context.Context, rollout Rollout) error {
	condition, values := "attribute_not_exists(pk)", item{":rollout": packed(rollout), ":next": number(rollout.revision + 1)}
	if rollout.revision > 0 {
		condition, values[":read"] = "revision = :read", number(rollout.revision)
	}
	err := s.update(ctx, rolloutKey(rollout.Rack), "SET #rollout = :rollout, revision = :next", condition, values)
	if refused(err) {
		err = ErrRolloutChanged
	}
	return wrap(err, "rack %s: save rollout", rollout.Rack)
}

// EndRollout deletes the rollout of a rack whose Karpenter is off.
func (s *Store) EndRollout(ctx context.Context, rack string) error {
	return wrap(s.remove(ctx, rolloutKey(rack)), "rack %s: forget rollout", rack)
}

// Rewrites records the text that the status parameter is about to have, unless a report has written another one since
// reported was read. It reports whether it has.
func (s *Store) Rewrites(ctx context.Context, rack string, reported Reported, status string) (bool, error) {
	err := s.update(ctx, key(rack, "status"), "SET #text = :new", "#text = :old",
		item{":new": text(digestOf([]byte(status))), ":old": text(reported.text)})
	if refused(err) {
		return false, nil
	}
	return err == nil, wrap(err, "rack %s: update status record", rack)
}

// Same reports whether two rollouts were read from the same write of a record.
func (r Rollout) Same(other Rollout) bool { return r.revision == other.revision }

// Degrades reports whether Karpenter does not do for the rack what it is for: a pool is degraded, or pods wait for a node
// that EC2 or a limit refuses.
func (r Rollout) Degrades() bool { return r.Pools.Degraded() || r.Waiting.degrade() }
