package doctor

import (
	"fmt"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

func parameters(o *Observed, found *findings) {
	if len(o.Params) == 0 {
		found.add(Info,
			fmt.Sprintf("rack %s has no parameters yet; it was examined with the defaults, as cluster %s", o.Rack, o.Config.ClusterName),
			"Create them.", "sawhorse register "+o.Rack)
		return
	}
	for _, p := range o.problems() {
		found.add(Fails, p.Parameter+": "+p.Message, "Write what it says; `sawhorse check` tells before the write.")
	}
}

// problems returns the problems that a pass would find, except those that other checks report and those about facts
// that could not be observed.
func (o *Observed) problems() []params.Problem {
	input := params.Input{Rack: o.Rack, Params: o.Params, Secure: o.Secure}
	facts := plan.Facts{Offline: true, NodeGroups: o.NodeGroups, Records: o.records()}
	if o.on() { // In a pass, the rack's records have this, but doctor does not read them.
		input.Previous = map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	}
	if o.Cluster != nil {
		facts.Cluster = &plan.ClusterFacts{
			Cluster: o.Cluster.Cluster, Version: o.Cluster.Version, Status: "ACTIVE", AuthMode: o.Cluster.AuthMode,
		}
	}
	// Validate fails only if the manifests in force cannot be read, and none are passed.
	result, _ := validation.Validate(params.Parse(input), facts, validation.InForce{})
	return result.Problems
}

func cluster(o *Observed, found *findings) {
	switch c := o.Cluster; {
	case c == nil && o.Missing:
		found.add(Fails, fmt.Sprintf("there is no EKS cluster %q in this account and region", o.Config.ClusterName),
			"Write the cluster's name to the parameter cluster_name, or use the credentials and the region of its account.")
	case c == nil:
		found.unseen(o, TheCluster)
	case c.Status != "ACTIVE" && c.Status != "UPDATING":
		found.add(Fails, fmt.Sprintf("cluster %s is %s", c.Name, c.Status), "Wait until it is ACTIVE, or look at its health in EKS.",
			"aws eks describe-cluster --name "+c.Name+" --query cluster.health")
	}
}

// clusterTag only warns about a rack that is already on, because it may be older than the tag. A pass does the same.
func clusterTag(o *Observed, found *findings) {
	in, tag := o.Cluster.Tags[ownership.TagRack], ownership.TagRack+"="+o.Rack
	severity, what := failsIf(!o.on()), fmt.Sprintf("cluster %s does not carry the tag %s", o.Cluster.Name, tag)
	switch in {
	case o.Rack:
	case "":
		found.add(severity, what,
			"Register the rack, or have the cluster's owner set the tag; "+
				"only a stack that was deployed with requireClusterTag=false does without.",
			"sawhorse register "+o.Rack+" --cluster "+o.Cluster.Name)
	default:
		found.add(severity, what+", but lets rack "+in+" in", "Use another cluster, or have this one's owner set the tag anew.",
			fmt.Sprintf("aws eks tag-resource --resource-arn %s --tags %s", o.Cluster.ARN, tag))
	}
}

func autoMode(o *Observed, found *findings) {
	if o.Cluster.AutoMode {
		found.add(Fails, fmt.Sprintf("cluster %s runs EKS Auto Mode", o.Cluster.Name),
			"Use a cluster without Auto Mode; a pass refuses this one.")
	}
}

func kubernetesVersion(o *Observed, found *findings) {
	karpenter, running := plan.Target(o.Config, plan.Facts{Records: o.records()}), o.Cluster.Version
	if karpenter.Kubernetes.Lists(running) {
		return
	}
	do := "Upgrade an older cluster; leave a newer one alone until Sawhorse brings a Karpenter that lists it."
	if lists := plan.Listing(running); len(lists) > 0 {
		do = "Write karpenter_version " + lists[0] + ", which lists it."
	}
	installs := karpenter.Version != o.records().InForce() // which a pass refuses
	found.add(failsIf(installs),
		fmt.Sprintf("cluster %s runs Kubernetes %s; Karpenter %s lists %s", o.Cluster.Name, running, karpenter.Version, karpenter.Kubernetes),
		do)
}

const agent = ownership.PodIdentityAgent

func credentials(o *Observed, found *findings) {
	install := fmt.Sprintf("aws eks create-addon --cluster-name %s --addon-name %s", o.Cluster.Name, agent)
	a := o.addOn(agent)
	running := a != nil && plan.Installed(a.Status)
	switch {
	case running && (o.Association || !o.on()):
	case o.Provider && !o.Association && o.ProviderWithoutSTS:
		found.add(Fails,
			fmt.Sprintf("the cluster's OIDC provider in IAM lacks the client id %s, so that STS gives the controller no credentials",
				ownership.OIDCClient), "Add it.",
			fmt.Sprintf("aws iam add-client-id-to-open-id-connect-provider --client-id %s --open-id-connect-provider-arn %s",
				ownership.OIDCClient, plan.OIDCProviderARN(o.Cluster.Cluster)))
	case o.Provider && !o.Association:
	case o.Association && a != nil:
		found.add(Fails, fmt.Sprintf("the controller has its credentials by Pod Identity, but add-on %s is %s", agent, a.Status),
			"Mend the add-on.", o.healthOf(agent))
	case o.Association:
		found.add(Fails, fmt.Sprintf("the controller has its credentials by Pod Identity, but the cluster has no add-on %s", agent),
			"Install it again; the choice is kept.", install)
	case o.on():
		found.add(Fails,
			fmt.Sprintf("the controller has no Pod Identity association, and IAM has no OIDC provider %s", o.Cluster.OIDCIssuer),
			"Create the provider again for that issuer, with the client id sts.amazonaws.com.",
			fmt.Sprintf("aws iam create-open-id-connect-provider --url %s --client-id-list sts.amazonaws.com", o.Cluster.OIDCIssuer))
	default:
		found.add(Fails, fmt.Sprintf("the cluster has no active add-on %s, and IAM has no OIDC provider for it", agent),
			"Install the add-on; it is the simpler of the two.", install)
	}
}

func addOns(o *Observed, found *findings) {
	for _, a := range o.AddOns {
		if a.Status != "ACTIVE" && a.Status != "UPDATING" && a.Status != "CREATING" {
			what := fmt.Sprintf("add-on %s is %s", a.Name, a.Status)
			if len(a.Issues) > 0 {
				what += ": " + some(a.Issues)
			}
			found.add(Warns, what, "Mend it before new nodes depend on it.", o.healthOf(a.Name))
		}
		if len(a.Listed) > 0 && !slices.Contains(a.Listed, a.Version) {
			found.add(Warns, fmt.Sprintf("EKS does not list version %s of add-on %s for Kubernetes %s", a.Version, a.Name, o.Cluster.Version),
				"Update it.",
				fmt.Sprintf("aws eks update-addon --cluster-name %s --addon-name %s --addon-version %s", o.Cluster.Name, a.Name, a.Listed[0]))
		}
	}
}

// healthOf returns the command that shows the health of an add-on.
func (o *Observed) healthOf(addOn string) string {
	return fmt.Sprintf("aws eks describe-addon --cluster-name %s --addon-name %s --query addon.health", o.Cluster.Name, addOn)
}
