package nodes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// comes has the states of reservations that become active later: a block begins on the day for which it was bought.
var comes = map[string]bool{"pending": true, "scheduled": true, "payment-pending": true, "assessing": true, "delayed": true}

// Reserved returns problems with capacity reservations, blocks and placement groups that a pool names and cannot use, and warnings about
// those that are full, end soon or have not begun. What the plan in force (nil if there is none) cannot use either is a warning too:
// reservations end, and the pool's other nodes go on.
func (c Compiled) Reserved(facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	var refused, known findings
	for _, d := range c.drafts {
		if d.kind != "NodePool" || d.idle {
			continue
		}
		for i, term := range objects(d.class.spec()["capacityReservationSelectorTerms"]) {
			id, _ := term["id"].(string)
			if id == "" || facts.Reservations == nil {
				continue
			}
			from := d.class.blame("capacityReservationSelectorTerms", fmt.Sprint(i), "id")
			r, found := facts.Reservations[id]
			why, since := "and EC2 shows the account no such capacity reservation; write the ID of one that it may use", !found
			if found {
				why = c.unusable(r, d)
				since = why != "" && c.unusable(r, inForceDraft(inForce, d.name)) != ""
			}
			switch {
			case why == "" && comes[r.State]:
				known.refuse(from, "is %s, which is %s: nothing is launched in it before it is active", id, r.State)
			case why == "" && r.Free == 0:
				known.refuse(from, "is %s, of whose %d instances of %s none is free", id, r.Total, r.InstanceType)
			case since && selects(inForce, d.name, "capacityReservationSelectorTerms", term):
				known.refuse(from, "is %s, %s; it is in force, and nothing is launched in it", id, why)
			case why != "":
				refused.refuse(from, "is %s, %s", id, why)
			}
			if why == "" && r.Ends != "" {
				known.refuse(from, "is %s, which ends at %s; Karpenter then launches what else the pool allows", id, r.Ends)
			}
		}
		c.placement(d, facts, inForce, &refused, &known)
	}
	return firsts(refused), known
}

// unusable says why a pool cannot use a reservation, or returns "".
func (c Compiled) unusable(r plan.Reservation, pool *draft) string {
	fits := remaining(pool.requirements())
	at := slices.Index(columns()[keyType].values, r.InstanceType)
	known := slices.Index(columns()[keyType].of, at)
	zones := c.zonesOf(pool)
	switch {
	case r.State != "active" && !comes[r.State]:
		return fmt.Sprintf("which is %s; write the ID of one that is active", r.State)
	case at >= 0 && known >= 0 && !fits[known]:
		return fmt.Sprintf("for %s, which the requirements of NodePool %s leave out; write requirements that allow it, or another reservation",
			r.InstanceType, pool.name)
	case len(c.zones) > 0 && !slices.Contains(zones, r.Zone):
		return fmt.Sprintf("which is in %s, and NodePool %s launches nodes in %s only; write another reservation", r.Zone, pool.name,
			strings.Join(zones, ", "))
	}
	return ""
}

// placement judges the placement group of a pool.
func (c Compiled) placement(d *draft, facts plan.Facts, inForce *plan.Plan, refused, known *findings) {
	group := inner(d.class.spec(), "placementGroupSelector")
	for _, by := range []string{"id", "name"} {
		value, _ := group[by].(string)
		if value == "" || facts.PlacementGroups == nil || facts.PlacementGroups[value] == "available" {
			continue
		}
		why := "and EC2 shows the account no such placement group"
		if state := facts.PlacementGroups[value]; state != "" {
			why = "which is " + state
		}
		found := refused
		if inner(specIn(inForce, "EC2NodeClass", d.name), "placementGroupSelector")[by] == value {
			found = known
		}
		found.refuse(d.class.blame("placementGroupSelector", by), "is %s, %s; write one that is available", params.Quoted(value), why)
	}
}
