package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Parameters that the deployment restricts.
const (
	imageRepository   = "karpenter_image_repository"
	systemDeployments = "system_deployments"
)

// allowed checks parameters against what the deployment allows. It needs no cluster, so every pass does it, also while
// Karpenter is off. Turning Karpenter off does not skip it, because that may have to start the controller again.
func (b *builder) allowed() {
	b.imageRepository()
	b.systemDeployments()
	b.proxies()
}

// imageRepository refuses images of others for Karpenter's controller, which has rights in AWS and in the cluster.
func (b *builder) imageRepository() {
	image, others := b.config.ImageRepository, b.facts.Deployment.ImageRepositories
	taken := func(allowed string) bool {
		beginning, several := strings.CutSuffix(allowed, "*")
		return image == allowed || several && strings.HasPrefix(image, beginning)
	}
	if image == "" || image == ownership.ControllerImage || slices.ContainsFunc(others, taken) || len(others) == 0 && b.ownECR(image) {
		return
	}
	allowed := "the account's own ECR"
	if len(others) > 0 {
		allowed = strings.Join(others, ", ")
	}
	b.disallowed(imageRepository, b.inForce(imageRepository, image),
		"karpenter_image_repository is %s, and what is in it would run with the rights of Karpenter's controller; allowed are %s and %s; "+
			"write one of these, or have it added to the stack's context value imageRepositories", image, ownership.ControllerImage, allowed)
}

// ecr matches a repository in a private ECR registry. It captures the account, and the domain suffix used in China. The
// pattern of the region excludes the hosts of other AWS services.
var ecr = regexp.MustCompile(`^([0-9]{12})\.dkr\.ecr\.[a-z]{2}(?:-[a-z]+)+-[0-9]+\.amazonaws\.com(\.cn)?/`)

// ownECR reports whether an image is in the cluster's account, in any region. If the account is unknown, any account
// will do.
func (b *builder) ownECR(image string) bool {
	found := ecr.FindStringSubmatch(image)
	if c := b.facts.Cluster; found != nil && c != nil && c.Account != "" {
		return found[1] == c.Account && (found[2] != "") == (c.Partition == "aws-cn")
	}
	return found != nil
}

// systemDeployments refuses Deployments that do not belong to the rack, because changing the placement of a Deployment
// rolls it out again. The namespaces are whole names: all that begins with the rack's name would include those of a rack
// whose name begins with it.
func (b *builder) systemDeployments() {
	namespaces := append([]string{ownership.Namespace, ownership.RackNamespace(b.config.Rack)}, b.facts.Deployment.SystemNamespaces...)
	var before, now []string
	for _, deployment := range b.config.SystemDeployments {
		namespace, _, _ := strings.Cut(deployment, "/")
		own := slices.Contains(namespaces, namespace)
		switch inForce := b.inForce(systemDeployments, deployment); {
		case deployment == ownership.Namespace+"/"+ownership.ReleaseController && !inForce:
			b.problem(systemDeployments,
				"system_deployments has %s, Karpenter's own Deployment, which stands on system nodes as it is; take it out", deployment)
		case own:
		case inForce:
			before = append(before, deployment)
		default:
			now = append(now, deployment)
		}
	}
	others := func(inForce bool, deployments []string) {
		if len(deployments) > 0 {
			b.disallowed(systemDeployments, inForce, "system_deployments has %s; allowed are Deployments of the namespaces %s; "+
				"take the others out, or have their namespace added to the stack's context value systemNamespaces",
				strings.Join(deployments, ", "), strings.Join(namespaces, ", "))
		}
	}
	others(false, now)
	others(true, before)
}

// proxies refuses proxies of others for Karpenter's controller: one that it is sent to sees whom it asks, and may answer.
// Of hosts that are reached without a proxy, the deployment's list must have each.
func (b *builder) proxies() {
	controller, _ := b.config.ControllerValues["controller"].(map[string]any)
	variables, _ := controller["env"].([]any)
	for i, each := range variables {
		variable, _ := each.(map[string]any)
		text, _ := variable["value"].(string)
		var unknown []string
		switch variable["name"] {
		case params.VariableProxy:
			unknown = b.facts.Deployment.without([]string{text})
		case params.VariableNoProxy:
			unknown = b.facts.Deployment.without(strings.Split(text, ","))
		}
		if len(unknown) == 0 {
			continue
		}
		at := fmt.Sprintf("controller.env[%d].value", i)
		sentence := fmt.Sprintf("%s has %s, which would see or take the controller's calls to AWS; allowed is what the stack's context value "+
			"proxies has: %s; write that, or have the others added to it", at, strings.Join(unknown, ", "),
			cmp.Or(strings.Join(b.facts.Deployment.Proxies, ", "), "nothing"))
		if b.facts.Offline {
			b.warnings = append(b.warnings, params.NewProblem(params.ParamController, at, "%s%s", sentence, unknownHere))
		} else {
			b.problems = append(b.problems, params.NewProblem(params.ParamController, at, "%s", sentence))
		}
	}
}

// inForce reports whether a rack has had Karpenter turned on with this value, alone or as an element of a list.
func (b *builder) inForce(parameter, value string) bool {
	return b.facts.Records.WasOn && slices.Contains(strings.Split(b.facts.Records.Params[parameter], ","), value)
}

// unknownHere ends a warning where the deployment is unknown.
const unknownHere = "; a pass refuses it, unless the stack's context values, which nobody knows here, allow it"

// disallowed adds a problem. It is a warning for a value that was already in force when the deployment forbade it: a
// problem would block every other change to the rack, and the value would stay in force anyway. It is also a warning if
// the deployment is unknown.
func (b *builder) disallowed(parameter string, inForce bool, format string, args ...any) {
	switch {
	case inForce:
		b.warn(parameter, format+"; it is in force, and stays until it is changed or Karpenter is turned off", args...)
	case b.facts.Offline:
		b.warn(parameter, format+unknownHere, args...)
	default:
		b.problem(parameter, format, args...)
	}
}
