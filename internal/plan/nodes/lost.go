package nodes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
)

// lost adds warnings about default requirements that a config removes silently: its list of requirements
// replaces the whole default list.
func (a *findings) lost(d *draft) {
	now := d.requirements()
	from := d.blame("template", "spec", "requirements")
	for _, was := range d.replaced {
		if slices.ContainsFunc(now, func(r requirement) bool { return r.allows.Key == was.Key }) {
			continue
		}
		switch was.Key {
		case keyArch:
			if other := otherArch(now, was); other != "" {
				a.warn(from, "%s names no %s, so NodePool %s may launch %s nodes too, and not %s ones only; write %s there too",
					from.path, keyArch, d.name, other, strings.Join(was.Values, ","), canonical.JSON(was.NodeSelectorRequirementWithMinValues))
			}
		case keyCapacity:
			if !was.allows.Has("spot") {
				a.warn(from, "%s names no %s, so Karpenter launches spot nodes in NodePool %s where it can; write %s there too",
					from.path, keyCapacity, d.name, canonical.JSON(was.NodeSelectorRequirementWithMinValues))
			}
		}
	}
}

// reservations adds a warning if a pool may use capacity reservations and selects none, or the reverse. Karpenter uses
// reservations only if the requirements name the capacity type reserved, and the default requirements do not.
func (a *findings) reservations(d *draft) {
	terms, _ := d.class.spec()["capacityReservationSelectorTerms"].([]any)
	var named *requirement
	may := true
	for _, r := range d.requirements() {
		if r.Key != keyCapacity {
			continue
		}
		may = may && r.allows.Has("reserved")
		if r.Operator == "In" && slices.Contains(r.Values, "reserved") {
			named = &r
		}
	}
	switch {
	case len(terms) > 0 && !may:
		wanted := oneOf(keyCapacity, "reserved", "on-demand")
		a.warn(d.class.blame("capacityReservationSelectorTerms"), "the capacity reservations are not used, because NodePool %s "+
			"does not have the capacity type reserved; write %s among nodePool.template.spec.requirements", d.name, canonical.JSON(wanted))
	case len(terms) == 0 && named != nil:
		only := "launches nothing of it"
		if len(named.Values) == 1 {
			only = "launches nothing"
		}
		a.warn(named.from, "NodePool %s has the capacity type reserved, but no capacity reservation is selected, so it %s; write "+
			"ec2NodeClass.capacityReservationSelectorTerms", d.name, only)
	}
}

// otherArch returns an architecture that instance types meeting the requirements have and the former requirement did
// not allow, or "".
func otherArch(requirements []requirement, was requirement) string {
	for i, is := range remaining(requirements) {
		if arch := columns()[keyArch].at(i); is && !was.allows.Has(arch) {
			return arch
		}
	}
	return ""
}

// disks adds warnings about block device mappings of a config that lack what Sawhorse's mappings have, because
// they replace those: encryption, and a volume on the device that pods use.
func (a *findings) disks(d *draft) {
	from := d.blame("blockDeviceMappings")
	if !from.config {
		return
	}
	var devices []string
	for i, mapping := range objects(d.spec()["blockDeviceMappings"]) {
		name, _ := mapping["deviceName"].(string)
		devices = append(devices, name)
		if ebs := inner(mapping, "ebs"); ebs["encrypted"] == nil {
			at := d.blame("blockDeviceMappings", strconv.Itoa(i), "ebs")
			a.warn(at, "%s does not say whether the volume is encrypted, and then it is only if EC2 encrypts all volumes of the account; write "+
				"\"encrypted\":true", at.path)
		}
	}
	family := aliasFamily(d.spec())
	used := map[string]string{familyAL2: bootDevice, familyAL2023: bootDevice, familyBottlerocket: bottlerocketData}[family]
	if used != "" && !slices.Contains(devices, used) {
		a.warn(from, "%s has no volume for %s, where %s has pods and images: they get what the AMI brings, and the volumes that are there are "+
			"not used by themselves; write \"deviceName\":%q", from.path, used, display(family), used)
	}
}
