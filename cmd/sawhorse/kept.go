package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sawhorse-io/sawhorse/internal/disruption"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// reason is the answer: of a node, or of a pool with its nodes and the first of them that should go.
type reason struct {
	Pool *poolReason `json:"pool,omitempty"`
	Node *nodeReason `json:"node,omitempty"`
}

type poolReason struct {
	Name    string        `json:"name"`
	Ready   string        `json:"ready"`
	Budgets []string      `json:"budgets"`
	Nodes   []*nodeReason `json:"nodes"`
}

// nodeReason is why a node is there.
type nodeReason struct {
	Name        string    `json:"node"`
	Claim       string    `json:"nodeClaim"`
	Pool        string    `json:"pool"`
	Type        string    `json:"instanceType"`
	Capacity    string    `json:"capacityType"`
	Zone        string    `json:"zone"`
	DollarsHour *float64  `json:"dollarsAnHour,omitempty"`
	Since       time.Time `json:"since"`
	Because     string    `json:"because"`
	State       []string  `json:"state"`
	// Keeps are what keeps the node: budgets, windows, PodDisruptionBudgets, annotations, and Karpenter's own words.
	Keeps []string `json:"keeps"`
	Next  string   `json:"next"`

	age    time.Duration
	offer  offer
	region string
	goes   bool // it should go: it is ending, outdated, or of a retiring pool
}

// pool returns the answer for a pool. Its nodes that should go come first, then the oldest.
func (s *seen) pool(pool *nodePool) reason {
	p := &poolReason{Name: pool.Name, Ready: "Ready", Budgets: []string{}, Nodes: []*nodeReason{}}
	for _, c := range pool.Status.Conditions {
		if c.Type == "Ready" && c.Status != metav1.ConditionTrue {
			p.Ready = strings.TrimSpace("not Ready: " + c.Reason + " " + c.Message)
		}
	}
	for _, b := range pool.Spec.Disruption.Budgets {
		if b.Active(s.now) {
			p.Budgets = append(p.Budgets, b.String()+", in force now")
		} else {
			p.Budgets = append(p.Budgets, b.String()+", not in force now")
		}
	}
	for i := range s.claims {
		if s.claims[i].Labels[ownership.LabelPool] == pool.Name {
			p.Nodes = append(p.Nodes, s.explain(&s.claims[i]))
		}
	}
	slices.SortFunc(p.Nodes, func(a, b *nodeReason) int {
		switch {
		case a.goes && !b.goes:
			return -1
		case b.goes && !a.goes:
			return 1
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Claim, b.Claim))
	})
	r := reason{Pool: p}
	if len(p.Nodes) > 0 {
		r.Node = p.Nodes[0]
	}
	return r
}

// explain returns why a NodeClaim's node is there.
func (s *seen) explain(claim *nodeClaim) *nodeReason {
	n := &nodeReason{
		Name: cmp.Or(claim.Status.NodeName, "(none yet)"), Claim: claim.Name, Pool: claim.Labels[ownership.LabelPool],
		Type: claim.Labels[corev1.LabelInstanceTypeStable], Capacity: claim.Labels["karpenter.sh/capacity-type"],
		Zone: claim.Labels[corev1.LabelTopologyZone], Since: claim.CreationTimestamp.UTC(), age: s.now.Sub(claim.CreationTimestamp.Time),
		Because: because(claim), Keeps: []string{},
	}
	node := s.nodes[claim.Status.NodeName]
	if node != nil {
		n.offer, n.region = offerOf(node), node.Labels[corev1.LabelTopologyRegion]
	}
	why := s.disruption(claim, n)
	s.pins(claim, why, node, n)
	s.budgets(claim, why, n)
	s.said(claim, n)
	n.Next = s.next(claim, why, n)
	return n
}

// because says what Karpenter asked EC2 for.
func because(claim *nodeClaim) string {
	types := 0
	for _, r := range claim.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable {
			types = len(r.Values)
		}
	}
	requests := claim.Spec.Resources.Requests
	asked := fmt.Sprintf("pods asked for %s vCPU and %s of memory", requests.Cpu(), requests.Memory())
	switch claim.Labels["karpenter.sh/capacity-type"] {
	case "reserved":
		return fmt.Sprintf("%s; it takes a capacity reservation (%s), which is paid for in any case", asked,
			cmp.Or(claim.Labels["karpenter.k8s.aws/capacity-reservation-id"], "not named"))
	case "spot":
		return fmt.Sprintf("%s; of %d types that fit, EC2 chose by spot price and by how likely an interruption is", asked, types)
	default:
		return fmt.Sprintf("%s; of %d types that fit, EC2 chose the cheapest that it had", asked, types)
	}
}

