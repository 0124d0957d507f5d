package nodes

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// topOf maps each kind to its key in a config.
var topOf = map[string]string{"NodePool": "nodePool", "EC2NodeClass": "ec2NodeClass"}

// elsewhere returns the only place in a config where a field of this name belongs, or "" if there is none, or several.
func (d *draft) elsewhere(name string) string {
	var all []string
	for kind, top := range topOf {
		spec, known := d.api.schemas[kind]().structural.Properties["spec"]
		if known {
			all = append(all, placesOf(name, &spec, top)...)
		}
	}
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// placeOf returns the place of a path of a manifest in a config, as placesOf has it.
func (d *draft) placeOf(path []string) string {
	place := topOf[d.kind]
	for _, part := range path[1:] {
		if _, err := strconv.Atoi(part); err == nil {
			place += "[]"
		} else {
			place += "." + part
		}
	}
	return place
}

// placesOf returns the paths below a part of a schema that end in a field of this name.
func placesOf(name string, at *schema.Structural, path string) (all []string) {
	for field, inner := range at.Properties {
		if field == name {
			all = append(all, path+"."+field)
		}
		all = append(all, placesOf(name, &inner, path+"."+field)...)
	}
	if at.Items != nil {
		all = append(all, placesOf(name, at.Items, path+"[]")...)
	}
	return all
}

// wellKnown returns the sorted keys by which Karpenter knows instance types, and which a requirement may have. Callers must not
// change them.
var wellKnown = sync.OnceValue(func() []string {
	return slices.DeleteFunc(sets.List(karpenter.WellKnownLabels), func(key string) bool { return !builtin().takesKey(key) })
})
