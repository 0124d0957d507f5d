package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	overlays "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// kindOverlay is the kind of objects that say what Karpenter assumes of instance types.
const kindOverlay = "NodeOverlay"

// overlays returns the manifests of the NodeOverlays.
func (a *api) overlays(config params.Config) (all []*draft) {
	for _, o := range config.Overlays {
		from := origin{parameter: params.ParamOverlays, path: o.At}
		d := &draft{
			kind: kindOverlay, name: o.Name, api: a, fallback: from, origins: map[string]origin{place(nil): from},
			object: plan.Object{
				"apiVersion": "karpenter.sh/v1alpha1", "kind": kindOverlay, "spec": map[string]any{},
				"metadata": map[string]any{"name": o.Name, "labels": map[string]any{ownership.TagRack: config.Rack}},
			},
		}
		maps.Copy(d.spec(), o.Spec)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *draft) int { return strings.Compare(a.name, b.name) })
	return all
}

// extended refuses what is no amount of an extended resource, in the capacity of a NodeOverlay.
func (d *draft) extended() (found findings) {
	if d.kind != kindOverlay {
		return nil
	}
	const example = "write, for example, \"example.com/fuse\":\"1\""
	capacity := inner(d.spec(), "capacity")
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		from, text := d.blame("capacity", name), fmt.Sprint(capacity[name])
		domain, _, qualified := strings.Cut(name, "/")
		switch wrong := validation.IsQualifiedName(name); {
		case len(wrong) > 0:
			found.refuse(from, "is no resource of Kubernetes: %s; %s", wrong[0], example)
		case !qualified && !strings.HasPrefix(name, "hugepages-"), domain == "kubernetes.io", strings.HasSuffix(domain, ".kubernetes.io"):
			found.refuse(from, "is no extended resource; allowed are names with a domain other than kubernetes.io; %s", example)
		case readableQuantity(text) && !whole(resource.MustParse(text)):
			found.refuse(from, "is %s, but Kubernetes counts extended resources in whole numbers; write, for example, \"1\"",
				params.Shown(capacity[name]))
		}
	}
	return found
}

func whole(amount resource.Quantity) bool {
	return amount.Sign() >= 0 && amount.Cmp(*resource.NewQuantity(amount.Value(), resource.DecimalSI)) == 0
}

// overlay applies Karpenter's own checks to each requirement and each resource of a NodeOverlay.
func (d *draft) overlay() (found findings) {
	if d.kind != kindOverlay {
		return nil
	}
	requirements, _ := d.spec()["requirements"].([]any)
	for i, requirement := range requirements {
		d.checkOverlay(&found, map[string]any{"requirements": []any{requirement}}, "requirements", strconv.Itoa(i))
	}
	capacity := inner(d.spec(), "capacity")
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		d.checkOverlay(&found, map[string]any{"requirements": []any{}, "capacity": map[string]any{name: "1"}}, "capacity", name)
	}
	return found
}

// checkOverlay runs Karpenter's check of a NodeOverlay with one part alone. What only the API of another version has is not known
// to it: that version's CRD decides.
func (d *draft) checkOverlay(found *findings, part map[string]any, path ...string) {
	object := map[string]any{"spec": part}
	unknown, refused, broken := builtin().crds[kindOverlay]().check(object)
	if d.api != builtin() && len(unknown)+len(refused)+len(broken) > 0 {
		return
	}
	var overlay overlays.NodeOverlay
	if utiljson.Unmarshal(canonical.JSON(object), &overlay) != nil {
		return
	}
	if err := overlay.RuntimeValidate(context.Background()); err != nil {
		found.disliked(d.blame(path...), err)
	}
}

// conflicts returns a warning for each NodeOverlay that has the weight of an earlier one, changes what that one changes, and may
// select the same instance types: Karpenter then uses one of them only.
func (c Compiled) conflicts() (found findings) {
	read := make([]overlays.NodeOverlay, len(c.overlays))
	for i, d := range c.overlays {
		if utiljson.Unmarshal(canonical.JSON(d.object), &read[i]) != nil {
			return nil
		}
		for j := range i {
			if rivals(read[i].Spec, read[j].Spec) {
				found.warn(d.blame("weight"), "NodeOverlays %s and %s have the same weight, change the same, and may select the same instance types: "+
					"Karpenter then uses only %s; write different weights", c.overlays[j].name, d.name, max(c.overlays[j].name, d.name))
				break
			}
		}
	}
	return found
}

func rivals(a, b overlays.NodeOverlaySpec) bool {
	weight := func(s overlays.NodeOverlaySpec) (weight int32) {
		if s.Weight != nil {
			weight = *s.Weight
		}
		return weight
	}
	prices := func(s overlays.NodeOverlaySpec) bool { return s.Price != nil || s.PriceAdjustment != nil }
	both := prices(a) && prices(b)
	for name := range a.Capacity {
		_, also := b.Capacity[name]
		both = both || also
	}
	return both && weight(a) == weight(b) && selection(a).Intersects(selection(b)) == nil
}

// selection returns the requirements of a NodeOverlay as Karpenter reads them.
func selection(s overlays.NodeOverlaySpec) scheduling.Requirements {
	all := scheduling.NewRequirements()
	for _, r := range s.Requirements {
		all.Add(scheduling.NewNodeSelectorRequirements(r.AsNodeSelectorRequirement()).Values()...)
	}
	return all
}
