package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// followed is the alias @latest of an EC2NodeClass, with the images that Karpenter has found for it.
type followed struct {
	alias, image string
	ids          []string
}

// follows returns the alias @latest of an EC2NodeClass, if it has one.
func follows(class *unstructured.Unstructured) (f followed) {
	terms, _, _ := unstructured.NestedSlice(class.Object, "spec", "amiSelectorTerms")
	for _, entry := range terms {
		term, _ := entry.(map[string]any)
		if alias, _ := term["alias"].(string); strings.HasSuffix(alias, "@latest") {
			f.alias = alias
		}
	}
	images, _, _ := unstructured.NestedSlice(class.Object, "status", "amis")
	for _, entry := range images {
		image, _ := entry.(map[string]any)
		id, _ := image["id"].(string)
		name, _ := image["name"].(string)
		f.ids, f.image = append(f.ids, id), newest(f.image, cmp.Or(plan.ReleaseIn(name), name))
	}
	return f
}

// newest returns the newer one of two releases. Names of images that have none are in any order, and always the same.
func newest(a, b string) string {
	if a == "" || plan.NewerRelease(b, a) || !plan.NewerRelease(a, b) && b > a {
		return b
	}
	return a
}

// older reports whether a node runs an image that the alias does not name any more.
func (f followed) older(claim *unstructured.Unstructured) bool {
	id, _, _ := unstructured.NestedString(claim.Object, "status", "imageID")
	return id != "" && len(f.ids) > 0 && !slices.Contains(f.ids, id)
}

// latest returns which images the aliases @latest of the pools are, since when, and how many nodes run something older.
func (v *view) latest(before []store.LatestImage) (all []store.LatestImage) {
	by := map[string]store.LatestImage{}
	for _, p := range v.pools {
		f := p.latest
		if f.alias == "" || f.image == "" || p.removed {
			continue
		}
		image := by[f.alias]
		by[f.alias] = store.LatestImage{Alias: f.alias, Image: newest(image.Image, f.image), Older: image.Older + p.older}
	}
	for _, alias := range slices.Sorted(maps.Keys(by)) {
		image := by[alias]
		image.Since = v.now.UTC().Format(time.RFC3339)
		for _, was := range before {
			if was.Alias == alias && was.Image == image.Image {
				image.Since = was.Since
			}
		}
		all = append(all, image)
	}
	return all
}
