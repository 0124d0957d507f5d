package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sawhorse-io/sawhorse/internal/disruption"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	// unready is how long a pool may be without the condition Ready before it counts as degraded. Karpenter sets the
	// condition to Unknown for seconds when an object changes.
	unready = time.Minute
	// registering is how long a node may take from its launch until it registers. Most take one minute. With ticks of five
	// minutes, a node that does not register is reported within ten.
	registering = 4 * time.Minute
	// registeringMetal is the same for bare metal, which takes longer to boot.
	registeringMetal = 14 * time.Minute
	// givesUp is how long Karpenter waits for a node to register before it deletes its NodeClaim.
	givesUp = 15 * time.Minute
)

// running reads the NodePools, EC2NodeClasses and NodeClaims of a rack, and the pods of its cluster that wait for a node. It
// returns what it has found of a rack, and the interruptions by kind.
func (r *Rollout) running(ctx context.Context, client *k8s.Client, was store.Rollout, of slot) (
	next store.Rollout, interrupted map[string]int, err error) {
	known := slices.Clone(was.Names)
	for _, pool := range was.Pools {
		known = append(known, pool.Pool) // one that was removed since
	}
	set, err := client.PoolSet(ctx, was.Rack, known...)
	if err != nil {
		return was, nil, err
	}
	v := newView(was, set, r.Now())
	v.slot = of
	// One page of NodeClaims at a time: all those of a large cluster would not fit into the function's memory.
	err = client.Each(ctx, k8s.NodeClaim, "", "", func(claim *unstructured.Unstructured) error {
		if set.Owns(claim) {
			v.count(claim)
		}
		return nil
	})
	if err == nil {
		err = v.wait(ctx, client)
	}
	if err != nil {
		return was, nil, err
	}
	emptied := v.emptied()
	if err := v.hear(ctx, client); err != nil && (len(v.waiters) > 0 || v.lacking()) { // what holds a node need not be known
		return was, nil, err
	}
	next = was
	next.Pools, next.Emptied, next.Waiting, next.Latest = v.result(), emptied, v.waiting(), v.latest(was.Latest)
	return next, v.interrupted(), nil
}

// view is what a node check has found so far.
type view struct {
	now time.Time
	// before has the pools as they were last reported.
	before map[string]store.Pool
	pools  map[string]*pool
	// waiters are the pods that have waited too long for a node, and refused says why launches of a pool have failed.
	waiters map[types.UID]*waiter
	refused map[string]refusal
	// retiring are the NodePools that are being removed.
	retiring []string
	// taken are the interruptions by NodeClaim, of which those in the slot count.
	slot  slot
	taken map[string]*interruption
}

// pool is what was found of one pool.
type pool struct {
	store.Pool
	// object and class are its NodePool and its EC2NodeClass; nil if they do not exist.
	object, class *unstructured.Unstructured
	// removed means that the plan does not have the pool any more: it is retiring, or being deleted.
	removed bool
	// oldest is the oldest outdated or retiring node, aged the oldest rotating one.
	oldest, aged oldest
	// brakes are what of the NodePool lets no node go, and stay the nodes that Karpenter has not begun with.
	brakes disruption.Pool
	stay   map[string]bool
	// unreplaced means that launches fail, and no brake keeps the oldest node. launched is when a node was last launched.
	unreplaced bool
	launched   time.Time
	// since is the earliest time at which something began that is to be reported.
	since time.Time
	// unregistered are the nodes that have not registered, and registered is when one last did.
	unregistered []unregistered
	registered   time.Time
	// latest has the images that the pool's alias @latest names, and older is how many nodes run another one.
	latest followed
	older  int
}

func newView(was store.Rollout, set k8s.PoolSet, now time.Time) *view {
	v := &view{now: now, before: map[string]store.Pool{}, pools: map[string]*pool{},
		waiters: map[types.UID]*waiter{}, refused: map[string]refusal{}, taken: map[string]*interruption{}}
	for _, one := range was.Pools {
		v.before[one.Pool] = one
	}
	for _, name := range was.Names {
		v.pools[name] = &pool{Pool: store.Pool{Pool: name}}
	}
	for i := range set.Pools {
		object := &set.Pools[i]
		name := object.GetName()
		_, retiring := object.GetLabels()[ownership.Retiring]
		if retiring {
			v.retiring = append(v.retiring, name)
		}
		if retiring || v.pools[name] == nil && object.GetDeletionTimestamp() == nil { // made by a pass that has not been Reconciled
			v.pools[name] = &pool{Pool: store.Pool{Pool: name, Ready: retiring}, removed: retiring}
		}
		if p := v.pools[name]; p != nil {
			p.object = object
		}
	}
	for i := range set.Classes {
		if p := v.pools[set.Classes[i].GetName()]; p != nil {
			p.class, p.latest = &set.Classes[i], follows(&set.Classes[i])
		}
	}
	v.freezes(set.Pools)
	return v
}

