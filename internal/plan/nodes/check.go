package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/multierr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Check tells what the API server or Karpenter would refuse, of the parameters that say it.
func (c Compiled) Check() []params.Problem {
	var problems []params.Problem
	for _, d := range c.drafts {
		if d.idle && d.name == names.BuildPool && c.config.BuildSaysNothing() {
			continue // nothing in it that is not in the workload pool too
		}
		key := d.key()
		if good.has(key) {
			continue
		}
		found := d.check()
		if len(found) == 0 {
			good.add(key)
		}
		problems = append(problems, found...)
	}
	return problems
}

// check goes from the outside in: fields that do not exist, then the CRD's schema and rules, then what Karpenter checks when a
// NodePool is used.
func (d *draft) check() []params.Problem {
	definition := crds[d.kind]()
	unknown, refused := definition.check(d.object)
	var problems []params.Problem
	for _, path := range unknown {
		problems = append(problems, d.unknown(definition, splitPath(path)))
	}
	// One place is told once, by the first who knows: the definition, then Karpenter, then a rule that stumbled over a field
	// that is not there and only knows the section.
	add := func(p params.Problem) {
		if !slices.ContainsFunc(problems, func(known params.Problem) bool { return overlap(known, p) }) {
			problems = append(problems, p)
		}
	}
	var stumbled []params.Problem
	for _, e := range refused {
		if rule, found := strings.CutPrefix(e.Detail, "no such key: "); found {
			_, e.Detail, _ = strings.Cut(rule, " evaluating rule: ")
			e.BadValue = nil
			stumbled = append(stumbled, d.refused(e))
			continue
		}
		problems = append(problems, d.refused(e))
	}
	for _, p := range append(d.typed(), stumbled...) {
		add(p)
	}
	return problems
}

// overlap tells whether two problems are about the same place, or one lies in the other.
func overlap(a, b params.Problem) bool {
	return a.Parameter == b.Parameter && (strings.HasPrefix(a.Path, b.Path) || strings.HasPrefix(b.Path, a.Path))
}

// unknown is the problem of a field that Karpenter's API does not have.
func (d *draft) unknown(definition crd, path []string) params.Problem {
	from := d.blame(path)
	name := path[len(path)-1]
	known := definition.fields(path[:len(path)-1])
	instead := "allowed are " + strings.Join(known, ", ")
	if near := params.Nearest(name, known); near != "" {
		instead = "did you mean " + near + "?"
	}
	return from.problem("is no field of Karpenter's %s; %s", d.kind, instead)
}

func (o origin) problem(format string, args ...any) params.Problem {
	name := o.path
	if name == "" {
		name = o.parameter
	}
	return params.NewProblem(o.parameter, o.path, "%s %s", name, fmt.Sprintf(format, args...))
}

// refused is the problem of what the CRD's schema or one of its rules refuses.
func (d *draft) refused(e *field.Error) params.Problem {
	path := splitPath(e.Field)
	from, known := d.origin(path)
	if !known {
		from = d.below(path, e.Detail)
	}
	reason := strings.TrimPrefix(strings.TrimSuffix(e.Detail, "."), e.Field+" in body ")
	if e.Type == field.ErrorTypeRequired && reason == "" {
		reason = "is required"
	}
	return from.problem("%sis refused by Kubernetes for Karpenter's %s: %s; %s", value(e), d.kind, reason, instead(path, e))
}

// value is the refused value for a sentence, where the API server tells it.
func value(e *field.Error) string {
	switch e.BadValue.(type) {
	case string, int64, float64, bool:
	default:
		return ""
	}
	if encoded, err := json.Marshal(e.BadValue); err == nil && len(encoded) <= 80 && !strings.Contains(e.Detail, "must be of type") {
		return "is " + string(encoded) + ", which "
	}
	return ""
}

