package rollout

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// migrating returns how far the migration of a rack has come, or nil if none of its nodes are left, and why a pass can go on with
// it; "" if none can, as while Karpenter is being turned off.
func (r *Rollout) migrating(ctx context.Context, client *k8s.Client, was store.Rollout) (now *store.Migrating, goesOn string, err error) {
	if len(was.Migration.Groups) == 0 {
		return nil, "", nil
	}
	view, err := drain.ReadView(ctx, client, was.Migration, r.Now())
	if err != nil || view.Node == nil && len(view.ToRelease) == 0 {
		return nil, "", err
	}
	records, err := r.Store.Records(ctx, was.Rack)
	if err != nil {
		return nil, "", err
	}
	if view.Node == nil {
		if records.Goal == plan.GoalKarpenter && !records.Paused && !records.Held {
			goesOn = "a node that was being emptied by migrate_node_groups comes back into use"
		}
		return nil, goesOn, nil
	}
	brakes := strings.Join(records.Brakes(), ", ")
	if was.Migration.BlockedAt(r.Now()) {
		brakes = cmp.Or(brakes, "a time in which no node is replaced (karpenter_disruption_window or karpenter_disruption_block_schedule)")
	}
	contest, err := outcome.ReadContest(ctx, r.Store.Contests(), was.Rack, outcome.BaselineMigrated(view.Group()))
	if err != nil {
		return nil, "", err
	}
	if contest.Rests(r.Now()) {
		brakes = cmp.Or(brakes, "somebody sets the size of node group "+view.Group()+" back; the warnings of migrate_node_groups say more")
	}
	now = &store.Migrating{Groups: view.Groups, Nodes: view.Nodes, Held: outcome.ShortenTo(mostHeld, cmp.Or(brakes, view.Held))}
	switch before := was.Migrating; {
	case now.Held == "":
	case before != nil && before.Held == now.Held:
		now.Since = before.Since
	default:
		now.Since = r.Now().UTC().Format(time.RFC3339)
	}
	if brakes != "" || !view.Due() || records.Goal != plan.GoalKarpenter {
		return now, "", nil
	}
	return now, "the next step of migrate_node_groups, at node " + view.Node.GetName(), nil
}
