package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// upgrade is the name of the check that is made only for a version of Kubernetes to which the cluster is to be upgraded.
const upgrade = "kubernetes-upgrade"

// lastOfAL2 is the last minor version of Kubernetes 1 that AWS has AMIs of Amazon Linux 2 for, and oldestKubelet is how
// many minor versions a kubelet may be older than the API server.
const (
	lastOfAL2     = 32
	oldestKubelet = 3
)

// made returns the checks to make.
func (o *Observed) made() []check {
	if o.Kubernetes != "" {
		return checks
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.name == upgrade })
}

// minorOf returns the minor version of a version of Kubernetes 1, such as 1.36 or v1.35.3-eks-1.
func minorOf(version string) (minor int, known bool) {
	_, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "1.%d", &minor)
	return minor, err == nil
}

// KubernetesMinor reports whether a text is a minor version of Kubernetes, such as 1.36.
func KubernetesMinor(text string) bool {
	minor, known := minorOf(text)
	return known && text == fmt.Sprintf("1.%d", minor)
}

// kubernetesUpgrade tells whether the rack is fit for another version of Kubernetes: Karpenter, the AMIs of its pools, and
// the nodes that there are.
func kubernetesUpgrade(o *Observed) (found []Finding) {
	wanted, known := minorOf(o.Kubernetes)
	if !known {
		return nil
	}
	if running, is := minorOf(o.Cluster.Version); is && wanted > running+1 {
		found = append(found, finding(Info,
			fmt.Sprintf("cluster %s runs Kubernetes %s, and EKS upgrades one minor version at a time", o.Cluster.Name, o.Cluster.Version),
			fmt.Sprintf("Upgrade to 1.%d first, and examine the rack for each version on the way.", running+1)))
	}
	found = append(found, o.karpenterFor()...)
	found = append(found, o.imagesFor(wanted)...)
	for _, group := range o.NodeGroups {
		if strings.HasPrefix(group.AMIType, "AL2_") && wanted > lastOfAL2 {
			found = append(found, finding(Fails,
				fmt.Sprintf("node group %s has AMIs of type %s, and AWS has none of Amazon Linux 2 for Kubernetes %s", group.Name, group.AMIType,
					o.Kubernetes),
				"Move its pods to a group of AL2023, and delete it, before the upgrade."))
		}
	}
	return append(found, o.kubeletsFor(wanted)...)
}

// karpenterFor tells whether the version of Karpenter, in force and chosen, lists the version of Kubernetes.
func (o *Observed) karpenterFor() []Finding {
	target := plan.Target(o.Config, plan.Facts{Records: o.records()})
	running := o.records().InForce()
	lists := plan.Listing(o.Kubernetes)
	switch {
	case len(lists) == 0:
		return []Finding{finding(Fails, "no version of Karpenter that Sawhorse has lists Kubernetes "+o.Kubernetes,
			"Leave the cluster at its version until a version of Sawhorse brings a Karpenter that lists it.")}
	case !slices.Contains(lists, target.Version):
		return []Finding{finding(Fails,
			fmt.Sprintf("Karpenter %s lists Kubernetes %s, and not %s", target.Version, target.Kubernetes, o.Kubernetes),
			fmt.Sprintf("Write karpenter_version %s before the upgrade; the pools are then checked with that version.", lists[0]))}
	case running != "" && running != target.Version && !slices.Contains(lists, running):
		return []Finding{finding(Warns, fmt.Sprintf("Karpenter %s runs, which does not list Kubernetes %s, and karpenter_version is %s",
			running, o.Kubernetes, target.Version), "Wait until the rack runs the version that it asks for.", "sawhorse status "+o.Rack+" --wait")}
	}
	return nil
}

