package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// Parameters of which the deployment has a say.
const (
	imageRepository   = "karpenter_image_repository"
	systemDeployments = "system_deployments"
)

// allowed holds what parameters name against what the deployment lets racks do. It needs no cluster, so it is done on every pass, also
// while Karpenter is off. Turning off goes past none of it: a controller that is down is brought up for that.
func (b *builder) allowed() {
	b.imageRepository()
	b.systemDeployments()
}

// imageRepository keeps others' images from running as Karpenter's controller, which has rights in AWS and in the cluster.
func (b *builder) imageRepository() {
	image, others := b.config.ImageRepository, b.facts.Deployment.ImageRepositories
	taken := func(allowed string) bool {
		beginning, several := strings.CutSuffix(allowed, "*")
		return image == allowed || several && strings.HasPrefix(image, beginning)
	}
	if image == "" || image == names.ControllerImage || slices.ContainsFunc(others, taken) || len(others) == 0 && b.ownECR(image) {
		return
	}
	allowed := "the account's own ECR"
	if len(others) > 0 {
		allowed = strings.Join(others, ", ")
	}
	b.disallowed(imageRepository, b.inForce(imageRepository, image), "karpenter_image_repository is %s, and what is in it would run with the rights of Karpenter's controller; allowed are %s and %s; "+
		"write one of these, or have it added to the stack's context value imageRepositories", image, names.ControllerImage, allowed)
}

// ecr is a repository of a private registry of ECR: the account, and what ends AWS's names in China. The shape of the region keeps
// the hosts of AWS's other services out.
var ecr = regexp.MustCompile(`^([0-9]{12})\.dkr\.ecr\.[a-z]{2}(?:-[a-z]+)+-[0-9]+\.amazonaws\.com(\.cn)?/`)

// ownECR tells whether an image comes from the cluster's account, in any region. Where the account is not known, any will do.
func (b *builder) ownECR(image string) bool {
	found := ecr.FindStringSubmatch(image)
	if c := b.facts.Cluster; found != nil && c != nil && c.Account != "" {
		return found[1] == c.Account && (found[2] != "") == (c.Partition == "aws-cn")
	}
	return found != nil
}

// systemDeployments keeps the writers of parameters from moving what is none of the rack's: a Deployment that is pinned is rolled out anew.
func (b *builder) systemDeployments() {
	namespaces := append([]string{names.Namespace}, b.facts.Deployment.SystemNamespaces...)
	var before, now []string
	for _, deployment := range b.config.SystemDeployments {
		namespace, _, _ := strings.Cut(deployment, "/")
		own := slices.Contains(namespaces, namespace) || strings.HasPrefix(namespace, b.config.Rack+"-")
		switch inForce := b.inForce(systemDeployments, deployment); {
		case deployment == names.Namespace+"/"+names.ReleaseController && !inForce:
			b.problem(systemDeployments, "system_deployments has %s, Karpenter's own Deployment, which stands on system nodes as it is; take it out", deployment)
		case own:
		case inForce:
			before = append(before, deployment)
		default:
			now = append(now, deployment)
		}
	}
	others := func(inForce bool, deployments []string) {
		if len(deployments) > 0 {
			b.disallowed(systemDeployments, inForce, "system_deployments has %s; allowed are Deployments of the namespaces %s and %s-…; "+
				"take the others out, or have their namespace added to the stack's context value systemNamespaces", strings.Join(deployments, ", "), strings.Join(namespaces, ", "), b.config.Rack)
		}
	}
	others(false, now)
	others(true, before)
}

// inForce tells whether a rack whose Karpenter is on was turned on with a value, alone or in a list.
func (b *builder) inForce(parameter, value string) bool {
	return b.facts.Records.WasOn && slices.Contains(strings.Split(b.facts.Records.Params[parameter], ","), value)
}

// disallowed is a problem. Not so what is in force since before the deployment forbade it: the rack would take no other change until
// somebody has written another value, and what is in force would stay all the same. And not where the deployment is unknown.
func (b *builder) disallowed(parameter string, inForce bool, format string, args ...any) {
	switch {
	case inForce:
		b.warn(parameter, format+"; it is in force, and stays until it is changed or Karpenter is turned off", args...)
	case b.facts.Offline:
		b.warn(parameter, format+"; a pass refuses it, unless the stack's context values, which nobody knows here, allow it", args...)
	default:
		b.problem(parameter, format, args...)
	}
}
