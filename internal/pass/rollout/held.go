package rollout

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

const (
	// recent is how old an event of Karpenter's may be that still holds. Karpenter repeats it every two minutes.
	recent = 10 * time.Minute
	// mostHeld is the length in bytes to which Karpenter's words about a node are cut.
	mostHeld = 200
)

// blocks are the reasons of Karpenter's events that say why a node is still there. They are about the Node, the NodeClaim or, if
// its budgets allow nothing, the NodePool.
var blocks = map[string]bool{"DisruptionBlocked": true, "FailedDraining": true}

// hear reads what Karpenter says in its events: why the oldest outdated or retiring node of each pool is still there, or the oldest
// rotating one, why pods have no node, and which instances EC2 takes. Where there are neither pods nor such nodes, it reads only what is
// said of NodeClaims, and without nodes nothing.
func (v *view) hear(ctx context.Context, client *k8s.Client) error {
	about, fields := v.oldest(), "source=karpenter"
	if len(about)+len(v.waiters) == 0 {
		if !v.counts() {
			return nil
		}
		fields += ",involvedObject.kind=" + k8s.NodeClaim.Name
	}
	last := map[string]*corev1.Event{}
	err := client.Where(ctx, k8s.Event, fields, func(object *unstructured.Unstructured) error {
		e, err := k8s.AsEvent(object)
		if err != nil {
			return nil // only another program's event can be unreadable
		}
		v.interrupts(e)
		if v.now.Sub(k8s.LastSeen(e)) > recent {
			return nil
		}
		v.hears(e)
		p := about[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name]
		if p == nil || !blocks[e.Reason] {
			return nil
		}
		if before := last[p.Pool.Pool]; before == nil || tellsMore(e, before) {
			last[p.Pool.Pool], p.Held = e, outcome.ShortenTo(mostHeld, e.Message)
		}
		return nil
	})
	for _, p := range about {
		if refused, known := v.refused[p.Pool.Pool]; known && p.Held == "" { // Karpenter ends no node before its replacement is there
			p.Held = outcome.ShortenTo(mostHeld, "launches of the pool fail: "+refused.words)
		}
	}
	return err
}

// oldest returns the pools by the objects about which Karpenter says why their oldest node is still there.
func (v *view) oldest() map[string]*pool {
	about := map[string]*pool{}
	for name, p := range v.pools {
		if p.oldest.claim == "" {
			p.oldest = p.aged
		}
		if p.oldest.claim != "" {
			about["NodePool/"+name], about["NodeClaim/"+p.oldest.claim], about["Node/"+p.oldest.node] = p, p, p
		}
	}
	return about
}

// tellsMore reports whether an event says more than another one: what is said of the node itself does, compared with what is
// said of the pool, and otherwise the later one.
func tellsMore(e, than *corev1.Event) bool {
	if ofPool := e.InvolvedObject.Kind == k8s.NodePool.Name; ofPool != (than.InvolvedObject.Kind == k8s.NodePool.Name) {
		return !ofPool
	}
	return k8s.LastSeen(e).After(k8s.LastSeen(than))
}

// oldest is a NodeClaim and its node. It keeps no more of it, because the pages of a list are large.
type oldest struct {
	claim, node string
	created     time.Time
}

// candidate notes a NodeClaim, unless an older one has been noted.
func (o *oldest) candidate(claim *unstructured.Unstructured) {
	name, created := claim.GetName(), claim.GetCreationTimestamp().Time
	if old := *o; old.claim != "" && (old.created.Before(created) || old.created.Equal(created) && old.claim < name) {
		return
	}
	node, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	*o = oldest{name, node, created}
}
