package nodes

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// api is the API of one version of Karpenter. Each kind's CRD is read and compiled on first use: to compile its rules
// takes longer than everything else that validate does, and most racks have one version.
type api struct {
	catalogue.Release
	// schemas maps each kind to its CRD without the rules, and crds to the whole.
	schemas, crds map[string]func() crd
	// checksKubelet means that the controller checks the field kubelet, and not the API server.
	checksKubelet bool
	// named are the texts in quotes in the CRD of NodePools, and key is the part of the CRD for the key of a requirement.
	named func() map[string]bool
	key   func() crd
}

// apis has the APIs of all versions of the catalogue, the oldest first.
var apis = sync.OnceValue(func() (all []*api) {
	for _, release := range catalogue.All() {
		made := &api{Release: release, schemas: map[string]func() crd{}, crds: map[string]func() crd{}, checksKubelet: release.Kubelet() != nil}
		made.named, made.key = sync.OnceValue(made.readNamed), sync.OnceValue(made.compileKey)
		for kind := range crdOf {
			made.schemas[kind] = sync.OnceValue(func() crd { return readSchema(release, kind) })
			made.crds[kind] = sync.OnceValue(func() crd { return made.schemas[kind]().compile(kind) })
		}
		all = append(all, made)
	}
	return all
})

// apiOf returns the API of a version; of the default if the catalogue does not have it.
func apiOf(version string) *api {
	for _, a := range apis() {
		if a.Version == version {
			return a
		}
	}
	return builtin()
}

// builtin returns the API of the version whose Go types and checks this program has. What only another version has is
// unknown to them, so that version's CRD alone decides about it.
var builtin = sync.OnceValue(func() *api {
	at := slices.IndexFunc(apis(), func(a *api) bool { return a.Version == catalogue.Default().Version })
	return apis()[at]
})

// readable returns a manifest without the fields that the version leaves open and the Go types do not, such as maxPods
// from 1.15 on, which may be an expression.
func (d *draft) readable() plan.Object {
	if d.api == builtin() {
		return d.object
	}
	return closed(d.object, d.api.schemas[d.kind]().structural, builtin().schemas[d.kind]().structural)
}

func closed(object map[string]any, is, known *schema.Structural) map[string]any {
	rest := make(map[string]any, len(object))
	for name, value := range object {
		field, described := is.Properties[name]
		was, knows := known.Properties[name]
		switch within, nested := value.(map[string]any); {
		case described && knows && (field.XPreserveUnknownFields || field.XIntOrString) &&
			!was.XPreserveUnknownFields:
		case described && knows && nested:
			rest[name] = closed(within, &field, &was)
		default:
			rest[name] = value
		}
	}
	return rest
}

// newer reports whether the version of the built-in checks does not know what a part of a NodePool's template has. The CRD
// of the version decides about it.
func (d *draft) newer(part map[string]any) bool {
	if d.api == builtin() {
		return false
	}
	spec := map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
		"requirements": []any{},
	}
	maps.Copy(spec, inner(part, "spec"))
	template := maps.Clone(part)
	template["spec"] = spec
	unknown, refused, broken := builtin().crds[d.kind]().check(map[string]any{"spec": map[string]any{"template": template}})
	return len(unknown)+len(refused)+len(broken) > 0
}

// having returns the oldest version whose schema has a field, and in which it may have a value unless that is nil. It
// returns "" if there is none.
func (d *draft) having(path []string, value any) string {
	for _, other := range apis() {
		at := other.schemas[d.kind]().at(path)
		if at == nil || other == d.api {
			continue
		}
		if value == nil || at.ValueValidation != nil && slices.ContainsFunc(at.ValueValidation.Enum, func(e schema.JSON) bool {
			return bytes.Equal(canonical.JSON(e.Object), canonical.JSON(value))
		}) {
			return other.Version
		}
	}
	return ""
}

// knowing returns the oldest other version whose CRD of NodePools names the key of a requirement and accepts it, or "". A CRD names
// what it forbids, too.
func (d *draft) knowing(key string) string {
	for _, other := range apis() {
		if other != d.api && other.named()[key] && other.takesKey(key) {
			return other.Version
		}
	}
	return ""
}

func (a *api) readNamed() map[string]bool {
	definitions, err := a.CRDs()
	if err != nil {
		panic("nodes: " + err.Error()) // embedded files
	}
	all := map[string]bool{}
	for _, match := range quoted.FindAllStringSubmatch(string(definitions[crdOf["NodePool"]]), -1) {
		all[match[1]] = true
	}
	return all
}

func (a *api) compileKey() crd {
	key := a.schemas["NodePool"]().at([]string{"spec", "template", "spec", "requirements", "0", "key"})
	return crd{structural: key, rules: cel.NewValidator(key, false, celconfig.PerCallLimit)}
}

// takesKey reports whether the rules of the CRD accept the key of a requirement.
func (a *api) takesKey(key string) bool {
	as := a.key()
	broken, _ := as.rules.Validate(context.Background(), field.NewPath("key"), as.structural, key, nil, celconfig.RuntimeCELCostBudget)
	return len(broken) == 0
}

// newer returns the values of the fields that a version's hash covers and that of the Go types does not. If it differs,
// the hash differs.
func newer(hash, known catalogue.Hash, object plan.Object) string {
	var all []any
	for _, path := range hash.Covers {
		if !slices.Contains(known.Covers, path) {
			all = append(all, valuesAt(object, strings.Split(path, ".")))
		}
	}
	if all == nil {
		return ""
	}
	return string(canonical.JSON(all))
}

// valuesAt returns what a value has at a path, in which [] stands for each element of a list.
func valuesAt(value any, path []string) any {
	if len(path) == 0 || value == nil {
		return value
	}
	name, each := strings.CutSuffix(path[0], "[]")
	fields, _ := value.(map[string]any)
	if !each {
		return valuesAt(fields[name], path[1:])
	}
	list, _ := fields[name].([]any)
	all := make([]any, len(list))
	for i, element := range list {
		all[i] = valuesAt(element, path[1:])
	}
	return all
}
