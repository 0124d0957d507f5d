package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	"go.uber.org/multierr"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	overlays "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// silent is a context in which Karpenter's checks log nothing: what they refuse is returned. Without a logger, their first line would
// be a stack on stderr.
var silent = logr.NewContext(context.Background(), logr.Discard())

// typed calls Karpenter's own checks for each label, taint and requirement separately, so that a refusal can be
// attributed to one of them. It then checks for duplicate taints, durations and budgets. What does not fit Karpenter's
// types has been refused before. agreed means that Karpenter's check accepts the template as a whole.
func (d *draft) typed(agreed bool) (found findings) {
	if d.kind != "NodePool" {
		return nil
	}
	template := inner(d.spec(), "template")
	check := func(part map[string]any, path ...string) {
		if err := runtimeValidate(part); err != nil && !d.newer(part) {
			found.disliked(d.blame(append([]string{"template"}, path...)...), err)
		}
	}
	if !agreed {
		labels := inner(template, "metadata", "labels")
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			check(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: labels[key]}}}, "metadata", "labels", key)
		}
		for _, list := range []string{"taints", "startupTaints", "requirements"} {
			entries, _ := inner(template, "spec")[list].([]any)
			for i, entry := range entries {
				check(map[string]any{"spec": map[string]any{list: []any{entry}}}, "spec", list, strconv.Itoa(i))
			}
		}
	}
	// The API server checks these annotations only when a NodeClaim is created.
	annotations := inner(template, "metadata", "annotations")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if wrong := validation.IsQualifiedName(strings.ToLower(key)); len(wrong) > 0 {
			from := d.blame("template", "metadata", "annotations", key)
			found.refuse(from, "is refused by Kubernetes for Karpenter's NodeClaim: %s; change it or leave it out", wrong[0])
		}
	}
	return slices.Concat(found, d.twice(), d.durations(), d.budgets())
}

// errFar is the error of decode for a text that would take minutes to decode as a quantity.
var errFar = errors.New("has a large exponent")

// decode decodes a manifest of the draft's kind, or a part of one, into Karpenter's Go type.
func (d *draft) decode(object map[string]any) (pool karpenter.NodePool, err error) {
	text := canonical.JSON(object)
	if farExponent.Match(text) {
		return pool, errFar
	}
	switch d.kind {
	case "EC2NodeClass":
		err = utiljson.Unmarshal(text, &ec2.EC2NodeClass{})
	case kindOverlay:
		err = utiljson.Unmarshal(text, &overlays.NodeOverlay{})
	default:
		err = utiljson.Unmarshal(text, &pool)
	}
	return pool, err
}

// read decodes the manifest into Karpenter's Go type. For a NodePool, it then runs Karpenter's own check of the template.
func (d *draft) read() error {
	pool, err := d.decode(d.readable())
	if err != nil || d.kind != "NodePool" {
		return err
	}
	return pool.RuntimeValidate(silent)
}

// unreadable refuses the values that do not fit Karpenter's Go type. The CRD accepts integers that overflow it, and texts that it
// cannot parse, and Karpenter then cannot read any object of the kind.
func (d *draft) unreadable() (found findings) {
	d.narrow(&found, d.readable()["spec"], func(part any) map[string]any { return map[string]any{"spec": part} }, "spec")
	return found
}

// narrow refuses each innermost value at a path that cannot be decoded. A decoder tells its first error only, and not always the
// field. So the parts are decoded one by one: in puts one into a manifest that has nothing else.
func (d *draft) narrow(found *findings, value any, in func(part any) map[string]any, path ...string) {
	_, err := d.decode(in(value))
	if err == nil {
		return
	}
	known := len(*found)
	switch parts := value.(type) {
	case map[string]any:
		if _, wrong := d.decode(in(map[string]any{})); wrong != nil {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			d.narrow(found, parts[name], func(part any) map[string]any { return in(map[string]any{name: part}) }, append(path, name)...)
		}
	case []any:
		if _, wrong := d.decode(in([]any{})); wrong != nil {
			break
		}
		for i, part := range parts {
			d.narrow(found, part, func(part any) map[string]any { return in([]any{part}) }, append(path, strconv.Itoa(i))...)
		}
	}
	if len(*found) == known && !errors.Is(err, errFar) {
		from, _ := d.origin(path)
		found.undecoded(from, value, err)
	}
}

