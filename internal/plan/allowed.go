package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Parameters that the deployment restricts.
const (
	nodePolicyARNs    = "node_policy_arns"
	imageRepository   = "karpenter_image_repository"
	systemDeployments = "system_deployments"
)

// allowed checks parameters against what the deployment allows. It needs no cluster, so every pass does it, also while
// Karpenter is off. Turning Karpenter off does not skip it, because that may have to start the controller again.
func (b *builder) allowed() {
	b.imageRepository()
	b.systemDeployments()
	b.proxies()
	b.nodePolicyARNs()
}

// nodePolicyARNs refuses policies for the nodes' role that IAM cannot attach, and those that nothing would limit: the stack's own
// boundary of nodes does, and that of somebody else may not.
func (b *builder) nodePolicyARNs() {
	for _, policy := range b.config.NodePolicyARNs {
		if cluster := b.facts.Cluster; cluster != nil && !b.facts.Deployment.Unknown {
			arn := "arn:" + cluster.Partition + ":iam::"
			if aws, own := arn+"aws:policy/", arn+cluster.Account+":policy/"; !strings.HasPrefix(policy, aws) && !strings.HasPrefix(policy, own) {
				b.problemUnlessDisabling(nodePolicyARNs, "node_policy_arns has %s, and IAM attaches only policies of AWS "+
					"and of the role's own account; allowed is what begins with %s or %s; write one of these", policy, aws, own)
				continue
			}
		}
		if b.facts.Deployment.Boundary == "" || slices.Contains(b.facts.Deployment.NodePolicies, policy) {
			continue
		}
		b.disallowed(nodePolicyARNs, b.inForce(nodePolicyARNs, policy),
			"node_policy_arns has %s, and the stack's own boundary, which limits what nodes may do, is replaced by %s; allowed is what the "+
				"stack's context value nodePolicyArns has: %s; write that, or have this policy added to it", policy,
			b.facts.Deployment.Boundary, cmp.Or(strings.Join(b.facts.Deployment.NodePolicies, ", "), "nothing"))
	}
}

// imageRepository refuses an image for Karpenter's controller, which has rights in AWS and in the cluster, that somebody
// else may have made. A digest selects the same image in every repository. A version without a digest takes whatever has
// its tag, so its image comes from the chart's own repository or from one that the deployment names.
func (b *builder) imageRepository() {
	image := b.config.ImageRepository
	taken := func(allowed string) bool {
		beginning, several := strings.CutSuffix(allowed, "*")
		return image == allowed || several && strings.HasPrefix(image, beginning)
	}
	named := append([]string{ownership.ControllerImage}, b.facts.Deployment.ImageRepositories...)
	if image == "" || slices.ContainsFunc(named, taken) {
		return
	}
	inForce, current := b.inForce(imageRepository, image), b.facts.Records.inForceOrPlanned()
	for _, release := range b.installable() {
		if release.Digest != "" {
			continue
		}
		parameter, otherwise := imageRepository, "write a karpenter_version whose digest is known"
		if inForce && release.Version != current {
			parameter = params.ParamVersion
		}
		if release.Version != b.target.Version {
			otherwise = fmt.Sprintf("write it once %s runs, because %s comes back if that fails", b.target.Version, release.Version)
		}
		b.disallowed(parameter, inForce && release.Version == current,
			"karpenter_image_repository is %s, and the digest of Karpenter %s's image is not known, so whatever has that tag there would run "+
				"with the rights of Karpenter's controller; allowed for that version are %s; write one of these, have it added to the stack's "+
				"context value imageRepositories, or %s", image, release.Version, strings.Join(named, ", "), otherwise)
		return
	}
}

// installable returns the versions whose controller the plan may run: its own, and the one in force, which comes back if
// a change of version fails.
func (b *builder) installable() []catalogue.Release {
	releases := []catalogue.Release{b.target.Release}
	if before, err := catalogue.Find(b.facts.Records.InForce()); err == nil && before.Version != b.target.Version {
		releases = append(releases, before)
	}
	return releases
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
		if b.facts.Deployment.Unknown {
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
	case b.facts.Deployment.Unknown:
		b.warn(parameter, format+unknownHere, args...)
	default:
		b.problem(parameter, format, args...)
	}
}
