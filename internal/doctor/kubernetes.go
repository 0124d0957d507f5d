package doctor

import (
	"cmp"
	"fmt"
	"maps"
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
	wanted, _ := minorOf(o.Kubernetes)
	if running, is := minorOf(o.Facts.Cluster.Version); is && wanted > running+1 {
		found.add(Info,
			fmt.Sprintf("cluster %s runs Kubernetes %s, and EKS upgrades one minor version at a time", o.Facts.Cluster.Name,
				o.Facts.Cluster.Version),
			fmt.Sprintf("Upgrade to 1.%d first, and examine the rack for each version on the way.", running+1))
	}
	now, then := o.facts(), o.facts()
	then.Cluster = new(*then.Cluster)
	then.Cluster.Version = o.Kubernetes
	known := o.judge(now)
	for _, v := range o.judge(then) {
		if !slices.Contains(known, v) {
			found.add(Fails, fmt.Sprintf("at Kubernetes %s a pass says %s", o.Kubernetes, v),
				"Do what it says before the upgrade, or leave the cluster at its version.", v.commands()...)
		}
	}
	runningFor(o, found)
	imagesFor(o, wanted, found)
	for _, group := range o.Facts.NodeGroups {
		if strings.HasPrefix(group.AMIType, "AL2_") && wanted >= plan.WithoutAL2 {
			found.add(Fails,
				fmt.Sprintf("node group %s has AMIs of type %s, and AWS has none of Amazon Linux 2 for Kubernetes %s", group.Name, group.AMIType,
					o.Kubernetes),
				"Move its pods to a group of AL2023, and delete it, before the upgrade.")
		}
	}
	kubeletsFor(o, wanted, found)
}

// runningFor tells whether the version of Karpenter that runs lists the version of Kubernetes. A pass looks at the one that
// it installs.
func runningFor(o *Observed, found *findings) {
	target, running := plan.Target(o.Config, o.facts()).Version, o.Records().InForce()
	lists := plan.Listing(o.Kubernetes)
	if running != "" && running != target && slices.Contains(lists, target) && !slices.Contains(lists, running) {
		found.add(Fails, fmt.Sprintf("Karpenter %s runs, which does not list Kubernetes %s, and karpenter_version is %s",
			running, o.Kubernetes, target), "Wait until the rack runs the version that it asks for. If the status says that "+
			"Sawhorse took that version back, follow its advice first.", "sawhorse status "+o.Rack+" --wait")
	}
}

// imagesFor tells whether the AMIs of the pools are for the version of Kubernetes. AWS has those of family@latest for each.
func imagesFor(o *Observed, wanted int, found *findings) {
	for _, p := range o.pools() {
		for i, term := range p.AMISelectorTerms {
			at := fmt.Sprintf("amiSelectorTerms[%d] of EC2NodeClass %s", i, p.name)
			name, version, pinned := strings.Cut(term.Alias, "@")
			other, listed := kubernetesIn(term.SSMParameter)
			by := term.selector()
			switch {
			case pinned && o.lookedUp(term.Alias): // a pass says whether it is there
			case slices.Contains(slices.Collect(maps.Values(o.Facts.Aged)), term.Alias):
				found.add(Info, fmt.Sprintf("%s is %s by its age, a release for Kubernetes %s; the pass after the upgrade finds the one for %s, "+
					"and until then Karpenter launches nodes of the former at most", at, term.Alias, o.Facts.Cluster.Version, o.Kubernetes),
					"Ask for a pass when the control plane is upgraded, and do not wait for the audit.", o.request(""))
			case pinned && version != "latest":
				found.add(Warns, fmt.Sprintf("%s pins %s; AWS may have no AMI of that version for Kubernetes %s, and Karpenter "+
					"then launches no nodes", at, term.Alias, o.Kubernetes), "Look whether AWS has it, and write a version that it has for both.",
					"aws ssm get-parameters-by-path --recursive --path "+publicImages(name, o.Kubernetes)+" --query 'Parameters[].Name' --output text")
			case listed && other != wanted:
				found.add(Warns, fmt.Sprintf("%s names the AMI of Kubernetes 1.%d: %s", at, other, term.SSMParameter),
					"Change it after the upgrade of the control plane; until then, new nodes have the older kubelet.")
			case by != "ssmParameter" || term.SSMParameter != "" && !listed:
				found.add(Info, fmt.Sprintf("%s selects AMIs by %s, so only you know which Kubernetes they are for", at, by),
					"Build or choose AMIs for Kubernetes "+o.Kubernetes+", and change the term after the upgrade of the control plane.")
			}
		}
	}
}

// lookedUp reports whether the AMIs behind an alias were looked up for the version of Kubernetes.
func (o *Observed) lookedUp(alias string) bool {
	return slices.ContainsFunc(plan.BehindAlias(alias, o.Kubernetes), func(image plan.AliasImage) bool {
		_, seen := o.Facts.AliasImages[image.Parameter]
		return seen
	})
}

// selector returns the field by which a term selects AMIs.
func (t imageTerm) selector() string {
	switch {
	case t.ID != "":
		return "id"
	case t.Name != "":
		return "name"
	case len(t.Tags) > 0:
		return "tags"
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
