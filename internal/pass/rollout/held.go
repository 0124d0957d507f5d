package rollout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

const (
	// said is how old an event of Karpenter's may be that still holds. Karpenter repeats it every two minutes.
	said = 10 * time.Minute
	// mostHeld is the length in bytes to which Karpenter's words about a node are cut.
	mostHeld = 200
)

// blocks are the reasons of Karpenter's events that say why a node is still there. They are about the Node, the NodeClaim or, if
// its budgets allow nothing, the NodePool.
var blocks = map[string]bool{"DisruptionBlocked": true, "FailedDraining": true}

// hold adds why the oldest outdated or retiring node of each pool is still there. It is what Karpenter says in its events, which are
// in the namespace default, because they are about objects without one. Events that cannot be read are not an error.
func (v *view) hold(ctx context.Context, client *k8s.Client) {
	about := map[string]*pool{}
	for name, p := range v.pools {
		if p.oldest.claim != "" {
			about["NodePool/"+name], about["NodeClaim/"+p.oldest.claim], about["Node/"+p.oldest.node] = p, p, p
		}
	}
	if len(about) == 0 {
		return
	}
	last := map[string]string{}
	_ = client.Each(ctx, k8s.Event, "default", "", func(event *unstructured.Unstructured) error {
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(event.Object, path...)
			return value
		}
		kind, at := text("involvedObject", "kind"), text("lastTimestamp")
		p := about[kind+"/"+text("involvedObject", "name")]
		when, err := time.Parse(time.RFC3339, at)
		if p == nil || err != nil || !blocks[text("reason")] || v.now.Sub(when) > said {
			return nil
		}
		own := "" // what is said of the node itself says more than what is said of the pool
		if kind != k8s.NodePool.Name {
			own = "node "
		}
		if name := p.Pool.Pool; own+at > last[name] {
			last[name], p.Held = own+at, outcome.ShortenTo(mostHeld, text("message"))
		}
		return nil
	})
}

// oldest is a NodeClaim and its node. It keeps no more of it, because the pages of a list are large.
type oldest struct {
	claim, node string
	created     time.Time
}

// candidate notes the oldest outdated or retiring node of a pool.
func (p *pool) candidate(claim *unstructured.Unstructured) {
	name, created := claim.GetName(), claim.GetCreationTimestamp().Time
	if old := p.oldest; old.claim != "" && (old.created.Before(created) || old.created.Equal(created) && old.claim < name) {
		return
	}
	node, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	p.oldest = oldest{name, node, created}
}
