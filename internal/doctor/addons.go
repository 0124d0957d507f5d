package doctor

import (
	"fmt"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const agent = ownership.PodIdentityAgent

// credentials finds an agent that went after Pod Identity was chosen. A pass looks for it only to choose.
func credentials(o *Observed, found *findings) {
	a := o.addOn(agent)
	switch {
	case !o.on() || !o.Association || a != nil && plan.Installed(a.Status):
	case a != nil:
		found.add(Fails, fmt.Sprintf("the controller has its credentials by Pod Identity, but add-on %s is %s", agent, a.Status),
			"Mend the add-on.", o.healthOf(agent))
	default:
		found.add(Fails, fmt.Sprintf("the controller has its credentials by Pod Identity, but the cluster has no add-on %s", agent),
			"Install it again; the choice is kept.",
			fmt.Sprintf("aws eks create-addon --cluster-name %s --addon-name %s", o.Facts.Cluster.Name, agent))
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
			found.add(Warns, fmt.Sprintf("EKS does not list version %s of add-on %s for Kubernetes %s", a.Version, a.Name, o.Facts.Cluster.Version),
				"Update it.",
				fmt.Sprintf("aws eks update-addon --cluster-name %s --addon-name %s --addon-version %s", o.Facts.Cluster.Name, a.Name, a.Listed[0]))
		}
	}
}

// healthOf returns the command that shows the health of an add-on.
func (o *Observed) healthOf(addOn string) string {
	return fmt.Sprintf("aws eks describe-addon --cluster-name %s --addon-name %s --query addon.health", o.Facts.Cluster.Name, addOn)
}