// count adds a NodeClaim to its pool.
func (v *view) count(claim *unstructured.Unstructured) {
	name := claim.GetLabels()[ownership.LabelPool]
	p := v.pools[name]
	if p == nil {
		p = &pool{Pool: store.Pool{Pool: name, Ready: true}, removed: true}
		v.pools[name] = p
	}
	if p.Nodes++; p.stay == nil {
		p.stay = map[string]bool{}
	}
	going, stays := p.brakes.Count(claim.GetDeletionTimestamp() != nil, func(kind string) bool {
		status, _, _ := k8s.Condition(claim, kind)
		return status == "True"
	})
	if stays {
		p.stay[nodeOf(claim)] = true
	}
	if p.latest.older(claim) {
		p.older++
	}
	v.launches(name, claim)
	drifted, drifts, why := k8s.Condition(claim, "Drifted")
	switch {
	case p.rotates(claim, drifted, why):
		p.aged.candidate(claim, going)
		p.Rotating++
	case p.removed || drifted == "True" || p.outdates(claim):
		if p.oldest.candidate(claim, going); p.removed {
			p.Retiring++
		} else {
			p.Outdated++
		}
		if drifted != "True" {
			drifts = time.Time{}
		}
		p.begins(drifts)
	}
	if p.removed || claim.GetDeletionTimestamp() != nil {
		return
	}
	launched, start, _ := k8s.Condition(claim, "Launched")
	if launched == "True" && start.After(p.launched) {
		p.launched = start
	}
	registered, at, text := k8s.Condition(claim, "Registered")
	switch {
	case launched != "True":
	case registered != "True":
		late := v.now.Sub(start) >= patience(claim)
		p.unregistered = append(p.unregistered, unregistered{claim.GetName() + ": " + text, start, late})
	case at.After(p.registered):
		p.registered = at
	}
}

// unregistered is a node that was launched and has not registered. late means that it has had its time.
type unregistered struct {
	text  string
	start time.Time
	late  bool
}

// patience returns how long a node may take to register.
func patience(claim *unstructured.Unstructured) time.Duration {
	if strings.Contains(claim.GetLabels()["node.kubernetes.io/instance-type"], ".metal") {
		return registeringMetal
	}
	return registering
}

// stuck counts the nodes that do not register, and describes one: the same one in every look. While earlier ones have not, and none has
// since Karpenter gave up on those, young ones have no time: otherwise the rack would seem to recover each time that it launches another.
func (p *pool) stuck(before store.Pool, now time.Time) (text string) {
	hopeless := before.Unregistered > 0 && now.Sub(p.registered) >= givesUp
	for _, one := range p.unregistered {
		if !one.late && !hopeless {
			continue
		}
		p.Unregistered++
		p.begins(one.start)
		if text == "" || one.text < text {
			text = one.text
		}
	}
	return text
}

// begins notes when something began that is to be reported. The zero time is now.
func (p *pool) begins(since time.Time) {
	if !since.IsZero() && (p.since.IsZero() || since.Before(p.since)) {
		p.since = since
	}
}

// outdates reports whether a NodeClaim carries another hash than its NodePool or its EC2NodeClass.
func (p *pool) outdates(claim *unstructured.Unstructured) bool {
	annotations := func(object *unstructured.Unstructured) map[string]string {
		if object == nil {
			return nil
		}
		return object.GetAnnotations()
	}
	return disruption.Outdated(claim.GetAnnotations(), annotations(p.object), annotations(p.class))
}

// rotates reports whether Karpenter is to replace a node because of its age alone: it would not be drifted with its own hash.
func (p *pool) rotates(claim *unstructured.Unstructured, drifted, why string) bool {
	if _, marked := claim.GetLabels()[ownership.Rotating]; !marked || p.removed ||
		drifted == "True" && !strings.Contains(why, "NodePoolDrifted") {
		return false
	}
	own := claim.DeepCopy()
	version, hash, _ := strings.Cut(claim.GetAnnotations()[ownership.AnnotationHash], "/")
	k8s.SetAnnotation(own, ownership.NodePoolHashVersion, version)
	k8s.SetAnnotation(own, ownership.NodePoolHash, hash)
	return !p.outdates(own)
}