// disruption notes the state of a NodeClaim, and returns the reason for which Karpenter would disrupt it ("" if there is none).
func (s *seen) disruption(claim *nodeClaim, n *nodeReason) (why string) {
	state := func(format string, args ...any) { n.State = append(n.State, fmt.Sprintf(format, args...)) }
	for _, kind := range []string{"Launched", "Registered", "Initialized"} {
		if c := claim.condition(kind); c.Status != metav1.ConditionTrue {
			state("not %s: %s", strings.ToLower(kind), strings.TrimSpace(c.Reason+" "+c.Message))
			break
		}
	}
	pool := s.pools[n.Pool]
	switch {
	case claim.Annotations[ownership.NodePoolHash] == ownership.Rotated:
		state("due for rotation")
	case pool == nil || disruption.Outdated(claim.Annotations, pool.Annotations, s.classOf(pool).Annotations):
		state("made from an earlier template of the pool")
	case pool.Annotations[ownership.NodePoolHashVersion] != claim.Annotations[ownership.NodePoolHashVersion]:
		state("made from a template whose hash cannot be compared with the pool's: Karpenter writes them anew after its upgrade")
	default:
		state("made from the pool's present template")
	}
	if drift := claim.condition("Drifted"); drift.Status == metav1.ConditionTrue {
		why = "Drifted"
		state("drifted since %s (%s)", drift.LastTransitionTime.UTC().Format(time.RFC3339), drift.Reason)
	} else if claim.condition("Consolidatable").Status == metav1.ConditionTrue {
		switch {
		case len(s.movable(claim)) == 0:
			why = "Empty"
			state("Karpenter may consolidate it")
		case pool != nil && pool.Spec.Disruption.ConsolidationPolicy == "WhenEmpty":
			state("Karpenter removes it when it is empty")
		default:
			why = "Underutilized"
			state("Karpenter may consolidate it")
		}
	}
	if node := s.nodes[claim.Status.NodeName]; node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == ownership.Retiring
	}) {
		n.goes = true
		state("its pool is retiring")
	}
	if claim.DeletionTimestamp != nil {
		why = "Ending"
		state("ending since %s", claim.DeletionTimestamp.UTC().Format(time.RFC3339))
	}
	n.goes = n.goes || why == "Drifted" || why == "Ending"
	return why
}

// running returns the pods of a NodeClaim's node that have not ended.
func (s *seen) running(claim *nodeClaim) (pods []*corev1.Pod) {
	all := s.pods[claim.Status.NodeName]
	for i := range all {
		if !k8s.Ended(all[i].Status.Phase) {
			pods = append(pods, &all[i])
		}
	}
	return pods
}

// movable returns those that would have to go elsewhere.
func (s *seen) movable(claim *nodeClaim) []*corev1.Pod {
	return slices.DeleteFunc(s.running(claim), func(pod *corev1.Pod) bool { return k8s.Stays(pod) })
}

// pins notes the annotations and PodDisruptionBudgets that keep the node, and a pinned image. Pods keep no drifted node that they may hold
// up for its terminationGracePeriod only (Karpenter's NewCandidate in pkg/controllers/disruption/types.go).
func (s *seen) pins(claim *nodeClaim, why string, node *corev1.Node, n *nodeReason) {
	keeps := func(format string, args ...any) { n.Keeps = append(n.Keeps, fmt.Sprintf(format, args...)) }
	if node != nil && node.Annotations[ownership.DoNotDisrupt] == "true" || claim.Annotations[ownership.DoNotDisrupt] == "true" {
		keeps("the node has the annotation %s", ownership.DoNotDisrupt)
	}
	pods, movable := s.running(claim), s.movable(claim)
	if why == "Drifted" && claim.Spec.TerminationGracePeriod != "" {
		pods, movable = nil, nil
	}
	for _, pod := range pods { // of a DaemonSet too
		switch stays := k8s.Undisturbed(pod, s.now); stays {
		case "":
		case ownership.DoNotDisrupt:
			keeps("pod %s/%s has the annotation %s", pod.Namespace, pod.Name, stays)
		default:
			keeps("pod %s/%s has the annotation %s, which Karpenter reads from 1.12 on", pod.Namespace, pod.Name, stays)
		}
	}
	for _, pod := range movable {
		for i := range s.pdbs {
			pdb := &s.pdbs[i]
			selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
			if err == nil && pdb.Namespace == pod.Namespace && pdb.Status.DisruptionsAllowed == 0 && selector.Matches(labels.Set(pod.Labels)) {
				keeps("PodDisruptionBudget %s/%s allows no eviction of pod %s now", pdb.Namespace, pdb.Name, pod.Name)
			}
		}
	}
	pool := s.pools[n.Pool]
	if pool == nil {
		return
	}
	if pool.Spec.Replicas != nil {
		keeps("the pool is static: it has %d nodes, whatever pods need", *pool.Spec.Replicas)
	}
	for _, term := range s.classOf(pool).Spec.AMISelectorTerms {
		if image := cmp.Or(term.ID, term.Alias); image != "" && !strings.HasSuffix(image, "@latest") {
			n.State = append(n.State, "its image is pinned: "+image)
		}
	}
}

