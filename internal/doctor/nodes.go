package doctor

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func metadata(o *Observed, found *findings) {
	limit := int64(1)
	if options, ok := o.Config.Override.EC2NodeClass["metadataOptions"].(map[string]any); ok {
		if given, ok := options["httpPutResponseHopLimit"].(int64); ok {
			limit = given
		}
	}
	if limit > 1 {
		found.add(Warns,
			fmt.Sprintf("karpenter_config gives nodes of pool workload the hop limit %d, so that every pod can take the node's credentials",
				limit),
			"Give the pods that need credentials a role of their own (Pod Identity or IRSA), and leave httpPutResponseHopLimit at 1.")
		return
	}
	var higher []string
	for _, i := range o.Instances {
		_, owned := i.Tags[ownership.TagClusterOwned+o.Cluster.Name]
		if owned && i.Tags[ownership.LabelPool] == "" && i.HopLimit > 1 {
			higher = append(higher, i.ID)
		}
	}
	if len(higher) > 0 {
		found.add(Info,
			fmt.Sprintf("present nodes of the cluster with a hop limit above 1 (%d): %s; Karpenter's have 1: pods that take credentials, "+
				"region or VPC from instance metadata work on the former only", len(higher), some(higher)),
			"Give such pods a role of their own (Pod Identity or IRSA), and tell controllers region and VPC by their flags, such as "+
				"--aws-region and --aws-vpc-id of the AWS Load Balancer Controller.")
	}
}

func tolerations(o *Observed, found *findings) {
	if closed := (plan.Facts{NodeGroups: o.NodeGroups}).ClosedToController(o.Config); len(closed) > 0 {
		found.add(Fails, "every system node group has a taint that Karpenter's controller does not tolerate: "+some(closed),
			"Take the taint off one of them, or use the key "+ownership.TaintSystem+", which it tolerates; "+
				"or give the controller a system node group without taints.")
	}
	taints := o.taints()
	for i := range o.DaemonSets {
		d := &o.DaemonSets[i]
		missing := untolerated(d, taints)
		if len(missing) == 0 {
			continue
		}
		severity := Info
		if d.Namespace == ownership.Namespace {
			severity = Warns
		}
		found.add(severity,
			fmt.Sprintf("DaemonSet %s/%s does not tolerate %s, and will not run on those nodes", d.Namespace, d.Name, some(missing)),
			"Where it is to run on every node, let it tolerate everything, as the node agents of EKS do.",
			fmt.Sprintf(`kubectl -n %s patch daemonset %s --type merge `+
				`-p '{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}'`, d.Namespace, d.Name))
	}
}

// pooledTaint is a taint and the pool whose nodes have it.
type pooledTaint struct {
	corev1.Taint
	pool string
}

// taints returns the taints of the pools' nodes that keep pods away.
func (o *Observed) taints() (all []pooledTaint) {
	for _, p := range o.pools() {
		taints := p.Taints
		switch {
		case p.Name == ownership.BuildPool:
			taints = []params.Taint{{Key: "dedicated", Value: "build", Effect: "NoSchedule"}}
		case p.Dedicated:
			taints = append(slices.Clone(taints), params.Taint{Key: "dedicated-node", Value: p.Name, Effect: "NoSchedule"})
		}
		for _, t := range taints {
			if t.Effect != string(corev1.TaintEffectPreferNoSchedule) {
				all = append(all, pooledTaint{corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}, p.Name})
			}
		}
	}
	return all
}

// untolerated returns the taints that a DaemonSet does not tolerate. It returns none if the DaemonSet selects its nodes
// itself.
func untolerated(d *appsv1.DaemonSet, taints []pooledTaint) (missing []string) {
	spec := d.Spec.Template.Spec
	if len(spec.NodeSelector) > 0 || spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		return nil
	}
	for _, t := range taints {
		if !slices.ContainsFunc(spec.Tolerations,
			func(each corev1.Toleration) bool { return each.ToleratesTaint(klog.Background(), &t.Taint, false) }) {
			missing = append(missing, fmt.Sprintf("%s of pool %s", t.ToString(), t.pool))
		}
	}
	return missing
}

func dns(o *Observed, found *findings) {
	policy := cmp.Or(o.controller().DNSPolicy, corev1.DNSClusterFirst)
	ours := map[string]bool{}
	for _, n := range o.Nodes {
		_, ours[n.Name] = n.Labels[ownership.LabelPool]
	}
	var there []string
	for _, p := range o.Pods {
		if p.Labels["k8s-app"] != "kube-dns" || p.Spec.NodeName == "" {
			continue
		}
		if !ours[p.Spec.NodeName] {
			return
		}
		there = append(there, p.Name)
	}
	if len(there) > 0 && policy != corev1.DNSDefault {
		found.add(Warns,
			fmt.Sprintf("CoreDNS runs on Karpenter's nodes only (%s), and the controller resolves by it (dnsPolicy %s)", some(there), policy),
			"Keep CoreDNS on system nodes: add kube-system/coredns to the parameter system_deployments, beside what it has.")
	}
}
