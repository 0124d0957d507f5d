package store

import (
	"reflect"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The effects of two iterations on one pool are reported as one, and nodes that the first replaces are not reported as
// staying.
func TestEffectsOfTwoRounds(t *testing.T) {
	two, three, seven := 2, 3, 7
	stays := plan.Effect{Pool: "a", Change: events.PoolChanged, Nodes: &seven}
	replaces := plan.Effect{
		Pool: "a", Change: events.PoolChanged, Replaces: true, Reasons: []string{"NodePoolDrifted"}, Nodes: &seven, Replaced: &three,
	}
	drifts := plan.Effect{Pool: "a", Change: events.PoolChanged, Replaces: true, Reasons: []string{"AMIDrift"}, Nodes: &seven, Replaced: &two}
	for what, c := range map[string]struct{ before, after, want plan.Effect }{
		"the second changes what stays": {replaces, stays, replaces},
		"the second replaces":           {stays, drifts, drifts},
		"both replace": {
			replaces, drifts, plan.Effect{
				Pool: "a", Change: events.PoolChanged, Replaces: true, Reasons: []string{"AMIDrift", "NodePoolDrifted"}, Nodes: &seven,
			},
		},
		"created and then changed": {
			plan.Effect{Pool: "a", Change: events.PoolCreated}, drifts, plan.Effect{Pool: "a", Change: events.PoolCreated},
		},
		"another pool": {plan.Effect{}, stays, stays},
		"changed, and removed in the end": {
			stays, plan.Effect{Pool: "a", Change: events.PoolRemoved, Replaces: true}, plan.Effect{
				Pool: "a", Change: events.PoolRemoved, Replaces: true,
			},
		},
	} {
		var before []plan.Effect
		if c.before.Pool != "" {
			before = append(before, c.before)
		}
		if got := together(before, []plan.Effect{c.after}); !reflect.DeepEqual(got, []plan.Effect{c.want}) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