// imagesFor tells whether the AMIs that karpenter_config selects for the workload pool exist for the version. Other pools
// have al2023@latest, which AWS has for every version.
func (o *Observed) imagesFor(wanted int) (found []Finding) {
	class := o.Config.Override.EC2NodeClass
	family, _ := class["amiFamily"].(string)
	terms, _ := class["amiSelectorTerms"].([]any)
	al2 := strings.EqualFold(family, "AL2")
	for i, each := range terms {
		term, _ := each.(map[string]any)
		at := fmt.Sprintf("karpenter_config ec2NodeClass.amiSelectorTerms[%d]", i)
		alias, _ := term["alias"].(string)
		name, version, pinned := strings.Cut(alias, "@")
		parameter, _ := term["ssmParameter"].(string)
		id, _ := term["id"].(string)
		other, listed := kubernetesIn(parameter)
		al2 = al2 || strings.EqualFold(name, "al2")
		switch {
		case pinned && version != "latest":
			found = append(found, finding(Warns, fmt.Sprintf("%s pins %s; AWS may have no AMI of that version for Kubernetes %s, and Karpenter "+
				"then launches no nodes", at, alias, o.Kubernetes), "Look whether AWS has it, and write a version that it has for both.",
				"aws ssm get-parameters-by-path --recursive --path "+publicImages(name, o.Kubernetes)+" --query 'Parameters[].Name' --output text"))
		case listed && other != wanted:
			found = append(found, finding(Warns, fmt.Sprintf("%s names the AMI of Kubernetes 1.%d: %s", at, other, parameter),
				"Change it after the upgrade of the control plane; until then, new nodes have the older kubelet."))
		case id != "" || term["name"] != nil || term["tags"] != nil || parameter != "" && !listed:
			found = append(found, finding(Info, fmt.Sprintf("%s selects AMIs by %s, so only you know which Kubernetes they are for", at,
				selector(term)), "Build or choose AMIs for Kubernetes "+o.Kubernetes+", and change the term after the upgrade of the control plane."))
		}
	}
	if al2 && wanted > lastOfAL2 {
		found = append(found, finding(Fails,
			fmt.Sprintf("karpenter_config selects Amazon Linux 2, and AWS has no AMI of it for Kubernetes %s", o.Kubernetes),
			`Write another family before the upgrade, for example "amiSelectorTerms":[{"alias":"al2023@latest"}]: Karpenter then replaces `+
				`the nodes.`))
	}
	return found
}

// selector returns the first field by which a term selects AMIs.
func selector(term map[string]any) string {
	for _, field := range []string{"id", "name", "tags"} {
		if term[field] != nil {
			return field
		}
	}
	return "ssmParameter"
}

// kubernetesIn returns the minor version of Kubernetes that a public parameter of AWS names, such as
// /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id.
func kubernetesIn(parameter string) (minor int, found bool) {
	for part := range strings.SplitSeq(parameter, "/") {
		if part = strings.TrimPrefix(part, "aws-k8s-"); KubernetesMinor(part) {
			return minorOf(part)
		}
	}
	return 0, false
}

// publicImages returns the path of AWS's public parameters with the AMIs of a family.
func publicImages(family, kubernetes string) string {
	if strings.EqualFold(family, "bottlerocket") {
		return "/aws/service/bottlerocket/aws-k8s-" + kubernetes
	}
	folder := map[string]string{"al2": "amazon-linux-2", "al2023": "amazon-linux-2023"}[strings.ToLower(family)]
	return "/aws/service/eks/optimized-ami/" + kubernetes + "/" + cmp.Or(folder, "amazon-linux-2023")
}

// kubeletsFor finds nodes that would be too old for the API server.
func (o *Observed) kubeletsFor(wanted int) []Finding {
	var old []string
	for _, node := range o.Nodes {
		if minor, known := minorOf(node.Status.NodeInfo.KubeletVersion); known && wanted-minor > oldestKubelet {
			old = append(old, nodeAndVersion(node))
		}
	}
	if len(old) == 0 {
		return nil
	}
	return []Finding{finding(Fails, fmt.Sprintf("the kubelets of %s are more than %d minor versions older than Kubernetes %s", some(old),
		oldestKubelet, o.Kubernetes), "Replace these nodes first: update their node group, or delete the NodeClaim of a node of Karpenter's.")}
}

func nodeAndVersion(node corev1.Node) string {
	return node.Name + " (" + node.Status.NodeInfo.KubeletVersion + ")"
}
