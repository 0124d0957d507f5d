package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	// waits is how long a pod may wait for its node. Most have one within a minute or two.
	waits = 10 * time.Minute
	// mostWaiting is how many pods are counted, so that those of a cluster where nothing runs fit into the function's time.
	mostWaiting = 1000
	// pending selects the pods without a node.
	pending = "spec.nodeName=,status.phase=Pending"
)

// errEnough ends a list of pods.
var errEnough = errors.New("these are enough")

// waiter is a pod that has waited too long for a node.
type waiter struct {
	name    string
	since   time.Time
	message string // the scheduler's
	// requests are what it requests of a node.
	requests corev1.ResourceList
	// avoids means that it takes no node of Karpenter's, which then says nothing about it.
	avoids bool
	// failed and nominated are Karpenter's last events about the pod: that it cannot have a node, and which one it is to have.
	failed, nominated *corev1.Event
}

// wait finds the pods that have waited too long for a node. Where none do, that is one request.
func (v *view) wait(ctx context.Context, client *k8s.Client) error {
	err := client.Where(ctx, k8s.Pod, pending, func(object *unstructured.Unstructured) error {
		pod, err := k8s.As[corev1.Pod](object)
		if err != nil {
			return err
		}
		since, message := k8s.Unschedulable(pod)
		if message == "" || v.now.Sub(since) < waits || pod.DeletionTimestamp != nil || k8s.OfDaemonSet(pod) {
			return nil
		}
		v.waiters[pod.UID] = &waiter{name: pod.Namespace + "/" + pod.Name, since: since, message: message, requests: k8s.Requests(pod),
			avoids: avoids(pod)}
		if len(v.waiters) == mostWaiting {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// avoids reports whether a pod requires nodes that no NodePool has. Karpenter publishes no events about such pods.
func avoids(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, r := range term.MatchExpressions {
			if r.Key == ownership.LabelPool && r.Operator == corev1.NodeSelectorOpDoesNotExist {
				return true
			}
		}
	}
	return false
}

// launches notes why a NodeClaim has no instance, in Karpenter's words. Without its name: Karpenter tries again with another one, and the
// status would be written again for each.
func (v *view) launches(pool string, claim *unstructured.Unstructured) {
	status, _, text := k8s.Condition(claim, "Launched")
	if status != "True" && text != "" && !strings.Contains(text, "AwaitingReconciliation") {
		v.refuses(pool, refusal{words: k8s.NodeClaim.Name + ": " + text, at: v.now})
	}
}

// refusal says why a launch has failed.
type refusal struct {
	words string
	at    time.Time
	// last is when a launch of the pool was refused last, in whatever words.
	last time.Time
}

// remembers reports whether Karpenter has not even asked EC2, because EC2 has refused all of it within the last minutes.
func (r refusal) remembers() bool { return strings.Contains(r.words, remembers) }

// refuses notes the last refusal of a pool's launches. One in EC2's words says more than that Karpenter remembers it.
func (v *view) refuses(pool string, new refusal) {
	had, known := v.refused[pool]
	last := new.at
	if had.last.After(last) {
		last = had.last
	}
	if known && !(had.remembers() && !new.remembers() || had.remembers() == new.remembers() && new.at.After(had.at)) {
		new = had
	}
	new.last = last
	v.refused[pool] = new
}

// remembers are Karpenter's words for what it has not asked EC2 again.
const remembers = "unavailable during launch"

// hears notes an event of Karpenter that says why pods have no node.
func (v *view) hears(e *corev1.Event) {
	pod := v.waiters[e.InvolvedObject.UID]
	switch {
	case e.Reason == "InsufficientCapacityError":
		v.refuses(k8s.PoolOf(e.InvolvedObject.Name), refusal{words: k8s.Said(e), at: k8s.LastSeen(e)})
	case pod != nil && e.Reason == "FailedScheduling":
		pod.failed = later(pod.failed, e)
	case pod != nil && e.Reason == "Nominated":
		pod.nominated = later(pod.nominated, e)
	}
}

func later(a, b *corev1.Event) *corev1.Event {
	if a != nil && k8s.LastSeen(a).After(k8s.LastSeen(b)) {
		return a
	}
	return b
}

// waiting returns what the pods wait for, by cause, in the words about the pod that waits longest.
func (v *view) waiting() (all store.Waiting) {
	by := map[events.Cause]events.Wait{}
	for _, uid := range v.oldestFirst() {
		pod := v.waiters[uid]
		cause, reason := v.cause(pod)
		wait, known := by[cause]
		if !known {
			wait = events.Wait{Cause: cause, Oldest: pod.name, Since: pod.since.UTC().Format(time.RFC3339),
				Reason: outcome.ShortenTo(mostReason, reason)}
		}
		wait.Pods++
		by[cause] = wait
	}
	for _, c := range events.Causes {
		if wait, found := by[c.Cause]; found {
			all = append(all, wait)
		}
	}
	return all
}

func (v *view) oldestFirst() []types.UID {
	var all []types.UID
	for uid := range v.waiters {
		all = append(all, uid)
	}
	slices.SortFunc(all, func(a, b types.UID) int {
		one, other := v.waiters[a], v.waiters[b]
		return cmp.Or(one.since.Compare(other.since), strings.Compare(one.name, other.name))
	})
	return all
}

// toPool finds the NodeClaim that Karpenter has made for a pod.
var toPool = regexp.MustCompile(`nodeclaim/([a-z0-9.-]+)`)

// cause returns why a pod has no node, with the words for that. A pod for which Karpenter has made a NodeClaim waits for what keeps
// the launches of that pool. Once EC2 has refused all instance types of a pool, Karpenter leaves the pool out and names the
// reasons of the others, so that the refusal says more.
func (v *view) cause(pod *waiter) (events.Cause, string) {
	failed, pool, nominated := "", "", pod.nominated
	if nominated == nil && pod.failed == nil && !pod.avoids {
		nominated = v.together(pod)
	}
	if nominated != nil {
		if claim := toPool.FindStringSubmatch(nominated.Message); claim != nil {
			pool = k8s.PoolOf(claim[1])
		}
	}
	if pod.failed != nil && later(pod.nominated, pod.failed) == pod.failed {
		failed = k8s.Said(pod.failed)
	}
	refused := v.refused[pool].words
	if strings.Contains(failed, "offering") || strings.Contains(failed, "filtered out all") {
		refused = cmp.Or(refused, v.anyRefusal())
	}
	limited := v.limited(pod, failed)
	// Karpenter adds an error code of its own, UnfulfillableCapacity, whatever EC2's fleet has answered.
	fleet, _, _ := strings.Cut(refused, " (aws-error-code=")
	switch {
	case k8s.OverLimit(failed, v.retires):
		return events.CauseLimit, failed
	case limited != "":
		return events.CauseLimit, limited + ": " + failed
	case slices.ContainsFunc(exhausted, func(word string) bool { return strings.Contains(fleet, word) }):
		return events.CauseCapacity, refused
	case refused != "":
		return events.CauseRefused, refused
	case failed != "":
		return events.CauseUnfit, failed
	case pod.avoids:
		return events.CauseUnfit, "it takes no node of a NodePool (karpenter.sh/nodepool DoesNotExist); the scheduler: " + pod.message
	case nominated != nil:
		return events.CauseStarting, k8s.Said(nominated)
	}
	return events.CauseSilent, "the scheduler: " + pod.message
}

// burst is how far apart pods began to wait that came together.
const burst = time.Minute

// together returns the last event that nominates a node for a pod that came with another one. Karpenter says this of some ten of the
// pods that come together, and of the others nothing (pkg/controllers/provisioning/scheduling/events.go).
func (v *view) together(pod *waiter) (last *corev1.Event) {
	for _, uid := range v.oldestFirst() {
		if other := v.waiters[uid]; other.nominated != nil && other.since.Sub(pod.since).Abs() <= burst {
			last = later(last, other.nominated)
		}
	}
	return last
}

// retires reports whether a pool is being removed.
func (v *view) retires(pool string) bool { return slices.Contains(v.retiring, pool) }

// tooSmall finds the pools of which Karpenter says that no instance type is large enough for a pod.
var tooSmall = regexp.MustCompile(`enough resources[^;]* karpenter\.sh/nodepool In \[([^\]]+)\]`)

// limited says which pool's limit leaves less than a pod requests, if Karpenter has left out the instance types that would exceed the
// limit, and then found the others too small.
func (v *view) limited(pod *waiter, failed string) string {
	for _, found := range tooSmall.FindAllStringSubmatch(failed, -1) {
		p := v.pools[found[1]]
		if p == nil || p.object == nil {
			continue
		}
		limits, _, _ := unstructured.NestedMap(p.object.Object, "spec", "limits")
		used, _, _ := unstructured.NestedStringMap(p.object.Object, "status", "resources")
		for _, name := range []string{"cpu", "memory"} {
			left, err := resource.ParseQuantity(fmt.Sprint(limits[name]))
			if err != nil { // there is no limit
				continue
			}
			if runs, err := resource.ParseQuantity(used[name]); err == nil {
				left.Sub(runs)
			}
			if wanted := pod.requests[corev1.ResourceName(name)]; left.Cmp(wanted) < 0 {
				return fmt.Sprintf("the limit of NodePool %s leaves %s of %s", found[1], left.String(), name)
			}
		}
	}
	return ""
}

// exhausted are the words for EC2's lack of capacity. The other codes for which Karpenter says InsufficientCapacityError are those
// of quotas and of what the account lacks.
var exhausted = []string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "ReservationCapacityExceeded", remembers}

// anyRefusal returns the words of the first pool that has any.
func (v *view) anyRefusal() string {
	for _, pool := range slices.Sorted(maps.Keys(v.refused)) {
		return v.refused[pool].words
	}
	return ""
}