// examples are good values of fields that people get wrong, by the field's name.
var examples = map[string]string{
	"expireAfter": "720h or Never", "terminationGracePeriod": "48h", "consolidateAfter": "30s or Never", "nodes": `"10%" or "3"`,
	"schedule": `"0 9 * * mon-fri"`, "duration": "8h", "cpu": `"200"`, "memory": `"800Gi"`, "volumeSize": "100Gi", "weight": "an integer from 1 to 100",
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// instead is what to write in place of a refused value.
func instead(path []string, e *field.Error) string {
	if e.Type == field.ErrorTypeNotSupported {
		var supported []string
		for _, match := range quoted.FindAllStringSubmatch(e.Detail, -1) {
			supported = append(supported, match[1])
		}
		if near := params.Nearest(fmt.Sprint(e.BadValue), supported); near != "" {
			return "write " + near
		}
		return "write one of these"
	}
	if len(path) > 0 && examples[path[len(path)-1]] != "" {
		return "write, for example, " + examples[path[len(path)-1]]
	}
	return "change it or leave it out"
}

// below looks for what a rule on a whole section is about: the one parameter that has a part of it, the part that the
// message names first.
func (d *draft) below(path []string, message string) origin {
	under := strings.Join(path, "\x00")
	var found []origin
	for _, at := range slices.Sorted(maps.Keys(d.origins)) {
		from := d.origins[at]
		if !strings.HasPrefix(at, under) || from == d.fallback {
			continue
		}
		if name := at[strings.LastIndexByte(at, 0)+1:]; strings.Contains(message, name) {
			return from
		}
		found = append(found, from)
	}
	if len(found) == 1 {
		return found[0]
	}
	for _, from := range found {
		if from.parameter == overrideParameter {
			return origin{parameter: overrideParameter}
		}
	}
	if len(found) > 0 {
		return origin{parameter: found[0].parameter}
	}
	return d.fallback
}

// typed asks Karpenter about each label, taint and requirement by itself, so that the one that it refuses is known; then
// about all of them together. What does not even fit its types has been refused before.
func (d *draft) typed() []params.Problem {
	if d.kind != "NodePool" {
		return nil // the class has no check beyond its definition
	}
	var problems []params.Problem
	template, _ := d.object["spec"].(map[string]any)["template"].(map[string]any)
	ask := func(part map[string]any, path ...string) {
		if err := runtimeValidate(part); err != nil {
			from, _ := d.origin(append([]string{"spec", "template"}, path...))
			problems = append(problems, disliked(from, err))
		}
	}
	labels := inner(inner(template, "metadata"), "labels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		ask(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: labels[key]}}}, "metadata", "labels", key)
	}
	for _, list := range []string{"taints", "startupTaints", "requirements"} {
		entries, _ := inner(template, "spec")[list].([]any)
		for i, entry := range entries {
			ask(map[string]any{"spec": map[string]any{list: []any{entry}}}, "spec", list, strconv.Itoa(i))
		}
	}
	return slices.Concat(problems, d.twice(inner(template, "spec")), d.durations())
}

// durations asks whether durations fit Go's: the definition knows their letters only, and Karpenter cannot read a pool in which one
// does not. A node's expiry of zero would delete every node at once.
func (d *draft) durations() []params.Problem {
	spec := inner(d.object, "spec")
	node, disruption := inner(inner(spec, "template"), "spec"), inner(spec, "disruption")
	type place struct {
		in   map[string]any
		path []string
	}
	places := []place{
		{node, []string{"spec", "template", "spec", "expireAfter"}},
		{node, []string{"spec", "template", "spec", "terminationGracePeriod"}},
		{disruption, []string{"spec", "disruption", "consolidateAfter"}},
	}
	budgets, _ := disruption["budgets"].([]any)
	for i, entry := range budgets {
		budget, _ := entry.(map[string]any)
		places = append(places, place{budget, []string{"spec", "disruption", "budgets", strconv.Itoa(i), "duration"}})
	}
	var problems []params.Problem
	for _, at := range places {
		name := at.path[len(at.path)-1]
		text, _ := at.in[name].(string)
		if text == "" || text == "Never" {
			continue
		}
		switch length, err := time.ParseDuration(text); {
		case err != nil:
			problems = append(problems, d.blame(at.path).problem("is %q, which is no duration that Karpenter can read; write, for example, %s", text, examples[name]))
		case name == "expireAfter" && length == 0:
			problems = append(problems, d.blame(at.path).problem("is %q, which would delete every node at once; write, for example, %s", text, examples[name]))
		}
	}
	return problems
}

// twice asks about all taints together: no two may have one key and effect.
func (d *draft) twice(spec map[string]any) []params.Problem {
	taints, _ := spec["taints"].([]any)
	startup, _ := spec["startupTaints"].([]any)
	seen := map[string]bool{}
	var problems []params.Problem
	for i, entry := range slices.Concat(taints, startup) {
		taint, _ := entry.(map[string]any)
		what := fmt.Sprint(taint["key"], ":", taint["effect"])
		if seen[what] {
			path := []string{"spec", "template", "spec", "taints", strconv.Itoa(i)}
			if i >= len(taints) {
				path = []string{"spec", "template", "spec", "startupTaints", strconv.Itoa(i - len(taints))}
			}
			problems = append(problems, d.blame(path).problem("is refused by Karpenter: the taint %s is there twice; keep one of them", what))
		}
		seen[what] = true
	}
	return problems
}

// runtimeValidate is Karpenter's own check of a NodePool's template, done before it uses the pool.
func runtimeValidate(template map[string]any) error {
	encoded, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		panic("nodes: template: " + err.Error()) // plain data always marshals
	}
	var pool karpenter.NodePool
	if json.Unmarshal(encoded, &pool) != nil {
		return nil
	}
	return pool.RuntimeValidate(context.Background())
}

func disliked(from origin, err error) params.Problem {
	var reasons []string
	for _, e := range multierr.Errors(err) {
		reasons = append(reasons, e.Error())
	}
	return from.problem("is refused by Karpenter: %s; change it or leave it out", strings.Join(reasons, "; "))
}