// emptied takes out the retiring pools without nodes, and returns those that nobody deletes yet.
func (v *view) emptied() (names []string) {
	for name, p := range v.pools {
		if !p.removed || p.Nodes > 0 {
			continue
		}
		delete(v.pools, name)
		if p.object != nil && p.object.GetDeletionTimestamp() == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// result returns the pools, sorted by name.
func (v *view) result() store.Pools {
	var all store.Pools
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		p := v.pools[name]
		if !p.removed {
			p.judge(v.before[name], v.now)
			p.launches(v.refused[name], v.before[name], v.now)
		}
		if p.Ready && p.Outdated+p.Retiring == 0 && p.Unregistered == 0 && p.Reason == "" && p.since.IsZero() {
			all = append(all, p.Pool)
			continue
		}
		if p.Since = v.before[name].Since; p.Since == "" {
			if p.since.IsZero() {
				p.since = v.now
			}
			p.Since = p.since.UTC().Format(time.RFC3339)
		}
		all = append(all, p.Pool)
	}
	return all
}

// judge finds out whether a pool is Ready, and why it is degraded. before is the pool as it was last reported.
func (p *pool) judge(before store.Pool, now time.Time) {
	var why string
	var since time.Time
	stuck := p.stuck(before, now)
	if p.Ready, why, since = p.ready(); !p.Ready {
		if began, err := time.Parse(time.RFC3339, before.Since); since.IsZero() && err == nil && !before.Ready {
			since = began
		}
		p.begins(since)
		if !since.IsZero() && now.Sub(since) >= unready {
			p.Reason = outcome.ShortenTo(mostReason, why)
		}
		return
	}
	if healthy, began, text := k8s.Condition(p.object, "NodeRegistrationHealthy"); healthy == "False" {
		p.begins(began)
		p.Reason = outcome.ShortenTo(mostReason, "NodePool/"+p.Pool.Pool+": "+text)
	}
	if p.Unregistered > 0 { // which says more than the NodePool's condition
		p.Reason = outcome.ShortenTo(mostReason, fmt.Sprintf("%d of %d nodes do not register: NodeClaim/%s", p.Unregistered, p.Nodes, stuck))
	}
}

// lacks reports whether a static pool has fewer nodes than it is to have.
func (p *pool) lacks() bool {
	if p.object == nil || p.removed {
		return false
	}
	replicas, _, _ := unstructured.NestedInt64(p.object.Object, "spec", "replicas")
	return int64(p.Nodes) < replicas
}

// launches finds out whether a pool is degraded because nodes are not launched for which no pod waits: those that a static pool lacks, and
// those in place of others. One look may see what passes, so one counts that fails after it too, and none after a node was launched. While
// Karpenter tries to launch the replacement of one node, the budget may keep the others. before is the pool as it was last reported.
func (p *pool) launches(refused refusal, before store.Pool, now time.Time) {
	wanted := p.unreplaced || p.lacks() || before.Failing != "" && p.Outdated+p.Rotating > 0
	if refused.words == "" || !wanted || p.launched.After(refused.last) {
		return
	}
	since, err := time.Parse(time.RFC3339, before.Failing)
	if err != nil {
		since = now
	}
	p.Failing = since.UTC().Format(time.RFC3339)
	if p.begins(since); refused.last.After(since) && now.Sub(since) >= unready && p.Reason == "" {
		p.Reason = outcome.ShortenTo(mostReason, "launches of the pool fail: "+refused.words)
	}
}

// ready reports whether the NodePool and the EC2NodeClass are Ready. Otherwise it returns Karpenter's reason, and since
// when; the zero time if that is not known. The EC2NodeClass comes first: without it no NodePool is Ready.
func (p *pool) ready() (ready bool, why string, since time.Time) {
	for _, one := range []struct {
		kind   string
		object *unstructured.Unstructured
	}{{"EC2NodeClass", p.class}, {"NodePool", p.object}} {
		if one.object == nil {
			return false, one.kind + "/" + p.Pool.Pool + " does not exist", time.Time{}
		}
		if at := one.object.GetDeletionTimestamp(); at != nil {
			return false, one.kind + "/" + p.Pool.Pool + " is being deleted", at.Time
		}
		if ready, why := k8s.Ready(one.object); !ready {
			status, since, _ := k8s.Condition(one.object, "Ready")
			if status == "True" { // it was Ready before its last change, which nobody has looked at yet
				since = time.Time{}
			}
			return false, one.kind + "/" + p.Pool.Pool + ": " + why, since
		}
	}
	return true, "", time.Time{}
}

// mostReason is the length in bytes to which a reason is cut, so that a few degraded pools fit into the status.
const mostReason = 300
