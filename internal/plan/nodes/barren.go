package nodes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

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
		for _, value := range r.Values {
			if known := knownTo()[r.Key]; !slices.Contains(known, value) {
				unknown = true
				a.warn(r.from, "the instance %s %s is none that %s, so it may launch nothing; %s",
					kind, value, d.listed(), params.DidYouMean(value, known, "leave it if EC2 has it, and only Karpenter's list is older"))
			}
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
	case count == 0:
		a.warn(*chosen, "no instance type that %s meets all requirements of NodePool %s, so it launches nothing; %s",
			d.listed(), d.name, others(requirements))
	case !known:
	case count < fewForSpot && spot >= 0:
		a.warn(requirements[spot].from, "spot has only %d instance types to choose from, and is often interrupted or not to be had; allow "+
			"%d or more by further families or sizes", count, fewForSpot)
	}
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
		for i, is := range left(rest) {
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

// ranges maps numeric labels to the smallest and the largest value among the instance types, in the unit of the label.
var ranges = map[string]struct {
	least, most int
	unit        string
}{
	keyCPU:                                  {1, 1920, "vCPUs"},
	keyMemory:                               {512, 32 << 20, "MiB"},
	"karpenter.k8s.aws/instance-gpu-memory": {1024, 1 << 20, "MiB"},
	"karpenter.k8s.aws/instance-gpu-count":  {1, 16, "GPUs"},
}

// counted adds warnings about numeric requirements that no instance type meets, or that were written in another unit.
func (a *findings) counted(d *draft) {
	for _, r := range d.demands() {
		has := ranges[r.Key]
		if has.most == 0 || r.allows == nil || r.Operator == "NotIn" || r.Operator == "DoesNotExist" {
			continue
		}
		within := scheduling.NewRequirement(r.Key, karpenter.NodeSelectorOpGte, strconv.Itoa(has.least)).
			Intersection(scheduling.NewRequirement(r.Key, karpenter.NodeSelectorOpLte, strconv.Itoa(has.most)))
		small := slices.ContainsFunc(r.Values, func(value string) bool {
			n, err := strconv.Atoi(value)
			return err == nil && n > 0 && n < has.least && has.unit == "MiB"
		})
		switch {
		case small:
			a.warn(r.from, "%s is in MiB, and %s is less than any instance type has; write, for example, 16384 for 16 GiB", r.Key, r)
		case !within.HasIntersection(r.allows):
			a.warn(r.from, "%s %s leaves no instance type: EC2 has them with %d to %d %s, so NodePool %s launches nothing; write numbers in between",
				r.Key, r, has.least, has.most, has.unit, d.name)
		}
	}
}

// own adds warnings about keys that Karpenter treats as the user's own labels, so that they restrict no instance
// types, and about labels that do restrict them.
func (a *findings) own(d *draft) {
	for _, r := range d.demands() {
		// The CRD of a newer version may accept further keys of Karpenter's domain, which are well known to that version.
		known := karpenter.WellKnownLabels.Has(r.allows.Key) || strings.HasPrefix(r.Key, "karpenter.k8s.aws/")
		switch {
		case known && r.label:
			a.warn(r.from, "the label %s=%s makes Karpenter launch only such nodes in NodePool %s; write it as a requirement of the pool, if that "+
				"is what you want, and leave the label out, which Karpenter sets by itself", r.Key, r.Values[0], d.name)
		case known || r.label:
		case meant(r.Key) != "":
			a.warn(r.from, "%s is a label of your own to Karpenter, which restricts no instance types by it; write %s, if that is meant",
				r.Key, meant(r.Key))
		case r.Operator == "In" && len(r.Values) > 1:
			a.warn(r.from, "%s %s gives a node any one of the values as its label, unless the pod that it is launched for selects one; write one "+
				"value, or make a pool for each", r.Key, r)
		case r.Operator != "In" && r.Operator != "DoesNotExist":
			a.warn(r.from, "%s %s gives a node a random number as its label, unless the pod that it is launched for selects a value; write In and "+
				"values to have a certain one", r.Key, r)
		}
	}
}

var (
	region = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`)
	zoneID = regexp.MustCompile(`^[a-z]{3,6}[0-9]+-az[0-9]+$`)
)

// placed adds warnings about zones in which the pool has no subnet.
func (a *findings) placed(d *draft, zones []string) {
	for _, r := range d.demands() {
		if r.allows.Key != keyZone {
			continue
		}
		for _, value := range r.Values {
			switch {
			case region.MatchString(value):
				a.warn(r.from, "%s is a region and no zone, so NodePool %s may launch nothing; write its zones, for example %sa", value, d.name, value)
			case zoneID.MatchString(value):
				a.warn(r.from, "%s is the id of a zone and not its name, so NodePool %s may launch nothing; write the name, or the key %s",
					value, d.name, keyZoneID)
			}
		}
		if len(zones) > 0 && !slices.ContainsFunc(zones, r.allows.Has) {
			a.warn(r.from, "the rack's subnets are in %s, and %s %s leaves none of them, so NodePool %s launches nothing; write one of these, or "+
				"add subnets to subnet_ids", some(slices.Sorted(slices.Values(zones))), r.Key, r, d.name)
		}
	}
}