// undecoded adds a problem with a value that Go cannot decode.
func (f *findings) undecoded(from origin, value any, err error) {
	var wrong *json.UnmarshalTypeError
	var noTime *time.ParseError
	switch {
	case errors.As(err, &wrong):
		f.refuse(from, "has a %s, which Karpenter cannot read as %s; change it or leave it out", wrong.Value, wrong.Type)
	case errors.As(err, &noTime):
		f.refuse(from, "is %s, which is no time that Karpenter can read; leave it out, or write, for example, \"2026-01-31T08:00:00Z\"",
			params.Shown(value))
	case strings.HasPrefix(err.Error(), "time: "):
		f.refuse(from, "is %s, which is no duration that Karpenter can read; write, for example, \"1m30s\"", params.Shown(value))
	default:
		f.refuse(from, "is %s, which Karpenter cannot read: %v; change it or leave it out", params.Shown(value), err)
	}
}

// numbers refuses numbers with decimals or an exponent where the schema has integers: the API server takes 1e3 for one, and to the
// other checks it is none.
func (d *draft) numbers(value any, as *schema.Structural, path ...string) (found findings) {
	switch value := value.(type) {
	case float64:
		if as.Type == "integer" || as.XIntOrString {
			example := cmp.Or(examples[d.kind+" "+path[len(path)-1]], examples[path[len(path)-1]])
			found.noInteger(d.blame(path...), value, as.XIntOrString, example)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			field, described := as.Properties[name]
			if more := as.AdditionalProperties; !described && more != nil && more.Structural != nil {
				field = *more.Structural
			}
			found = append(found, d.numbers(value[name], &field, append(path, name)...)...)
		}
	case []any:
		for i, element := range value {
			if as.Items != nil {
				found = append(found, d.numbers(element, as.Items, append(path, strconv.Itoa(i))...)...)
			}
		}
	}
	return found
}

// noInteger adds a problem with a number that is not written as an integer.
func (f *findings) noInteger(from origin, number float64, orText bool, example string) {
	allowed, instead := "", "write, for example, "+cmp.Or(example, "10")
	if orText {
		allowed = ", or a text in quotes"
	}
	if whole := int64(number); float64(whole) == number && math.Abs(number) < 1<<53 {
		instead = fmt.Sprintf("write %d", whole)
	}
	f.refuse(from, "is %s, written with a sign, decimals, an exponent or more than 64 bits; allowed are digits alone%s; %s",
		params.Shown(number), allowed, instead)
}

// durations checks that Go can parse the durations. The CRD checks their characters only, and Karpenter cannot read a
// pool with an invalid one. An expiry of zero would delete every node at once.
func (d *draft) durations() (found findings) {
	check := func(in map[string]any, path ...string) {
		name := path[len(path)-1]
		text, _ := in[name].(string)
		if text == "" || text == "Never" {
			return
		}
		switch length, err := time.ParseDuration(text); {
		case err != nil:
			found.refuse(d.blame(path...), "is %q, which is no duration that Karpenter can read; write, for example, %s", text, examples[name])
		case name == "expireAfter" && length == 0:
			found.refuse(d.blame(path...), "is %q, which would delete every node at once; write, for example, %s", text, examples[name])
		}
	}
	node, disruption := inner(d.spec(), "template", "spec"), inner(d.spec(), "disruption")
	check(node, "template", "spec", "expireAfter")
	check(node, "template", "spec", "terminationGracePeriod")
	check(disruption, "disruption", "consolidateAfter")
	for i, budget := range objects(disruption["budgets"]) {
		check(budget, "disruption", "budgets", strconv.Itoa(i), "duration")
	}
	return found
}

