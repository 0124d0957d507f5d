package nodes

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Offered returns problems with pools of families none of which EC2 offers where the rack's subnets are, and warnings about single
// families that it offers nowhere in the region, and about what the plan in force (nil if there is none) has already.
func (c Compiled) Offered(facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	var refused, known findings
	for _, d := range c.drafts {
		if d.kind != "NodePool" || d.idle || !c.config.Enabled {
			continue
		}
		zones := c.zonesOf(d)
		here := func(family string) bool {
			return slices.ContainsFunc(facts.Offered[family], func(zone string) bool { return len(c.zones) == 0 || slices.Contains(zones, zone) })
		}
		for _, r := range d.requirements() {
			unknown := func(family string) bool { return facts.Offered[family] == nil }
			if r.Key != keyFamily || r.Operator != "In" || r.allows == nil || slices.ContainsFunc(r.Values, unknown) {
				continue
			}
			nowhere := slices.DeleteFunc(slices.Clone(r.Values), func(family string) bool { return len(facts.Offered[family]) > 0 })
			switch {
			case !slices.ContainsFunc(r.Values, here) && len(zones) > 0 && !ofFamilies(inForce, d.name, r.Values):
				refused.refuse(r.from, "is %s, which EC2 does not offer in %s, so NodePool %s would launch nothing; write a family that it offers "+
					"there, as `aws ec2 describe-instance-type-offerings --location-type availability-zone` lists them", some(r.Values),
					strings.Join(zones, ", "), d.name)
			case !slices.ContainsFunc(r.Values, here) && len(zones) > 0:
				known.refuse(r.from, "is %s, which EC2 does not offer in %s; it is in force, and NodePool %s launches nothing", some(r.Values),
					strings.Join(zones, ", "), d.name)
			case len(nowhere) > 0:
				known.refuse(r.from, "has %s, which EC2 does not offer in the region; leave it out, or correct it", some(nowhere))
			}
		}
	}
	return firsts(refused), firsts(known)
}

// zonesOf returns the zones of the rack's subnets in which a pool may launch nodes.
func (c Compiled) zonesOf(pool *draft) []string {
	zones := slices.Clone(c.zones)
	for _, one := range pool.requirements() {
		if one.Key == keyZone && one.allows != nil {
			zones = slices.DeleteFunc(zones, func(zone string) bool { return !one.allows.Has(zone) })
		}
	}
	return zones
}

// ofFamilies reports whether a pool of a plan asks for these families.
func ofFamilies(p *plan.Plan, pool string, families []string) bool {
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	return slices.ContainsFunc(inForceDraft(p, pool).requirements(), func(r requirement) bool {
		return r.Key == keyFamily && r.Operator == "In" && slices.Equal(sorted(r.Values), sorted(families))
	})
}
