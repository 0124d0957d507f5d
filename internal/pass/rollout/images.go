package rollout

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// release matches the release in the name of one of Amazon's images: amazon-eks-node-al2023-x86_64-standard-1.35-v20260828,
// bottlerocket-aws-k8s-1.35-x86_64-v1.44.0-0dfb3e3c.
var release = regexp.MustCompile(`-(v\d{8}|v\d+\.\d+\.\d+)(?:-[0-9a-f]+)?$`)

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
		if m := release.FindStringSubmatch(name); m != nil {
			name = m[1]
		}
		f.ids, f.image = append(f.ids, id), max(f.image, name)
	}
	return f
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
		by[f.alias] = store.LatestImage{Alias: f.alias, Image: max(image.Image, f.image), Older: image.Older + p.older}
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
