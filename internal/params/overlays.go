package params

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Overlay is an entry of karpenter_node_overlays_config.
type Overlay struct {
	// At is the entry's path in the parameter, such as [0].
	At   string `json:"at"`
	Name string `json:"name"`
	// Spec has the entry's other fields, which are those of the spec of a NodeOverlay.
	Spec map[string]any `json:"spec"`
}

// changesOf are the fields of an overlay that change something, of which it needs one.
var changesOf = []string{"capacity", "price", "priceAdjustment"}

// overlays reads karpenter_node_overlays_config. Unknown fields and wrong values are found later, by the CRD.
func (r *Result) overlays(objects map[string]Object) {
	value, given := r.document(ParamOverlays, objects)
	if !given {
		return
	}
	p, _ := Lookup(ParamOverlays)
	entries, is := value.([]any)
	if !is {
		r.problem(ParamOverlays, "", "%s is %s; allowed is %s; write, for example, %s", ParamOverlays, kindOf(value), p.Allowed, p.Example)
		return
	}
	seen := map[string]string{}
	for i, entry := range entries {
		at := fmt.Sprintf("[%d]", i)
		fields, is := entry.(map[string]any)
		if !is {
			r.problem(ParamOverlays, at, "overlay %s is %s; allowed is an object; write, for example, %s", at, kindOf(entry),
				strings.Trim(p.Example, "[]"))
			continue
		}
		if _, whole := fields["spec"].(map[string]any); whole {
			r.problem(ParamOverlays, at, "overlay %s is a whole manifest; allowed are a name and the fields of a NodeOverlay's spec; write "+
				"{\"name\": …, \"requirements\": …, …}", at)
			continue
		}
		prune(fields, true)
		name := r.overlayName(at, fields["name"])
		if first := seen[name]; first != "" && name != "" {
			r.problem(ParamOverlays, Join(at, "name"), "overlays %s and %s have the same name %s; names are unique; rename one of them",
				first, at, name)
		} else {
			seen[name] = at
		}
		delete(fields, "name")
		if !changes(fields) {
			r.problem(ParamOverlays, at, "overlay %s changes nothing; it needs at least one of %s; write, for example, "+
				"\"priceAdjustment\":\"-10%%\"", at, either(changesOf))
		}
		r.Config.Overlays = append(r.Config.Overlays, Overlay{at, name, fields})
	}
}

// overlayName returns the name of an overlay, or a valid one in its place.
func (r *Result) overlayName(at string, value any) string {
	name, is := value.(string)
	wrong := validation.IsDNS1123Subdomain(name)
	switch {
	case value == nil:
		r.problem(ParamOverlays, Join(at, "name"), "overlay %s has no name; write, for example, \"name\":\"prefer-c7g\"", at)
	case !is || len(wrong) > 0:
		r.problem(ParamOverlays, Join(at, "name"), "%s is %s; allowed are a-z, 0-9, dashes and dots, at most 253 characters, and a letter or "+
			"digit at both ends; write, for example, \"prefer-c7g\"", Join(at, "name"), Shown(value))
	default:
		return name
	}
	return ""
}

// changes reports whether an overlay has a field that changes something.
func changes(fields map[string]any) bool {
	for _, name := range changesOf {
		value, there := fields[name]
		if object, is := value.(map[string]any); there && !(is && len(object) == 0) {
			return true
		}
	}
	return false
}

// overlayGate refuses to switch off the feature gate that overlays need.
func (r *Result) overlayGate() {
	gates, _ := parentOf(r.Config.ControllerValues, []string{"settings", "featureGates", ""})
	if on, there := gates["nodeOverlay"].(bool); there && !on && len(r.Config.Overlays) > 0 {
		r.problem(ParamController, "settings.featureGates.nodeOverlay", "settings.featureGates.nodeOverlay is false, but %s has overlays, which "+
			"need the feature gate; leave it out: Sawhorse sets it", ParamOverlays)
		delete(gates, "nodeOverlay")
	}
}