// budgets checks what Karpenter parses when it is about to disrupt a node. If it cannot parse a budget it never
// disrupts a node, and only its log says so.
func (d *draft) budgets() (found findings) {
	for i, budget := range objects(inner(d.spec(), "disruption")["budgets"]) {
		from := func(name string) origin {
			return d.blame("disruption", "budgets", strconv.Itoa(i), name)
		}
		nodes, _ := budget["nodes"].(string)
		if _, err := strconv.ParseInt(nodes, 10, 32); errors.Is(err, strconv.ErrRange) {
			found.refuse(from("nodes"), "is %q, which is more than Karpenter counts; write, for example, %s",
				nodes, examples["nodes"])
		}
		text, _ := budget["schedule"].(string)
		if text == "" {
			continue
		}
		switch schedule, err := cron.ParseStandard("TZ=UTC " + text); { // as Karpenter does
		case err != nil:
			found.refuse(from("schedule"), "is %q, which is no schedule that Karpenter can read: it would "+
				"never disrupt a node; write, for example, %s",
				text, examples["schedule"])
		case schedule.Next(time.Unix(0, 0)).IsZero():
			found.refuse(from("schedule"), "is %q, a time that never comes, which Karpenter takes for always; "+
				"write, for example, %s", text, examples["schedule"])
		}
	}
	return found
}

// twice checks all taints together: no two may have the same key and effect.
func (d *draft) twice() (found findings) {
	seen := map[string]bool{}
	for _, list := range []string{"taints", "startupTaints"} {
		for i, taint := range objects(inner(d.spec(), "template", "spec")[list]) {
			what := fmt.Sprint(taint["key"], ":", taint["effect"])
			if seen[what] {
				found.refuse(d.blame("template", "spec", list, strconv.Itoa(i)),
					"is refused by Karpenter: the taint %s is there twice; keep one of them", what)
			}
			seen[what] = true
		}
	}
	return found
}

// runtimeValidate runs Karpenter's own check of a NodePool's template, which Karpenter does before it uses the pool.
func runtimeValidate(template map[string]any) error {
	var pool karpenter.NodePool
	if utiljson.Unmarshal(canonical.JSON(map[string]any{"spec": map[string]any{"template": template}}), &pool) != nil {
		return nil
	}
	return pool.RuntimeValidate(silent)
}

func (f *findings) disliked(from origin, err error) {
	var reasons []string
	for _, e := range multierr.Errors(err) {
		reasons = append(reasons, e.Error())
	}
	f.refuse(from, "is refused by Karpenter: %s; change it or leave it out", strings.Join(reasons, "; "))
}

// farExponent matches a quantity with a large exponent, which Kubernetes and Karpenter take minutes to compute.
var farExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// quantities checks that Karpenter can read the quantities. The CRD checks their characters only. Karpenter cannot read
// any NodePool if one has an invalid limit, and it panics on an invalid quantity for the kubelet.
func (d *draft) quantities() (found findings) {
	for _, path := range [][]string{
		{"limits"}, {"kubelet", "systemReserved"}, {"kubelet", "kubeReserved"}, {"kubelet", "evictionHard"}, {"kubelet", "evictionSoft"},
		{"kubelet", "evictionMinimumReclaim"}, {"capacity"},
	} {
		quantities, list := inner(d.spec(), path...), path[len(path)-1]
		for _, name := range slices.Sorted(maps.Keys(quantities)) {
			text, is := quantities[name].(string)
			if !is || readableQuantity(text) || strings.HasPrefix(list, "eviction") && strings.HasSuffix(text, "%") ||
				strings.HasSuffix(list, "Reserved") && d.expressions {
				continue
			}
			found.refuse(d.blame(append(slices.Clone(path), name)...),
				"is %q, which is no quantity that Karpenter can read; write, for example, %s", text, cmp.Or(examples[name], `"100Mi"`))
		}
	}
	return found
}

func readableQuantity(text string) bool {
	if farExponent.MatchString(text) {
		return false
	}
	_, err := resource.ParseQuantity(text)
	return err == nil
}
