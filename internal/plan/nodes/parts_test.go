package nodes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// self matches what a rule reads of the object that it is about: its field, or "" for anything else.
var self = regexp.MustCompile(`\b(?:self|oldSelf)\b(?:\.(\w+))?`)

// A part can be checked alone only if nothing above it depends on its value. A new version of Karpenter may add a rule
// that does.
func TestPartsAreIndependent(t *testing.T) {
	for _, a := range apis() {
		for kind, paths := range parts {
			for _, path := range paths {
				independent(t, a, kind, path)
			}
		}
	}
}

func independent(t *testing.T, a *api, kind string, path []string) {
	t.Helper()
	schema := a.schemas[kind]().schema
	for _, name := range append([]string{"spec"}, path...) {
		for _, rule := range schema.XValidations {
			for _, read := range self.FindAllStringSubmatch(rule.Rule, -1) {
				if read[1] == "" || read[1] == name {
					t.Errorf("%s %s: %v: the rule above %s reads it: %s", a.Version, kind, path, name, rule.Rule)
				}
			}
		}
		own := *schema
		own.Required, own.Properties, own.XValidations, own.Description = nil, nil, nil, ""
		if want := (apiextensions.JSONSchemaProps{Type: "object", Default: own.Default}); !reflect.DeepEqual(own, want) {
			t.Errorf("%s %s: %v: the schema above %s limits its value: %+v", a.Version, kind, path, name, own)
		}
		next, has := schema.Properties[name]
		if !has {
			t.Fatalf("%s %s: %v: no field %s", a.Version, kind, path, name)
		}
		schema = &next
	}
}

// The rules of labels and tags are evaluated once for the same keys. A rule that reads a value must be evaluated again.
func TestRulesOverKeys(t *testing.T) {
	for rule, want := range map[string]bool{
		`self.all(x, x != "kubernetes.io/hostname")`:      true,
		`self.all(k, !k.startsWith('kubernetes.io'))`:     true,
		`self.all(x, self[x] != "")`:                      false,
		`self.all(x, x in oldSelf)`:                       false,
		`self.all(k, v, v != "")`:                         false,
		`self.all( k ,v, k != "" && v != "")`:             false,
		`self.all(x, x != "a") && self["b"] != "c"`:       false,
		`!has(self.a)`:                                    false,
		`self == oldSelf`:                                 false,
		`self.exists(x, x == "a") ? self.b == "c" : true`: false,
	} {
		if got := overKeys(apiextensions.ValidationRule{Rule: rule}); got != want {
			t.Errorf("%s reads only keys: %v, want %v", rule, got, want)
		}
	}
	for _, a := range apis() {
		for kind, paths := range parts {
			for i, path := range paths {
				if got, want := a.crds[kind]().parts[i].readsKeys, slices.Contains([]string{"labels", "tags"}, path[len(path)-1]); got != want {
					t.Errorf("%s %s: %v: rules over keys: %v, want %v", a.Version, kind, path, got, want)
				}
			}
		}
	}
}

// tables returns the manifests of the tables of package validation, valid and invalid ones.
func tables(t testing.TB) []*draft {
	t.Helper()
	files, err := filepath.Glob("../../validation/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []*draft
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Config, Pools json.RawMessage
			Params        map[string]string
		}
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			texts := map[string]string{
				"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true",
				"karpenter_config": string(c.Config), "additional_karpenter_nodepools_config": string(c.Pools),
			}
			maps.Copy(texts, c.Params)
			all = append(all, drafts(texts)...)
		}
	}
	return all
}

func drafts(texts map[string]string) []*draft {
	parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
	return Compile(parsed.Config, plan.Facts{Offline: true}).drafts
}

// extremes are values of parts that the tables do not have, by the last name of the part's path.
func extremes() map[string][]any {
	labels := func(n int) any {
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprint("l", i)] = "x"
		}
		return all
	}
	of := func(fields ...any) map[string]any {
		all := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			all[fields[i].(string)] = fields[i+1]
		}
		return all
	}
	return map[string][]any{
		"labels": {labels(100), labels(101), of("a", nil), of("a", int64(1)), of("a", of()), of("karpenter.sh/nodepool", "x"),
			of("kubernetes.io/hostname", "x"),
			of("a.karpenter.sh/b", "x"), of("karpenter.sh/capacity-type", "spot"), of("a", strings.Repeat("b", 64)), of("a", "_"),
			of("", "x"), "x", []any{}, of()},
		"requirements": {[]any{}, []any{of()}, []any{nil}, []any{of("key", "x", "operator", "In", "values", []any{})}, of(), "x",
			[]any{of("key", "x", "operator", "Gt", "values", []any{"a"})}, []any{of("key", "x", "operator", "Gt", "values", []any{"1"})},
			[]any{of("key", "x", "operator", "In", "values", []any{"a"}, "minValues", int64(2))},
			[]any{of("key", "x", "operator", "Exists", "unknown", "x")},
			[]any{of("key", "kubernetes.io/hostname", "operator", "Exists")}, []any{of("key", "x", "operator", "Exists", "values", nil)}},
		"taints": {[]any{}, []any{of("key", "a")}, []any{of("key", "a", "effect", "X")},
			[]any{of("key", "a", "effect", "NoSchedule", "timeAdded", "x")}},
		"name": {"", "x", int64(1), of()},
		"disruption": {of(), of("budgets", []any{}), of("budgets", []any{of("schedule", "@daily")}), of("budgets", []any{of()}),
			of("consolidateAfter", "x"), "x"},
		"tags": {of(), of("", "x"), of("kubernetes.io/cluster/x", "x"), of("a", int64(1)), of("a", ""), of("a", nil), "x"},
		"blockDeviceMappings": {[]any{}, []any{of("rootVolume", true), of("rootVolume", true)}, []any{of("ebs", of())},
			[]any{of("ebs", of("volumeSize", "1x"))}, of()},
	}
}

