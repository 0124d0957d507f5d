package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// PoolObject is a NodePool or an EC2NodeClass of the rack.
type PoolObject struct {
	Kind, Name string
	// NotReady has the conditions that are not True, in words; empty if the object is Ready.
	NotReady string
	// Unhealthy is why the last nodes of a NodePool did not launch or register; empty if they did.
	Unhealthy string
	// Retires means that Sawhorse is removing the pool.
	Retires bool
}

// poolRemedies are the remedies by a word of an EC2NodeClass's conditions. The first that matches counts.
var poolRemedies = []struct{ word, do string }{
	{"AuthCheckFailed", "Look for a service control policy or a permissions boundary that denies the call to the role of " +
		"Karpenter's controller. " +
		"A pass makes Karpenter try again every 30 s; by itself it does so after 30 minutes."},
	{"SubnetsReady=False", "Set the discovery tag on the subnets for nodes, or name the subnets in subnet_ids; see the check discovery."},
	{"SecurityGroupsReady=False", "Set the discovery tag on the cluster's security group, or name the groups in security_group_ids; " +
		"see the check discovery."},
	{"AMIsReady=False", "Name AMIs that exist in this region and that this account may use: amiSelectorTerms in karpenter_config."},
	{"InstanceProfileReady=False", "Run a full pass, which creates the role of the nodes and the rights of the controller again."},
}

func nodePools(o *Observed, found *findings) {
	for _, p := range o.Pools {
		describe := fmt.Sprintf("kubectl describe %s %s", strings.ToLower(p.Kind), p.Name)
		switch {
		case p.NotReady != "":
			found.add(Fails, fmt.Sprintf("%s %s is not Ready: %s", p.Kind, p.Name, p.NotReady), poolRemedy(p), describe)
		case p.Unhealthy != "":
			found.add(Warns, fmt.Sprintf("the last nodes of NodePool %s did not launch or did not register: %s", p.Name, p.Unhealthy),
				"See the check launches, and the events of the NodePool.", describe)
		}
	}
	if !o.on() || !o.Config.Enabled {
		return
	}
	for _, wanted := range o.pools() {
		if !slices.ContainsFunc(o.Pools, func(p PoolObject) bool { return p.Kind == "NodePool" && p.Name == wanted.name }) {
			found.add(Fails, fmt.Sprintf("the cluster has no NodePool %s, which the parameters describe", wanted.name),
				"If a pass is running, wait for its end. Otherwise the status says why the last pass did not create it.",
				"sawhorse status "+o.Rack)
		}
	}
}

func poolRemedy(p PoolObject) string {
	for _, r := range poolRemedies {
		if p.Kind == "EC2NodeClass" && strings.Contains(p.NotReady, r.word) {
			return r.do
		}
	}
	if p.Kind == "NodePool" && strings.Contains(p.NotReady, "NodeClassReady") {
		return "Mend its EC2NodeClass, which this check reports too."
	}
	return "Mend what the conditions name. If its controller has not looked at it, Karpenter's pods do not run: see Deployment " +
		ownership.Namespace + "/" + ownership.ReleaseController + "."
}
