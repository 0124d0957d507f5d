package nodegroups

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	groupLabel = "eks.amazonaws.com/nodegroup"
	zoneLabel  = corev1.LabelTopologyZone
	// appliedAnnotation records the labels and taints that the group gave the node. This distinguishes those that the
	// group has dropped from those that others have set.
	appliedAnnotation = "sandbox.sawhorse.dev/nodegroup"
)

// applied has the labels and taints that a group gives its nodes and may remove again.
type applied struct {
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
}

// newNode returns a node of the group as EKS's bootstrap would register it. kwok simulates its kubelet.
func newNode(g group, region, zone string) *corev1.Node {
	id := make([]byte, 9)
	_, _ = rand.Read(id)
	instance := "i-" + hex.EncodeToString(id)[:17]
	// Node names are private DNS names. The form with the resource name needs no bookkeeping of addresses.
	name := instance + ".ec2.internal"
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:             name,
				corev1.LabelOSStable:             "linux",
				corev1.LabelArchStable:           g.machine.arch,
				corev1.LabelInstanceTypeStable:   g.machine.kind,
				corev1.LabelTopologyRegion:       region,
				zoneLabel:                        zone,
				groupLabel:                       g.name,
				"eks.amazonaws.com/capacityType": g.capacityType,
			},
		},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/%s", zone, instance)},
		Status: corev1.NodeStatus{
			Capacity:    g.machine.capacity,
			Allocatable: g.machine.allocatable,
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: g.machine.arch, OperatingSystem: "linux", KubeletVersion: "v1.35.3-eks-sandbox",
			},
		},
	}
	g.apply(node)
	return node
}

// apply sets labels and taints of a node to the group's, and reports whether anything changed. Labels and taints of
// others stay.
func (g group) apply(node *corev1.Node) bool {
	before := node.DeepCopy()
	var last applied
	_ = json.Unmarshal([]byte(node.Annotations[appliedAnnotation]), &last) // an unreadable annotation counts as empty
	for key, value := range last.Labels {
		if node.Labels[key] == value {
			delete(node.Labels, key)
		}
	}
	maps.Copy(node.Labels, g.labels)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.ContainsFunc(slices.Concat(last.Taints, g.taints), func(o corev1.Taint) bool { return t.MatchTaint(&o) })
	})
	node.Spec.Taints = append(node.Spec.Taints, g.taints...)
	text, _ := json.Marshal(applied{g.labels, g.taints})
	node.Annotations[appliedAnnotation] = string(text)
	return !reflect.DeepEqual(before.Labels, node.Labels) || !reflect.DeepEqual(before.Annotations, node.Annotations) ||
		!sameTaints(before.Spec.Taints, node.Spec.Taints)
}

func sameTaints(a, b []corev1.Taint) bool {
	contains := func(list []corev1.Taint, t corev1.Taint) bool {
		return slices.ContainsFunc(list, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(t corev1.Taint) bool { return !contains(b, t) })
}

// emptiest returns the zone with the fewest nodes. Auto Scaling balances zones.
func emptiest(zones []string, nodes []*corev1.Node) string {
	count := byZone(nodes)
	return slices.MinFunc(zones, func(a, b string) int { return count[a] - count[b] })
}

// surplus chooses the nodes to remove: first those that Auto Scaling was asked to end, and those that are draining, then the youngest
// of the fullest zone.
func surplus(nodes []*corev1.Node, number int) []*corev1.Node {
	left := slices.Clone(nodes)
	var chosen []*corev1.Node
	for range min(number, len(nodes)) {
		count := byZone(left)
		slices.SortStableFunc(left, func(a, b *corev1.Node) int {
			if a, b := goes(a), goes(b); a != b {
				return b - a
			}
			if byCount := count[b.Labels[zoneLabel]] - count[a.Labels[zoneLabel]]; byCount != 0 {
				return byCount
			}
			if byAge := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); byAge != 0 {
				return byAge
			}
			return strings.Compare(a.Name, b.Name)
		})
		chosen, left = append(chosen, left[0]), left[1:]
	}
	return chosen
}

func goes(node *corev1.Node) int {
	switch {
	case isEnding(node):
		return 2
	case isDraining(node):
		return 1
	}
	return 0
}

func byZone(nodes []*corev1.Node) map[string]int {
	count := map[string]int{}
	for _, node := range nodes {
		count[node.Labels[zoneLabel]]++
	}
	return count
}
