package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// upgrade is the name of the check that is made only for a version of Kubernetes to which the cluster is to be upgraded.
const upgrade = "kubernetes-upgrade"

// oldestKubelet is how many minor versions a kubelet may be older than the API server.
const oldestKubelet = 3

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
func kubernetesUpgrade(o *Observed, found *findings) {
	wanted, known := minorOf(o.Kubernetes)
	if !known {
		return
	}
	if running, is := minorOf(o.Cluster.Version); is && wanted > running+1 {
		found.add(Info,
			fmt.Sprintf("cluster %s runs Kubernetes %s, and EKS upgrades one minor version at a time", o.Cluster.Name, o.Cluster.Version),
			fmt.Sprintf("Upgrade to 1.%d first, and examine the rack for each version on the way.", running+1))
	}
	karpenterFor(o, found)
	imagesFor(o, wanted, found)
	for _, group := range o.NodeGroups {
		if strings.HasPrefix(group.AMIType, "AL2_") && wanted >= plan.WithoutAL2 {
			found.add(Fails,
				fmt.Sprintf("node group %s has AMIs of type %s, and AWS has none of Amazon Linux 2 for Kubernetes %s", group.Name, group.AMIType,
					o.Kubernetes),
				"Move its pods to a group of AL2023, and delete it, before the upgrade.")
		}
	}
	kubeletsFor(o, wanted, found)
}

// karpenterFor tells whether the version of Karpenter, in force and chosen, lists the version of Kubernetes.
func karpenterFor(o *Observed, found *findings) {
	target := plan.Target(o.Config, plan.Facts{Records: o.records()})
	running := o.records().InForce()
	lists := plan.Listing(o.Kubernetes)
	switch {
	case len(lists) == 0:
		found.add(Fails, "no version of Karpenter that Sawhorse has lists Kubernetes "+o.Kubernetes,
			"Leave the cluster at its version until a version of Sawhorse brings a Karpenter that lists it.")
	case !slices.Contains(lists, target.Version):
		found.add(Fails, fmt.Sprintf("Karpenter %s lists Kubernetes %s, and not %s", target.Version, target.Kubernetes, o.Kubernetes),
			fmt.Sprintf("Write karpenter_version %s before the upgrade; the pools are then checked with that version.", lists[0]))
	case running != "" && running != target.Version && !slices.Contains(lists, running):
		found.add(Fails, fmt.Sprintf("Karpenter %s runs, which does not list Kubernetes %s, and karpenter_version is %s",
			running, o.Kubernetes, target.Version), "Wait until the rack runs the version that it asks for. If the status says that "+
			"Sawhorse took that version back, follow its advice first.", "sawhorse status "+o.Rack+" --wait")
	}
}

// imagesFor tells whether the AMIs that karpenter_config selects for the workload pool exist for the version. Other pools
// have al2023@latest, which AWS has for every version.
func imagesFor(o *Observed, wanted int, found *findings) {
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
		other, listed := kubernetesIn(parameter)
		by := selector(term)
		al2 = al2 || strings.EqualFold(name, "al2")
		switch {
		case pinned && version != "latest":
			found.add(Warns, fmt.Sprintf("%s pins %s; AWS may have no AMI of that version for Kubernetes %s, and Karpenter "+
				"then launches no nodes", at, alias, o.Kubernetes), "Look whether AWS has it, and write a version that it has for both.",
				"aws ssm get-parameters-by-path --recursive --path "+publicImages(name, o.Kubernetes)+" --query 'Parameters[].Name' --output text")
		case listed && other != wanted:
			found.add(Warns, fmt.Sprintf("%s names the AMI of Kubernetes 1.%d: %s", at, other, parameter),
				"Change it after the upgrade of the control plane; until then, new nodes have the older kubelet.")
		case by != "ssmParameter" || parameter != "" && !listed:
			found.add(Info, fmt.Sprintf("%s selects AMIs by %s, so only you know which Kubernetes they are for", at, by),
				"Build or choose AMIs for Kubernetes "+o.Kubernetes+", and change the term after the upgrade of the control plane.")
		}
	}
	if al2 && wanted >= plan.WithoutAL2 {
		found.add(Fails, fmt.Sprintf("karpenter_config selects Amazon Linux 2, and AWS has no AMI of it for Kubernetes %s", o.Kubernetes),
			`Write another family before the upgrade, for example "amiSelectorTerms":[{"alias":"al2023@latest"}]: Karpenter then replaces `+
				`the nodes.`)
	}
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
func kubeletsFor(o *Observed, wanted int, found *findings) {
	var old []string
	for _, node := range o.Nodes {
		kubelet := node.Status.NodeInfo.KubeletVersion
		if minor, known := minorOf(kubelet); known && wanted-minor > oldestKubelet {
			old = append(old, node.Name+" ("+kubelet+")")
		}
	}
	if len(old) > 0 {
		found.add(Fails, fmt.Sprintf("the kubelets of %s are more than %d minor versions older than Kubernetes %s", some(old),
			oldestKubelet, o.Kubernetes), "Replace these nodes first: update their node group, or delete the NodeClaim of a node of Karpenter's.")
	}
}
