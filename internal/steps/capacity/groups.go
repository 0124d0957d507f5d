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

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// group is a managed node group, with the nodes that it could add.
type group struct {
	name    string
	created time.Time
	size    plan.Scaling
	// further stands for a further node of the group. Nothing is free there if its size is unknown.
	further place
	// present counts the nodes that are Ready, ready those of them that take pods. added counts the further nodes that the pods
	// need, up to the group's maximum.
	present, ready, added int
	// back means that the size is the one that the group had before Sawhorse emptied it.
	back bool
}

// coming returns how many nodes are not Ready of those that EKS was asked for, or will be.
func (g *group) coming() int { return max(0, g.size.Desired-g.present) }

// more returns further nodes of the group.
func (g *group) more(count int) place {
	p := g.further
	p.count = count
	return p
}

// groups describes node groups, with the sizes that they return to. It leaves out those that were deleted since the plan was made.
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
		g := r.group(out.Nodegroup, seen)
		if err := r.back(ctx, g); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (r *run) group(live *types.Nodegroup, seen *survey) *group {
	g := &group{name: *live.NodegroupName, created: aws.ToTime(live.CreatedAt)}
	if c := live.ScalingConfig; c != nil {
		g.size = plan.Scaling{Min: int(aws.ToInt32(c.MinSize)), Max: int(aws.ToInt32(c.MaxSize)), Desired: int(aws.ToInt32(c.DesiredSize))}
	}
	for _, node := range seen.nodes {
		if node.Labels[ownership.LabelNodeGroup] != g.name || node.DeletionTimestamp != nil ||
			node.Annotations[ownership.AnnotationMigrating] == drain.Ended {
			continue
		}
		if k8s.NodeReady(node) {
			g.present++
			if r.schedulable(node) {
				g.ready++
			}
		}
		g.further.nodes = append(g.further.nodes, sample(live, node.Labels))
		g.further.free = larger(g.further.free, seen.further(node))
	}
	if len(g.further.nodes) == 0 {
		g.further = guess(live, seen)
	}
	return g
}

// sample returns a further node of the group, with the labels of another except for its name.
func sample(live *types.Nodegroup, labels map[string]string) *corev1.Node {
	node := &corev1.Node{}
	node.Labels = maps.Clone(labels)
	maps.Copy(node.Labels, live.Labels)
	delete(node.Labels, corev1.LabelHostname)
	for _, t := range live.Taints {
		if effect := corev1.TaintEffect(plan.KeepsAway[string(t.Effect)]); effect != "" {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: effect})
		}
	}
	return node
}

// guess describes a node of a group without nodes. It has the size of another node of the group's instance type, or an
// unknown size.
func guess(live *types.Nodegroup, seen *survey) place {
	labels := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", ownership.LabelNodeGroup: *live.NodegroupName}
	if strings.Contains(string(live.AmiType), "ARM") {
		labels[corev1.LabelArchStable] = "arm64"
	}
	var free corev1.ResourceList
	at := slices.IndexFunc(seen.nodes, func(n *corev1.Node) bool {
		return slices.Contains(live.InstanceTypes, n.Labels[corev1.LabelInstanceTypeStable])
	})
	if at >= 0 {
		labels[corev1.LabelInstanceTypeStable] = seen.nodes[at].Labels[corev1.LabelInstanceTypeStable]
		free = seen.further(seen.nodes[at])
	}
	return place{nodes: []*corev1.Node{sample(live, labels)}, free: free}
}

// larger returns the larger amount of each resource.
func larger(a, b corev1.ResourceList) corev1.ResourceList {
	most := b.DeepCopy()
	for name, quantity := range a {
		if other := most[name]; quantity.Cmp(other) > 0 {
			most[name] = quantity
		}
	}
	return most
}
