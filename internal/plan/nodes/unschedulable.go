package nodes

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// kinds maps the requirement keys whose values are known from the instance types to their names in messages.
var kinds = map[string]string{
	keyFamily: "family", keySize: "size", keyCategory: "category", keyGeneration: "generation", keyType: "type",
}

// types adds warnings about the instance types that a pool may use. A type that Karpenter's tables do not have is no
// problem, because AWS may have added it since.
func (a *findings) types(d *draft) {
	requirements := d.requirements()
	if slices.ContainsFunc(requirements, func(r requirement) bool { return r.allows == nil }) {
		return // refused
	}
	var chosen *origin // the origin of the restriction, families first
	unknown := false
	for _, r := range requirements {
		kind := kinds[r.Key]
		if kind == "" {
			continue
		}
		if chosen == nil || r.Key == keyFamily {
			chosen = &r.from
		}
		if r.Operator != "In" && r.Operator != "NotIn" {
			continue
		}
		const most = 10 // to look for the nearest of a thousand types takes long
		others := 0
		for _, value := range r.Values {
			if _, known := columns()[r.Key].index[value]; known && value != "" {
				continue
			}
			if others++; others <= most {
				unknown = true
				known := knownTo()[r.Key]
				a.warn(r.from, "the instance %s %s is none that %s, so it may launch nothing; %s",
					kind, value, d.listed(), params.DidYouMean(value, known, "leave it if EC2 has it, and only Karpenter's list is older"))
			}
		}
		if others > most {
			a.warn(r.from, "%d more instance %s values are none that %s; leave them if EC2 has them", others-most, kind, d.listed())
		}
	}
	spot := slices.IndexFunc(requirements, func(r requirement) bool { return r.Key == keyCapacity && r.allows.Has("spot") })
	if unknown || chosen == nil && spot < 0 {
		return
	}
	if chosen == nil {
		chosen = &requirements[spot].from
	}
	switch count, known := choices(requirements); {
	case count == 0 && len(d.families()) > 0: // refused
	case count == 0:
		a.warn(*chosen, "no instance type that %s meets all requirements of NodePool %s, so it launches nothing; %s",
			d.listed(), d.name, others(requirements))
	case !known:
	case count < fewForSpot && spot >= 0:
		a.warn(requirements[spot].from, "spot has only %d instance types to choose from, and is often interrupted or not to be had; allow "+
			"%d or more by further families or sizes", count, fewForSpot)
	}
}

// families refuses families none of which has an architecture that the pool may have. One that is not in the list may have any.
func (d *draft) families() (found findings) {
	requirements := d.requirements()
	if d.kind != "NodePool" || d.idle || slices.ContainsFunc(requirements, func(r requirement) bool { return r.allows == nil }) {
		return nil
	}
	fits := func(family string) bool {
		return !slices.ContainsFunc(requirements, func(r requirement) bool { return r.Key == keyArch && !r.allows.Has(params.ArchOf(family)) })
	}
	for _, r := range requirements {
		if r.Key == keyFamily && r.Operator == "In" && !r.unknown() && !slices.ContainsFunc(r.Values, fits) {
			found.refuse(r.from, "is %s, which NodePool %s cannot have with its architecture, so it would launch nothing; write other families, "+
				"or another architecture: %s", some(r.Values), d.name, others(requirements))
		}
	}
	return found
}

// listed says whose list of instance types this program has, for a sentence.
func (d *draft) listed() string {
	text := "Karpenter " + builtin().Version + " knows"
	if d.api != builtin() {
		text += " (whose list Sawhorse uses for " + d.api.Version + " too)"
	}
	return text
}

// knownTo maps the keys of kinds to the values that the known instance types have, sorted.
var knownTo = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for key := range kinds {
		all[key] = slices.DeleteFunc(slices.Sorted(slices.Values(columns()[key].values)), func(value string) bool { return value == "" })
	}
	return all
})

// others returns what to write if no known instance type meets the requirements: the architectures, sizes or families
// that would do if the requirements of that key were left out.
func others(requirements []requirement) string {
	for _, try := range []struct{ key, what string }{
		{keyArch, "architecture"}, {keySize, "sizes"}, {keyFamily, "families"}, {keyGeneration, "generations"}, {keyCategory, "categories"},
	} {
		rest := slices.DeleteFunc(slices.Clone(requirements), func(r requirement) bool { return r.Key == try.key })
		var values []string
		for i, is := range remaining(rest) {
			if value := columns()[try.key].at(i); is && value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		if len(rest) < len(requirements) && len(values) > 0 {
			slices.Sort(values)
			return fmt.Sprintf("by the other requirements the %s may be %s", try.what, some(values))
		}
	}
	return "allow more of them"
}

// zones adds warnings about zones in which the pool has no subnet.
func (a *findings) zones(d *draft, zones []string) {
	for _, r := range d.demands() {
		if r.allows.Key != keyZone {
			continue
		}
		if len(zones) > 0 && !slices.ContainsFunc(zones, r.allows.Has) {
			a.warn(r.from, "the rack's subnets are in %s, and %s %s leaves none of them, so NodePool %s launches nothing; write one of these, or "+
				"add subnets to subnet_ids", some(slices.Sorted(slices.Values(zones))), r.Key, r, d.name)
		}
	}
}
