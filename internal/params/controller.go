package params

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// versionValue is a version of the catalogue. The pattern accepts every version, so that it need not be written to
// Parameter Store again for each one that is added to the catalogue.
var versionValue = Value{
	Type: "version", Pattern: `(0|[1-9][0-9]{0,4})(\.(0|[1-9][0-9]{0,4})){2}`, Allowed: either(karpenter.Versions()), Example: newest(),
	Words: karpenter.Versions(),
}

// either lists words for a sentence: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func newest() string {
	all := karpenter.Versions()
	return all[len(all)-1]
}

var errNoVersion = errors.New("which Sawhorse does not have")

func version(value string) (string, error) {
	if !slices.Contains(karpenter.Versions(), value) {
		return "", errNoVersion
	}
	return value, nil
}

// nearestVersion returns the oldest version of the catalogue that has what a version has: itself, the next newer one, or the
// newest. Its result for a text that is not a version is "".
func nearestVersion(value string) string {
	if !versionValue.matches(value) {
		return ""
	}
	for _, each := range karpenter.Versions() {
		if karpenter.Compare(each, value) >= 0 {
			return each
		}
	}
	return newest()
}

// controller reads karpenter_controller_config. Unknown values and wrong kinds are found later, because they depend on the
// version of Karpenter.
func (r *Result) controller(objects map[string]Object) {
	value, given := r.document(ParamController, objects)
	if !given {
		return
	}
	values, is := value.(map[string]any)
	if !is {
		r.problem(ParamController, "", "%s is %s; allowed is a JSON object of values of the controller's chart; write, for example, %s",
			ParamController, kindOf(value), `{"logLevel":"debug"}`)
		return
	}
	r.nullValues(nil, values)
	prune(values, false) // to Helm, null would mean to drop a default
	r.chartValues(nil, values)
	for _, at := range nulls("", values) {
		r.problem(ParamController, at, "%s is null; leave the element out", at)
	}
	settings, _ := values["settings"].(map[string]any)
	isolated, there := settings["isolatedVPC"].(bool)
	if _, chosen := r.written[isolatedVPC]; there && chosen && isolated != r.Config.IsolatedVPC && !r.refused(isolatedVPC) {
		r.problem(ParamController, "settings.isolatedVPC", "settings.isolatedVPC is %v, but the parameter %s is %v; leave it out, or write "+
			"both alike", isolated, isolatedVPC, r.Config.IsolatedVPC)
		delete(settings, "isolatedVPC")
	}
	r.Config.ControllerValues = values
}

// nullValues refuses null where it is not the same as absent: for a value that is protected, and for a whole section.
func (r *Result) nullValues(path []string, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := append(slices.Clone(path), name)
		found, judged := FindChartValue(at)
		switch inner := values[name].(type) {
		case map[string]any:
			r.nullValues(at, inner)
		case nil:
			if judged && found.Refused != "" {
				r.problem(ParamController, found.Path, "%s is protected: %s; leave it out", found.Path, found.Refused)
			} else if !judged && len(path) == 0 && MaySet(at) {
				r.problem(ParamController, name, "%s is null, and a whole section may not be; leave it out", name)
			}
		}
	}
}

// nulls returns the paths of the elements of lists that are null. In objects prune has removed them.
func nulls(at string, value any) (all []string) {
	switch v := value.(type) {
	case nil:
		return []string{at}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, nulls(Join(at, name), v[name])...)
		}
	case []any:
		for i, element := range v {
			all = append(all, nulls(fmt.Sprintf("%s[%d]", at, i), element)...)
		}
	}
	return all
}

// chartValues refuses values of the chart that may not be set, and removes them.
func (r *Result) chartValues(path []string, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := append(slices.Clone(path), name)
		found, judged := FindChartValue(at)
		inner, object := values[name].(map[string]any)
		switch {
		case judged && found.Refused != "":
			r.problem(ParamController, found.Path, "%s is protected: %s; leave it out", found.Path, found.Refused)
			delete(values, name)
		case judged:
			for _, f := range found.flaws(values[name]) {
				r.problem(ParamController, f.path, "%s %s", f.path, f.what)
			}
		case object:
			r.chartValues(at, inner)
		}
	}
}
