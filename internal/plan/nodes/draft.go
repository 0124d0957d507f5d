package nodes

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// origin is the parameter that a part of a manifest comes from, and the path in the parameter's JSON.
type origin struct {
	parameter, path string
	// config means that the path is in a config, whose structure is that of the manifests. builtin means that the part is a
	// default of Sawhorse, which the parameter could change.
	config, builtin bool
}

// draft is a manifest that is being made. It records where each part of its spec comes from, so that a refusal can be
// reported under the right parameter.
type draft struct {
	kind, name string
	// api is the API of the Karpenter that the manifest is for.
	api     *api
	object  plan.Object
	origins map[string]origin
	// fallback is the origin of parts that have no other origin.
	fallback origin
	// layers are the pool's configs, the later over the earlier.
	layers []layer
	// replaced are the requirements that a config replaces.
	replaced []requirement
	// class is the EC2NodeClass of a NodePool.
	class *draft
	// demanded is the result of demands, which several checks of a finished NodePool use.
	demanded []requirement
	// idle drafts are checked but not applied. Those of karpenter_defaults_config alone are idle, too.
	idle, alone bool
	// tolerated is a taint that the pods meant for the pool tolerate. guessed means that the architecture is a default.
	tolerated *params.Taint
	guessed   bool
	// expressions means that Karpenter evaluates expressions in the field kubelet.
	expressions bool
	// initial are the findings from before the checks, while the manifest was made.
	initial findings
}

// place returns the key in origins of a path below spec.
func place(path []string) string {
	text := append(make([]byte, 0, 64), "spec"...)
	for _, part := range path {
		text = append(append(text, 0), part...)
	}
	return string(text)
}

// newDraft returns a manifest without a spec. 28 entries are what a map of 32 slots holds, and enough for most manifests.
func (p pool) newDraft(apiVersion, kind, rack string) *draft {
	name, fallback := p.Name, p.from("name")
	return &draft{
		kind: kind, name: name, api: p.api, fallback: fallback, layers: []layer{p.defaults, p.poolConfig}, origins: make(map[string]origin, 28),
		object: plan.Object{
			"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"name": name, "labels": map[string]any{ownership.TagRack: rack}},
			"spec":     map[string]any{},
		},
	}
}

func (d *draft) spec() map[string]any { return d.object["spec"].(map[string]any) }

// set sets a value at a path below spec.
func (d *draft) set(from origin, value any, path ...string) {
	at, last := d.parent(path)
	at[last] = value
	d.origins[place(path)] = from
}

// add appends to a list at a path below spec.
func (d *draft) add(from origin, value any, path ...string) {
	at, last := d.parent(path)
	list, _ := at[last].([]any)
	at[last] = append(list, value)
	d.origins[place(append(slices.Clone(path), strconv.Itoa(len(list))))] = from
}

// parent returns the object that has the last part of a path below spec. It makes the objects that are missing.
func (d *draft) parent(path []string) (at map[string]any, last string) {
	at = d.spec()
	for _, part := range path[:len(path)-1] {
		if _, is := at[part].(map[string]any); !is {
			at[part] = map[string]any{}
		}
		at = inner(at, part)
	}
	return at, path[len(path)-1]
}

// origin returns where a part of the manifest comes from: the origin of the longest known prefix of its path, extended
// by the rest of the path if it is in a config. List elements are numbers in the path. If there is none, it
// returns the fallback and known is false.
func (d *draft) origin(path []string) (from origin, known bool) {
	for n := len(path); n > 0; n-- {
		from, ok := d.origins[strings.Join(path[:n], "\x00")]
		if !ok {
			continue
		}
		if from.config || d.kind == kindOverlay {
			from.path = extend(from.path, path[n:])
		}
		return from, true
	}
	return d.fallback, false
}

// blame returns the origin of a part below spec, or the fallback.
func (d *draft) blame(path ...string) origin {
	from, _ := d.origin(append([]string{"spec"}, path...))
	return from
}

// extend appends parts to a JSON path.
func extend(at string, path []string) string {
	for _, part := range path {
		if _, err := strconv.Atoi(part); err == nil {
			at += "[" + part + "]"
		} else {
			at = params.Join(at, part)
		}
	}
	return at
}

// route splits a field path of the API server, for example spec.template.spec.taints[0].key or
// spec.limits.nvidia.com/gpu. Keys may contain dots, so the manifest is used to find the end of each key.
func (d *draft) route(text string) []string {
	var path []string
	for at := any(d.object); text != ""; {
		var part string
		switch inside := at.(type) {
		case map[string]any:
			part, text = next(text, inside)
			at = inside[part]
		case []any:
			part, text = next(text, nil)
			at = nil
			if i, err := strconv.Atoi(part); err == nil && i < len(inside) {
				at = inside[i]
			}
		default:
			part, text = next(text, nil)
		}
		path = append(path, part)
	}
	return path
}

// next splits off the first part of a path: the longest prefix that is a key in fields, else the text before the next
// dot or bracket.
func next(text string, fields map[string]any) (part, rest string) {
	if text[0] == '[' {
		if part, rest, closed := strings.Cut(text[1:], "]"); closed {
			return strings.Trim(part, `"`), rest
		}
		return text, ""
	}
	text = strings.TrimPrefix(text, ".")
	end := -1
	for i := range len(text) + 1 {
		if i < len(text) && text[i] != '.' && text[i] != '[' {
			continue
		}
		if _, is := fields[text[:i]]; is || end < 0 {
			end = i
		}
	}
	return text[:end], text[end:]
}

// override sets a value at a path below spec and replaces everything there.
func (d *draft) override(by origin, value any, path ...string) {
	if at, last := d.parent(path); at[last] != nil { // else there is no origin, which takes long to see in a large manifest
		d.forget(path...)
	}
	d.set(by, value, path...)
}

// forget deletes the origins of a path below spec and of everything there.
func (d *draft) forget(path ...string) {
	whole := place(path)
	maps.DeleteFunc(d.origins, func(at string, _ origin) bool { return at == whole || strings.HasPrefix(at, whole+"\x00") })
}

// remove deletes a field of spec.
func (d *draft) remove(field string) {
	d.forget(field)
	delete(d.spec(), field)
}

// element is an element of a list, and where it comes from.
type element struct {
	value any
	from  origin
}

// elements returns the elements of a list at a path below spec.
func (d *draft) elements(path ...string) (all []element) {
	in, last := d.parent(path)
	entries, _ := in[last].([]any)
	for i, value := range entries {
		all = append(all, element{value, d.blame(append(slices.Clone(path), strconv.Itoa(i))...)})
	}
	return all
}

// list sets a list at a path below spec. The list as a whole still comes from where it came from.
func (d *draft) list(all []element, path ...string) {
	whole, known := d.origins[place(path)]
	d.forget(path...)
	in, last := d.parent(path)
	in[last] = []any{}
	for _, e := range all {
		d.add(e.from, e.value, path...)
	}
	if known {
		d.origins[place(path)] = whole
	}
}
