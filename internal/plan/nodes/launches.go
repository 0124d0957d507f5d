package nodes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Launches returns problems with pools that can launch no node, while Karpenter is on or to be turned on. inForce is the plan in
// force, or nil.
func (c Compiled) Launches(facts plan.Facts, inForce *plan.Plan) []params.Problem {
	var a findings
	for _, d := range c.drafts {
		if d.kind != "NodePool" || d.idle || !c.config.Enabled {
			continue
		}
		if facts.NoSpotRole {
			a.spotRole(d)
		}
		// A pool that has taken over may be limited to nothing. Before that, it would have no first node.
		added := d.name == ownership.BuildPool && inForce != nil && !slices.Contains(inForce.NodePools.Names(), d.name)
		if added || !facts.Records.WasOn && slices.Contains([]string{ownership.WorkloadPool, ownership.BuildPool}, d.name) {
			a.tooSmall(d)
			if replicas := d.spec()["replicas"]; replicas != nil && fmt.Sprint(replicas) == "0" {
				a.refuse(d.blame("replicas"), "is 0, and pool %s shows a node before anything is handed over to it; write 1 or more", d.name)
			}
		}
	}
	return a
}

// spotRole refuses spot in an account that EC2 launches no spot instances in.
func (f *findings) spotRole(d *draft) {
	from, may := d.blame("template", "spec", "requirements"), true // without a demand Karpenter launches spot where it is cheaper
	for _, r := range d.demands() {
		if r.Key == keyCapacity && r.allows != nil && may {
			from, may = r.from, r.allows.Has("spot")
		}
	}
	if may {
		f.warn(from, "NodePool %s may launch spot instances, and the account has no role %s, without which EC2 launches none; create it, "+
			"once for the account, with `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`, or write on-demand",
			d.name, ownership.SpotRole)
	}
}

// tooSmall refuses limits below every instance that the pool may launch.
func (f *findings) tooSmall(d *draft) {
	requirements, limits := d.requirements(), inner(d.spec(), "limits")
	if slices.ContainsFunc(requirements, func(r requirement) bool { return r.allows == nil || r.unknown() }) {
		return
	}
	size := columns()[keySize]
	family := columns()[keyFamily]
	least := map[string]int64{}
	for i, may := range remaining(requirements) {
		if !may {
			continue
		}
		cpu, memory := leastOf(family.at(i), size.at(i))
		if least["cpu"] == 0 || cpu < least["cpu"] {
			least["cpu"], least["memory"] = cpu, memory
		}
	}
	for _, name := range []string{"cpu", "memory"} {
		text := fmt.Sprint(limits[name]) // the CRD takes numbers too
		if !readableQuantity(text) {     // absent, or refused for that
			continue
		}
		limit := resource.MustParse(text)
		if wanted := resource.NewQuantity(least[name], resource.BinarySI); limit.Cmp(*wanted) < 0 {
			f.warn(d.blame("limits", name), "NodePool %s may have %s of %s, and the smallest instance that it may launch has at least %s, so "+
				"it could launch none, and nothing could be handed over to it; write more, or allow smaller instances", d.name, text, name, wanted)
		}
	}
}

var timesXlarge = regexp.MustCompile(`^([0-9]*)xlarge$`)

// leastOf returns how many vCPUs and bytes of memory an instance type has at least, by its name: 4 vCPUs for an xlarge, or half
// of that in the families with fewer threads or of old, and 1.5 GiB a vCPU. Smaller sizes differ from family to family.
func leastOf(family, size string) (cpu, memory int64) {
	cpu, memory = 1, 256<<20
	switch parts := timesXlarge.FindStringSubmatch(size); {
	case size == "large":
		cpu = 2
	case parts != nil:
		times, _ := strconv.ParseInt("0"+parts[1], 10, 64)
		cpu = 4 * max(1, times)
		if strings.HasPrefix(family, "hpc") || family == "m2" || strings.HasPrefix(family, "cc") || strings.HasPrefix(family, "hs") {
			cpu /= 2
		}
	}
	if cpu > 1 {
		memory = cpu * 3 << 29
	}
	return cpu, memory
}
