package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// fewForSpot is the number of instance types below which a spot pool gets a warning. AWS recommends to be flexible
// across instance types so that spot capacity is available.
const fewForSpot = 20

// Advice returns warnings about valid manifests that often cause trouble. It checks the final pools, with overrides.
func (c Compiled) Advice() []params.Problem {
	var a findings
	for _, d := range c.drafts {
		switch {
		case d.idle:
		case d.kind == "NodePool":
			a.types(d)
			a.budgets(d)
			a.limits(d)
			a.taints(d)
		default:
			a.nodes(d)
		}
	}
	return a
}

// Surprises returns warnings about pools that are valid but may do something that their author does not expect.
func (c Compiled) Surprises() []params.Problem {
	var a findings
	for _, d := range c.drafts {
		switch {
		case d.idle:
		case d.kind == "NodePool":
			a.lost(d)
			a.reservations(d)
			a.zones(d, c.zones)
		default:
			a.images(d)
			a.disks(d)
		}
	}
	return append(a, c.conflicts()...)
}

// Exceeded returns warnings about limits that are lower than what the pools run now.
func (c Compiled) Exceeded(running map[string]plan.PoolFacts) []params.Problem {
	var a findings
	for _, d := range c.drafts {
		facts, known := running[d.name]
		if d.kind != "NodePool" || d.idle || !known {
			continue
		}
		limits := inner(d.spec(), "limits")
		for _, r := range []struct{ name, runs string }{{"cpu", facts.CPU}, {"memory", facts.Memory}} {
			most := fmt.Sprint(limits[r.name])
			// The facts given to the command are not validated.
			if limits[r.name] == nil || !readableQuantity(most) || !readableQuantity(r.runs) {
				continue
			}
			limit, now := resource.MustParse(most), resource.MustParse(r.runs)
			if limit.Cmp(now) >= 0 {
				continue
			}
			a.warn(d.blame("limits", r.name), "NodePool %s may have %s of %s, and %s runs now on %d nodes: Karpenter launches no "+
				"more, and takes none away", d.name, limit.String(), r.name, now.String(), facts.Nodes)
		}
	}
	return a
}

func (a *findings) budgets(d *draft) {
	if all, is := inner(d.spec(), "disruption")["budgets"].([]any); is && len(all) == 0 {
		a.warn(d.blame("disruption", "budgets"), "no disruption budget lets Karpenter disrupt every node of NodePool %s at the same time; leave "+
			"budgets out for 10%%, or write one", d.name)
	}
	for i, budget := range objects(inner(d.spec(), "disruption")["budgets"]) {
		nodes, _ := budget["nodes"].(string)
		from := d.blame("disruption", "budgets", strconv.Itoa(i))
		if reasons, is := budget["reasons"].([]any); is && len(reasons) == 0 {
			a.warn(from, "a disruption budget of %s with an empty list of reasons is never in force; leave reasons out, which means all of them, "+
				"or name some of Empty, Drifted and Underutilized", nodes)
		}
		if nodes != "0" && nodes != "0%" || budget["schedule"] != nil {
			continue
		}
		switch reasons, is := budget["reasons"].([]any); {
		case !is:
			a.warn(from, "a disruption budget of %s without a schedule never lets Karpenter consolidate or replace a node of its own accord", nodes)
		case slices.Contains(reasons, any(string(karpenter.DisruptionReasonEmpty))):
			a.warn(from, "a disruption budget of %s for empty nodes without a schedule never lets Karpenter remove an empty node of NodePool %s",
				nodes, d.name)
		}
	}
}

// limitable are the resources without a domain that a NodePool can be limited by, beside huge pages.
var limitable = []string{"cpu", "ephemeral-storage", "memory", "nodes", "pods"}

// limits adds warnings about limits that limit nothing, and about those that are missing because a config replaces all limits.
func (a *findings) limits(d *draft) {
	limits := inner(d.spec(), "limits")
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if !strings.Contains(name, "/") && !strings.HasPrefix(name, "hugepages-") && !slices.Contains(limitable, name) {
			a.warn(d.blame("limits", name), "nodes have no resource %s, so it limits nothing; %s", params.Quoted(name),
				params.DidYouMean(name, limitable, "allowed are "+strings.Join(limitable, ", ")+" and names with a domain, like nvidia.com/gpu"))
		}
	}
	for _, resource := range []string{"cpu", "memory"} {
		if limits[resource] == nil && !static(d.object) {
			from := d.blame("limits")
			a.warn(from, "NodePool %s has no limit of %s, because %s takes the place of every limit; write %s there too",
				d.name, resource, from.path, resource)
		}
	}
}

// taints adds warnings about taints that keep pods away, one for all taints with the same origin.
func (a *findings) taints(d *draft) {
	taints := map[origin][]string{}
	var order []origin
	for i, taint := range objects(inner(d.spec(), "template", "spec")["taints"]) {
		key, _ := taint["key"].(string)
		effect, _ := taint["effect"].(string)
		if key == "" || effect == "PreferNoSchedule" || extendedResource(key) ||
			d.tolerated != nil && d.tolerated.Key == key && d.tolerated.Effect == effect {
			continue
		}
		from, whole := d.origin([]string{"spec", "template", "spec", "taints"})
		if !whole {
			from = d.blame("template", "spec", "taints", strconv.Itoa(i))
		}
		if taints[from] == nil {
			order = append(order, from)
		}
		if taint := key + ":" + effect; !slices.Contains(taints[from], taint) {
			taints[from] = append(taints[from], taint)
		}
	}
	for _, from := range order {
		a.warn(from, "nothing tolerates the taint %s of its own accord: only the taint of a device that pods request, like nvidia.com/gpu, is "+
			"tolerated automatically; make sure that the pods meant for these nodes have the toleration", some(taints[from]))
	}
}

// some joins the first elements of a list and says how many others there are.
func some(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, " or ")
	}
	return fmt.Sprintf("%s, or %d others", strings.Join(all[:most], ", "), len(all)-most)
}

// extendedResource reports whether a taint key belongs to a device. EKS enables the admission plugin
// ExtendedResourceToleration, which adds the toleration to pods that request the device.
func extendedResource(key string) bool {
	return slices.Contains([]string{"nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore",
		"habana.ai/gaudi", "vpc.amazonaws.com/efa"}, key)
}

func (a *findings) nodes(d *draft) {
	if hops, _ := inner(d.spec(), "metadataOptions")["httpPutResponseHopLimit"].(int64); hops > 1 {
		a.warn(d.blame("metadataOptions", "httpPutResponseHopLimit"),
			"a hop limit of %d lets every pod reach the node's credentials; 1 keeps them to the node", hops)
	}
}