// with returns a copy of a manifest with another value for a part, or without the part if the value is nil. It returns
// nil if the manifest has no place for it.
func (d *draft) with(value any, path []string) *draft {
	changed := &draft{kind: d.kind, name: d.name, api: d.api, origins: d.origins, object: runtime.DeepCopyJSON(d.object)}
	at := changed.spec()
	for _, name := range path[:len(path)-1] {
		if at = inner(at, name); at == nil {
			return nil
		}
	}
	if delete(at, path[len(path)-1]); value != nil {
		at[path[len(path)-1]] = runtime.DeepCopyJSONValue(value)
	}
	return changed
}

// unlike compares the check that relies on remembered results with the API server's check of the whole manifest, which
// remembers nothing.
func (d *draft) unlike() (difference string, accepted bool) {
	definition, p := d.api.crds[d.kind](), d.pieces()
	want := errorsOf(definition.check(d.object))
	unknown, refused, broken, known := d.validate(definition, p)
	got := errorsOf(unknown, refused, broken)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("%v:\n%q\nwant %q", d.object, got, want), false
	}
	if accepted = len(got) == 0; !accepted || len(d.quantities()) > 0 {
		return "", accepted
	}
	switch err := d.read(); {
	case known && err != nil:
		return fmt.Sprintf("%v: accepted by its parts, but %v", d.object, err), true
	case err == nil:
		p.remember()
	}
	return "", true
}

// errorsOf returns the results of a check in one order; the API server's code iterates over Go's maps.
func errorsOf(unknown []string, refused, broken field.ErrorList) []string {
	all := slices.Clone(unknown)
	for _, e := range slices.Concat(refused, broken) {
		all = append(all, e.Error())
	}
	slices.Sort(all)
	return all
}

// The check that relies on remembered results agrees with the API server's own code, for every part of any manifest
// put into any other manifest.
func TestPartsAreCheckedAsTheWhole(t *testing.T) {
	all := tables(t)
	for _, d := range all {
		if d.kind == "NodePool" { // the rules on spec are about these fields
			all = append(all, d.with(int64(1), []string{"replicas"}), d.with(map[string]any{"nodes": "3"}, []string{"limits"}).with(int64(1),
				[]string{"replicas"}))
			break
		}
	}
	values := map[string]map[hash]any{} // by kind and path
	for _, d := range all {
		for i, path := range parts[d.kind] {
			at := d.kind + " " + strings.Join(path, ".")
			if values[at] == nil {
				values[at] = map[hash]any{hashOf(nil): nil}
				for _, value := range extremes()[path[len(path)-1]] {
					values[at][hashOf(value)] = value
				}
			}
			value := d.pieces().values[i]
			values[at][hashOf(value)] = value
		}
	}
	rests := map[hash]bool{}
	taken, refused := 0, 0
	for _, base := range all {
		difference, accepted := base.unlike()
		if difference != "" {
			t.Fatal(difference)
		}
		if rest := base.pieces().rest; !accepted || rests[rest] {
			continue
		} else {
			rests[rest] = true
		}
		for _, path := range parts[base.kind] {
			for _, value := range values[base.kind+" "+strings.Join(path, ".")] {
				changed := base.with(value, path)
				if changed == nil {
					continue
				}
				switch difference, accepted := changed.unlike(); {
				case difference != "":
					t.Fatal(difference)
				case accepted:
					taken++
				default:
					refused++
				}
			}
		}
	}
	if len(rests) < 20 || taken < 500 || refused < 500 {
		t.Errorf("%d manifests, %d combinations accepted and %d refused", len(rests), taken, refused)
	}
}

// What is remembered of keys counts only for values that the rules have seen: not after a null, which is removed before the
// rules, and not for a list of the same texts.
func TestKeysAreRememberedOnceSeen(t *testing.T) {
	for _, base := range drafts(map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}) {
		path, key := parts["NodePool"][partLabels], "kubernetes.io/hostname"
		if base.kind == "EC2NodeClass" {
			path, key = []string{"tags"}, "karpenter.sh/nodepool"
		}
		for i, value := range []any{
			map[string]any{"known": "x"}, map[string]any{key: nil}, map[string]any{key: "x"}, map[string]any{"remembered": "x"}, []any{"remembered"},
		} {
			difference, accepted := base.with(value, path).unlike()
			if want := i != 2 && i != 4; difference != "" || accepted != want {
				t.Errorf("%s %v: accepted: %v, want %v\n%s", base.kind, value, accepted, want, difference)
			}
		}
	}
}

// FuzzParts does what TestPartsAreCheckedAsTheWhole does, for any karpenter_config.
func FuzzParts(f *testing.F) {
	for _, text := range []string{
		`{"nodePool":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}},` +
			`"disruption":{"budgets":[{"nodes":"1"}]}}}`,
		`{"nodePool":{"template":{"spec":{"requirements":[{"key":"x","operator":"Gt","values":["1"]}]}},"weight":3},` +
			`"ec2NodeClass":{"tags":{"a":"b"}}}`,
		`{"ec2NodeClass":{"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"9Gi"}}],"kubelet":{"maxPods":9}}}`,
	} {
		f.Add(text, "a=b", int64(7))
	}
	f.Fuzz(func(t *testing.T, config, labels string, weight int64) {
		for _, d := range drafts(map[string]string{"karpenter_config": config, "karpenter_node_labels": labels, "tags": labels}) {
			for _, checked := range []*draft{d, d.with(weight, []string{"weight"}), d} {
				if difference, _ := checked.unlike(); difference != "" {
					t.Error(difference)
				}
			}
		}
	})
}
