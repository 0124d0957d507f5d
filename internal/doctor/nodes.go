package doctor

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

func metadata(o *Observed, found *findings) {
	if slices.ContainsFunc(o.pools(), func(p pool) bool { return p.MetadataOptions.HTTPPutResponseHopLimit > 1 }) {
		return // which a pass warns of
	}
	var higher []string
	for _, i := range o.Instances {
		_, owned := i.Tags[ownership.TagClusterOwned+o.Facts.Cluster.Name]
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
	pools := o.pools()
	for i := range o.DaemonSets {
		d := &o.DaemonSets[i]
		missing := untolerated(d, pools)
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

// untolerated returns the taints of the pools' nodes by which these keep a DaemonSet's pods away. It returns none if the DaemonSet
// selects its nodes itself.
func untolerated(d *appsv1.DaemonSet, pools []pool) (missing []string) {
	spec := d.Spec.Template.Spec
	if len(spec.NodeSelector) > 0 || spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		return nil
	}
	for _, p := range pools {
		for _, t := range p.taints {
			tolerated := slices.ContainsFunc(spec.Tolerations,
				func(each corev1.Toleration) bool { return each.ToleratesTaint(klog.Background(), &t, false) })
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated {
				missing = append(missing, fmt.Sprintf("%s of pool %s", t.ToString(), p.name))
			}
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
