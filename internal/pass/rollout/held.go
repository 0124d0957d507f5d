package rollout

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/disruption"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

const (
	// recent is how old an event of Karpenter's may be that still holds. Karpenter repeats it every two minutes.
	recent = 10 * time.Minute
	// mostHeld is the length in bytes to which Karpenter's words about a node are cut.
	mostHeld = 200
)

// blocks are the reasons of Karpenter's events that say why a node is still there. They are about the Node or the NodeClaim. What it
// says of a NodePool whose budgets allow nothing is not heard: it is said for each reason of a disruption, without what is behind it.
var blocks = map[string]bool{"DisruptionBlocked": true, "FailedDraining": true}

// hear reads what Karpenter says in its events: why the oldest outdated or retiring node of each pool is still there, or the oldest
// rotating one, why pods have no node, why a static pool lacks nodes, and which instances EC2 takes. Where there are neither pods nor
// such nodes, it reads only what is said of NodeClaims, and without nodes nothing.
func (v *view) hear(ctx context.Context, client *k8s.Client) error {
	about, fields := v.oldest(), "source=karpenter"
	if len(about)+len(v.waiters) == 0 {
		if !v.counts() && !v.lacking() {
			return nil
		}
		fields += ",involvedObject.kind=" + k8s.NodeClaim.Name
	}
	last := map[*pool]*corev1.Event{}
	err := client.Where(ctx, k8s.Event, fields, func(object *unstructured.Unstructured) error {
		e, err := k8s.As[corev1.Event](object)
		if err != nil {
			return nil // only another program's event can be unreadable
		}
		v.interrupts(e)
		if v.now.Sub(k8s.LastSeen(e)) > recent {
			return nil
		}
		v.hears(e)
		if p := about[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name]; p != nil && blocks[e.Reason] {
			last[p] = later(last[p], e)
		}
		return nil
	})
	_ = v.notReady(ctx, client) // without it, one reason less is known; pods that wait and interruptions are reported all the same
	for _, p := range about {
		p.Held = outcome.ShortenTo(mostHeld, v.held(p, last[p]))
	}
	return err
}

// held returns why the oldest node of a pool is still there: what Karpenter has said of it last, and the brakes; or without a brake why
// launches fail, because Karpenter ends no node before its replacement is there.
func (v *view) held(p *pool, said *corev1.Event) string {
	var keeps, brakes []string
	if said != nil {
		keeps = append(keeps, said.Message)
	}
	if !p.oldest.going {
		brakes = p.brakes.Keeps("Drifted", v.now)
	}
	if refused, known := v.refused[p.Pool.Pool]; known && len(brakes) == 0 {
		p.unreplaced = true
		keeps = append(keeps, "launches of the pool fail: "+refused.words)
	}
	return strings.Join(append(keeps, brakes...), "; ")
}

// lacking reports whether a static pool has fewer nodes than it is to have.
func (v *view) lacking() bool {
	for _, p := range v.pools {
		if p.lacks() {
			return true
		}
	}
	return false
}

// notReady counts the nodes that are not Ready, where no other brake holds the oldest node of a pool.
func (v *view) notReady(ctx context.Context, client *k8s.Client) error {
	var pools []string
	for name, p := range v.pools {
		if p.oldest.claim != "" && !p.oldest.going && len(p.brakes.Keeps("Drifted", v.now)) == 0 {
			pools = append(pools, name)
		}
	}
	if len(pools) == 0 {
		return nil
	}
	ofPools := ownership.LabelPool + " in (" + strings.Join(pools, ",") + ")"
	return client.Each(ctx, k8s.Node, "", ofPools, func(node *unstructured.Unstructured) error {
		p := v.pools[node.GetLabels()[ownership.LabelPool]]
		if status, _, _ := k8s.Condition(node, "Ready"); status != "True" && p.stay[node.GetName()] {
			p.brakes.NotReady()
		}
		return nil
	})
}

// freezes gives the pools the budgets of their NodePools, which are all of the rack.
func (v *view) freezes(objects []unstructured.Unstructured) {
	all := make([][]disruption.Budget, len(objects))
	for i := range objects {
		var pool struct {
			Spec struct {
				Disruption struct {
					Budgets []disruption.Budget `json:"budgets"`
				} `json:"disruption"`
			} `json:"spec"`
		}
		// The API server takes no others.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &pool)
		all[i] = pool.Spec.Disruption.Budgets
	}
	frozen := disruption.Frozen(all...)
	for i := range objects {
		if p := v.pools[objects[i].GetName()]; p != nil {
			p.brakes = disruption.Pool{Budgets: all[i], Frozen: frozen}
		}
	}
}

// oldest returns the pools by the objects about which Karpenter says why their oldest node is still there.
func (v *view) oldest() map[string]*pool {
	about := map[string]*pool{}
	for _, p := range v.pools {
		if p.oldest.claim == "" {
			p.oldest = p.aged
		}
		if p.oldest.claim != "" {
			about["NodeClaim/"+p.oldest.claim], about["Node/"+p.oldest.node] = p, p
		}
	}
	return about
}

// oldest is a NodeClaim and its node. It keeps no more of it, because the pages of a list are large.
type oldest struct {
	claim, node string
	created     time.Time
	going       bool // Karpenter has begun with it
}

// candidate notes a NodeClaim, unless an older one has been noted.
func (o *oldest) candidate(claim *unstructured.Unstructured, going bool) {
	name, created := claim.GetName(), claim.GetCreationTimestamp().Time
	if old := *o; old.claim != "" && (old.created.Before(created) || old.created.Equal(created) && old.claim < name) {
		return
	}
	*o = oldest{name, nodeOf(claim), created, going}
}

func nodeOf(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	return name
}
