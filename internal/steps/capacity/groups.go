package capacity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// joining is how long a node that is not Ready counts as starting.
const joining = 10 * time.Minute

// group is a managed node group, with the nodes that it could add.
type group struct {
	name string
	size plan.Scaling
	// samples describe further nodes of the group with their free resources. Each is like one of the existing nodes.
	samples []*targetNode
	// known reports whether the samples' sizes are those of real nodes.
	known bool
	// coming counts the nodes that EKS was asked for and that are not Ready. ready counts those that take pods.
	coming, ready int
	// added counts the further nodes that the pods need up to the group's maximum. beyond counts those that they would
	// need above it.
	added, beyond int

	next int
}

// groups describes node groups. It leaves out those that were deleted since the plan was made.
func (r *run) groups(ctx context.Context, list []string, seen *survey) ([]*group, error) {
	var all []*group
	for _, name := range list {
		out, err := r.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &r.plan.Cluster.Name, NodegroupName: &name})
		if errors.As(err, new(*types.ResourceNotFoundException)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("node group %s: describe: %w", name, err)
		}
		all = append(all, r.group(out.Nodegroup, seen))
	}
	return all, nil
}

func (r *run) group(live *types.Nodegroup, seen *survey) *group {
	g := &group{name: *live.NodegroupName}
	if c := live.ScalingConfig; c != nil {
		g.size = plan.Scaling{Min: int(aws.ToInt32(c.MinSize)), Max: int(aws.ToInt32(c.MaxSize)), Desired: int(aws.ToInt32(c.DesiredSize))}
	}
	missing := g.size.Desired
	for _, node := range seen.nodes {
		if node.Labels[ownership.LabelNodeGroup] != g.name || node.DeletionTimestamp != nil {
			continue
		}
		missing--
		switch {
		case ready(node) && !node.Spec.Unschedulable:
			g.ready++
		case !ready(node) && r.Now().Sub(node.CreationTimestamp.Time) < joining:
			g.coming++
		}
		g.samples, g.known = append(g.samples, sample(live, node, node.Labels, seen)), true
	}
	g.coming += max(0, missing)
	if !g.known {
		g.samples = []*targetNode{guess(live, seen)}
		g.known = len(g.samples[0].free) > 0
	}
	return g
}

// sample returns a further node of the group, like a given node except for its name.
func sample(live *types.Nodegroup, like *corev1.Node, labels map[string]string, seen *survey) *targetNode {
	node := &corev1.Node{}
	node.Labels = maps.Clone(labels)
	maps.Copy(node.Labels, live.Labels)
	delete(node.Labels, corev1.LabelHostname)
	effects := map[types.TaintEffect]corev1.TaintEffect{
		types.TaintEffectNoSchedule: corev1.TaintEffectNoSchedule, types.TaintEffectNoExecute: corev1.TaintEffectNoExecute,
	}
	for _, t := range live.Taints {
		if effect := effects[t.Effect]; effect != "" {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: effect})
		}
	}
	if like == nil {
		return &targetNode{node, nil}
	}
	free := like.Status.Allocatable.DeepCopy()
	subtract(free, seen.daemons[like.Name])
	return &targetNode{node, free}
}

// guess returns a node of a group without nodes. It has the size of another node of the group's instance type, or an
// unknown size.
func guess(live *types.Nodegroup, seen *survey) *targetNode {
	labels := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", ownership.LabelNodeGroup: *live.NodegroupName}
	if strings.Contains(string(live.AmiType), "ARM") {
		labels[corev1.LabelArchStable] = "arm64"
	}
	at := slices.IndexFunc(seen.nodes, func(n *corev1.Node) bool {
		return slices.Contains(live.InstanceTypes, n.Labels[corev1.LabelInstanceTypeStable])
	})
	if at < 0 {
		return sample(live, nil, labels, seen)
	}
	labels[corev1.LabelInstanceTypeStable] = seen.nodes[at].Labels[corev1.LabelInstanceTypeStable]
	return sample(live, seen.nodes[at], labels, seen)
}

// admits reports whether a pod may run on a node of the group, whatever the node's size.
func (g *group) admits(m displacedPod) bool {
	return slices.ContainsFunc(g.samples, func(p *targetNode) bool { return m.may(p.node) })
}

// further assigns pods to one more node and returns the pods that are left. The nodes of a group differ in their zones,
// and further adds nodes in these zones in turn.
func (g *group) further(left []displacedPod) []displacedPod {
	for range g.samples {
		one := g.samples[g.next%len(g.samples)].clone()
		g.next++
		if rest := binPack(left, []*targetNode{one}); len(rest) < len(left) {
			return rest
		}
	}
	return left
}

// grow adds nodes to groups, at most as many as most returns for each, as long as every new node takes a pod. It
// returns the pods that are left.
func grow(left []displacedPod, groups []*group, most func(*group) int, added func(*group) *int) []displacedPod {
	for _, g := range groups {
		for n := most(g); n > 0 && len(left) > 0; n-- {
			rest := g.further(left)
			if len(rest) == len(left) {
				break
			}
			left = rest
			*added(g)++
		}
	}
	return left
}
