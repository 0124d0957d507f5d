package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/disruption"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

// nodeClaim is what is read of a NodeClaim.
type nodeClaim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Requirements []struct {
			Key    string   `json:"key"`
			Values []string `json:"values"`
		} `json:"requirements"`
		Resources struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
		ExpireAfter            string `json:"expireAfter"`
		TerminationGracePeriod string `json:"terminationGracePeriod"`
	} `json:"spec"`
	Status struct {
		NodeName   string             `json:"nodeName"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// condition returns a condition, or one without a status.
func (c *nodeClaim) condition(kind string) metav1.Condition {
	i := slices.IndexFunc(c.Status.Conditions, func(one metav1.Condition) bool { return one.Type == kind })
	if i < 0 {
		return metav1.Condition{}
	}
	return c.Status.Conditions[i]
}

// nodePool is what is read of a NodePool.
type nodePool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int64 `json:"replicas"`
		Template struct {
			Spec struct {
				NodeClassRef struct {
					Name string `json:"name"`
				} `json:"nodeClassRef"`
			} `json:"spec"`
		} `json:"template"`
		Disruption struct {
			ConsolidationPolicy string              `json:"consolidationPolicy"`
			ConsolidateAfter    string              `json:"consolidateAfter"`
			Budgets             []disruption.Budget `json:"budgets"`
		} `json:"disruption"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// nodeClass is what is read of an EC2NodeClass.
type nodeClass struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		AMISelectorTerms []struct {
			Alias string `json:"alias"`
			ID    string `json:"id"`
		} `json:"amiSelectorTerms"`
	} `json:"spec"`
}

// seen is what has been read of a cluster.
type seen struct {
	now     time.Time
	claims  []nodeClaim
	pools   map[string]*nodePool
	classes map[string]*nodeClass
	nodes   map[string]*corev1.Node
	pods    map[string][]corev1.Pod // by node
	pdbs    []policyv1.PodDisruptionBudget
	words   map[string]string // Karpenter's last words, by Kind/name, and of failed launches by launches and the pool
}

// lasts is how long an event of Karpenter's holds. Karpenter repeats it every two minutes.
const lasts = 10 * time.Minute

// launches goes before a pool's name where words are of its launches.
const launches = "launches of "

// survey reads a cluster.
func survey(ctx context.Context, client *k8s.Client) (*seen, error) {
	s := &seen{now: time.Now(), pools: map[string]*nodePool{}, classes: map[string]*nodeClass{}, nodes: map[string]*corev1.Node{},
		pods: map[string][]corev1.Pod{}, words: map[string]string{}}
	pools, err := k8s.Typed[nodePool](ctx, client, k8s.NodePool, "", "")
	if err != nil {
		return nil, err
	}
	classes, err := k8s.Typed[nodeClass](ctx, client, k8s.EC2NodeClass, "", "")
	if err != nil {
		return nil, err
	}
	if s.claims, err = k8s.Typed[nodeClaim](ctx, client, k8s.NodeClaim, "", ""); err != nil {
		return nil, err
	}
	nodes, err := k8s.Typed[corev1.Node](ctx, client, k8s.Node, "", "")
	if err != nil {
		return nil, err
	}
	pods, err := k8s.Typed[corev1.Pod](ctx, client, k8s.Pod, "", "")
	if err != nil {
		return nil, err
	}
	if s.pdbs, err = k8s.Typed[policyv1.PodDisruptionBudget](ctx, client, k8s.PodDisruptionBudget, "", ""); err != nil {
		return nil, err
	}
	for i := range pools {
		s.pools[pools[i].Name] = &pools[i]
	}
	for i := range classes {
		s.classes[classes[i].Name] = &classes[i]
	}
	for i := range nodes {
		s.nodes[nodes[i].Name] = &nodes[i]
	}
	for _, pod := range pods {
		if node := pod.Spec.NodeName; node != "" { // a NodeClaim without a node has no pods
			s.pods[node] = append(s.pods[node], pod)
		}
	}
	return s, s.listen(ctx, client)
}

// listen keeps Karpenter's last words about each object.
func (s *seen) listen(ctx context.Context, client *k8s.Client) error {
	last := map[string]time.Time{}
	return client.Each(ctx, k8s.Event, "", "", func(object *unstructured.Unstructured) error {
		e, err := k8s.As[corev1.Event](object)
		if err != nil || e.Source.Component != "karpenter" || e.Type != corev1.EventTypeWarning && !spoken[e.Reason] {
			return nil
		}
		about, says, at := e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, e.Message, k8s.LastSeen(e)
		if e.Reason == "InsufficientCapacityError" { // the NodeClaim is gone within seconds
			about, says = launches+k8s.PoolOf(e.InvolvedObject.Name), k8s.Said(e)
		}
		if s.now.Sub(at) <= lasts && at.After(last[about]) {
			last[about], s.words[about] = at, says
		}
		return nil
	})
}

// spoken are the reasons of Karpenter's events, besides warnings, that say why a node stays.
var spoken = map[string]bool{"DisruptionBlocked": true, "Unconsolidatable": true, "NoCompatibleInstanceTypes": true}
