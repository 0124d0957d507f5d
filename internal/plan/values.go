package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// values checks the values for the controller's chart against the version's own values.yaml: their names and kinds.
func (b *builder) values() {
	if len(b.config.ControllerValues) == 0 {
		return
	}
	v := valuesOf{b, b.karpenter.values()}
	v.object(nil, b.config.ControllerValues, v.known)
	v.exclusive()
	v.ports()
	v.unpassed()
}

// valuesOf checks values for the chart with these default values.
type valuesOf struct {
	*builder
	known map[string]any
}

func (v valuesOf) refuse(at, format string, args ...any) {
	v.problems = append(v.problems, params.NewProblem(params.ParamController, at, "%s %s", at, fmt.Sprintf(format, args...)))
}

func (v valuesOf) object(path []string, given, known map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := append(slices.Clone(path), name)
		switch standing, is := known[name]; {
		case !is:
			v.refuse(params.Join("", at...), "is no value of the chart of Karpenter %s; %s", v.target.Version, v.instead(at, known))
		case !params.MaySet(at):
			v.refuse(params.Join("", at...), "is protected: this version of Sawhorse does not know what it reaches; leave it out")
		default:
			v.value(at, given[name], standing)
		}
	}
}

// instead returns what to write in place of an unknown value: its place, a version that has it, or the nearest name.
func (v valuesOf) instead(path []string, known map[string]any) string {
	parent, name := path[:len(path)-1], path[len(path)-1]
	if places := placesOf(name, nil, v.known); len(places) == 1 {
		return "write it as " + places[0]
	}
	for _, release := range catalogue.All() {
		if _, is := find(versionOf(release).values(), path); is {
			return fmt.Sprintf("%s has it: write karpenter_version %s, or leave it out", release.Version, release.Version)
		}
	}
	var may []string
	for _, each := range slices.Sorted(maps.Keys(known)) {
		if params.MaySet(append(slices.Clone(parent), each)) {
			may = append(may, each)
		}
	}
	return params.DidYouMean(name, may, "allowed are "+strings.Join(may, ", "))
}

// placesOf returns the paths of the values of a name that may be set.
func placesOf(name string, path []string, known map[string]any) (all []string) {
	for _, each := range slices.Sorted(maps.Keys(known)) {
		at := append(slices.Clone(path), each)
		if each == name && params.MaySet(at) {
			all = append(all, params.Join("", at...))
		}
		if fields, is := known[each].(map[string]any); is {
			all = append(all, placesOf(name, at, fields)...)
		}
	}
	return all
}

// find returns the value at a path.
func find(values map[string]any, path []string) (value any, there bool) {
	value, there = values, true
	for _, name := range path {
		fields, _ := value.(map[string]any)
		if value, there = fields[name]; !there {
			return nil, false
		}
	}
	return value, there
}

// value checks the kind of one value, which is that of the chart's default.
func (v valuesOf) value(path []string, given, standing any) {
	judged, whole := params.FindChartValue(path)
	if standing == nil {
		standing = judged.Like
	}
	switch standing := standing.(type) {
	case map[string]any:
		fields, is := given.(map[string]any)
		switch {
		case !is:
			v.reject(path, given, "an object", `{"key":"value"}`)
		case !whole:
			v.object(path, fields, standing)
		}
	case []any:
		if _, is := given.([]any); !is {
			v.reject(path, given, "an array", "[…]")
		}
	case bool:
		if _, is := given.(bool); !is {
			v.reject(path, given, "true or false, without quotes", strconv.FormatBool(standing))
		}
	case float64: // the only numbers of YAML as JSON
		v.number(path, given, standing)
	default:
		if _, is := given.(string); !is {
			example := fmt.Sprint(given)
			if own, is := standing.(string); is && !judged.Takes(example) {
				example = own
			}
			v.reject(path, given, "text, in quotes", strconv.Quote(example))
		}
	}
}

func (v valuesOf) number(path []string, given any, standing float64) {
	example := strconv.FormatFloat(standing, 'f', -1, 64)
	number, fraction := given.(float64)
	whole, is := given.(int64)
	switch {
	case !fraction && !is:
		v.reject(path, given, "a number, without quotes", example)
	case fraction && standing == math.Trunc(standing):
		v.reject(path, given, "a whole number that is not negative", example)
	case number < 0 || whole < 0:
		v.reject(path, given, "a number that is not negative", example)
	}
}

func (v valuesOf) reject(path []string, given any, allowed, example string) {
	v.refuse(params.Join("", path...), "is %s; allowed is %s; write, for example, %s", params.Shown(given), allowed, example)
}

// apart are values that a version's chart refuses together: if the first is true and the other is set, or is true too.
var apart = []struct {
	first, other string
	isTrue       bool
}{
	{first: "settings.enableDRA", other: "settings.ignoreDRARequests"},
	{first: "settings.enableDRA", other: "settings.awsFeatureGates.draNVIDIAGPU"},
	{first: "settings.enableDRA", other: "settings.awsFeatureGates.draEFA"},
	{first: "settings.legacyNodeRepair", other: "settings.featureGates.terminateFirstRepair", isTrue: true},
}

func (v valuesOf) exclusive() {
	for _, two := range apart {
		first, _ := find(v.config.ControllerValues, strings.Split(two.first, "."))
		other, there := find(v.config.ControllerValues, strings.Split(two.other, "."))
		if first == true && there && (other == true || !two.isTrue) {
			v.refuse(two.other, "does not go together with %s; leave one of them out", two.first)
		}
	}
}

// unpassed warns of values that a version's templates leave out if they are false or 0, so that Karpenter's own default counts.
func (v valuesOf) unpassed() {
	for _, name := range []string{"settings.ignoreDRARequests", "settings.vmMemoryOverheadPercent"} {
		given, _ := find(v.config.ControllerValues, strings.Split(name, "."))
		standing, _ := find(v.known, strings.Split(name, "."))
		if text := fmt.Sprint(given); standing != nil && (text == "false" || text == "0") {
			v.warnings = append(v.warnings, params.NewProblem(params.ParamController, name, "%s is %s, which the chart of Karpenter %s does not "+
				"pass on, so it has no effect; leave it out", name, text, v.target.Version))
		}
	}
}

// ports refuses one port for the controller's two servers: it would end, again and again.
func (v valuesOf) ports() {
	metrics, probes := []string{"controller", "metrics", "port"}, []string{"controller", "healthProbe", "port"}
	known := merged(v.known, v.config.ControllerValues)
	one, _ := find(known, metrics)
	other, _ := find(known, probes)
	if fmt.Sprint(one) != fmt.Sprint(other) {
		return
	}
	if _, given := find(v.config.ControllerValues, metrics); !given {
		metrics, probes = probes, metrics
	}
	v.refuse(params.Join("", metrics...), "is %v, which %s is too; write another port", one, params.Join("", probes...))
}

// merged returns the values of both; of a value that both have, the other's. Objects are merged, as Helm does.
func merged(values, other map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, values)
	for name, value := range other {
		if over, is := value.(map[string]any); is {
			under, _ := all[name].(map[string]any)
			all[name] = merged(under, over)
		} else {
			all[name] = value
		}
	}
	return all
}

// within returns the values that a chart has, for an older version than the one that they were written for.
func within(values, known map[string]any, path ...string) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		standing, is := known[name]
		at := append(slices.Clone(path), name)
		fields, object := value.(map[string]any)
		defaults, _ := standing.(map[string]any)
		_, whole := params.FindChartValue(at)
		switch {
		case !is:
		case object && !whole:
			all[name] = within(fields, defaults, at...)
		default:
			all[name] = value
		}
	}
	return all
}