// classOf returns the EC2NodeClass of a pool; an empty one if there is none.
func (s *seen) classOf(pool *nodePool) nodeClass {
	if class := s.classes[pool.Spec.Template.Spec.NodeClassRef.Name]; class != nil {
		return *class
	}
	return nodeClass{}
}

// budgets notes the freeze, and the pool's windows and budgets that let no node go now for a reason.
func (s *seen) budgets(of *nodeClaim, why string, n *nodeReason) {
	pool := s.pools[n.Pool]
	if pool == nil || why == "" {
		return
	}
	brakes := disruption.Pool{Budgets: pool.Spec.Disruption.Budgets, Frozen: s.frozen(pool.Labels[ownership.TagRack])}
	for i := range s.claims {
		claim := &s.claims[i]
		if claim.Labels[ownership.LabelPool] != n.Pool {
			continue
		}
		going, stays := brakes.Count(claim.DeletionTimestamp != nil, func(kind string) bool {
			return claim.condition(kind).Status == metav1.ConditionTrue
		})
		if claim == of && going {
			return
		}
		if node := s.nodes[claim.Status.NodeName]; stays && node != nil && !k8s.NodeReady(node) {
			brakes.NotReady()
		}
	}
	n.Keeps = append(n.Keeps, brakes.Keeps(why, s.now)...)
}

// frozen reports whether the freeze lies over a rack's pools.
func (s *seen) frozen(rack string) bool {
	var all [][]disruption.Budget
	for _, pool := range s.pools {
		if rack != "" && pool.Labels[ownership.TagRack] == rack {
			all = append(all, pool.Spec.Disruption.Budgets)
		}
	}
	return disruption.Frozen(all...)
}

// said notes Karpenter's own words about the node, its NodeClaim, or launches of its pool, which must replace it, that fail.
func (s *seen) said(claim *nodeClaim, n *nodeReason) {
	about := []string{"NodeClaim/" + claim.Name, "Node/" + claim.Status.NodeName, "NodePool/" + n.Pool}
	if said := s.words[launches+n.Pool]; said != "" && n.goes {
		n.Keeps = append(n.Keeps, "launches of the pool fail: "+said)
	}
	for _, object := range about {
		if said := "Karpenter says: " + s.words[object]; s.words[object] != "" && !slices.Contains(n.Keeps, said) { // of node and NodeClaim
			n.Keeps = append(n.Keeps, said)
		}
	}
}

// next says what becomes of the node.
func (s *seen) next(claim *nodeClaim, why string, n *nodeReason) string {
	held, pods := "", len(s.movable(claim))
	if len(n.Keeps) > 0 {
		held = ", as soon as nothing keeps it"
	}
	switch {
	case why == "Ending" && claim.Spec.TerminationGracePeriod != "":
		return fmt.Sprintf("it ends when its %d pods have gone, or after %s", pods, claim.Spec.TerminationGracePeriod)
	case why == "Ending":
		return fmt.Sprintf("it ends when its %d pods have gone", pods)
	case why == "Drifted":
		return "Karpenter replaces it" + held
	case n.goes:
		return "Karpenter moves its pods" + held
	case why == "Empty":
		return "Karpenter removes it, because no pod needs it" + held
	case why == "Underutilized":
		return "Karpenter replaces or removes it if its pods fit elsewhere for less; " + s.expiry(claim)
	default:
		return s.expiry(claim)
	}
}

// expiry says when a node expires.
func (s *seen) expiry(claim *nodeClaim) string {
	life, err := time.ParseDuration(claim.Spec.ExpireAfter)
	left := claim.CreationTimestamp.Add(life).Sub(s.now)
	switch {
	case err != nil: // Never
		return "it never expires"
	case left <= 0:
		return "it has expired, and ends when its pods have gone"
	default:
		return fmt.Sprintf("it expires in %s, whatever budgets and windows say", rough(left))
	}
}
