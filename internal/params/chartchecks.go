package params

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Each of these functions checks a value of the controller's chart beyond its kind, which depends on the version. They
// ignore a value of another kind, which is reported later.

// The variables by which a program in Go finds its proxy.
const (
	VariableProxy   = "HTTPS_PROXY"
	VariableNoProxy = "NO_PROXY"
)

// variables are the environment variables that may be set, each with the values that it takes and an example. The values
// of the proxies must also be in the deployment's list. No value has a $, which begins a variable.
var variables = map[string]struct {
	takes   *regexp.Regexp
	example string
}{
	"GOGC":          {regexp.MustCompile(`^(off|[1-9][0-9]{0,4})$`), "100"},
	"GOMAXPROCS":    {regexp.MustCompile(`^[1-9][0-9]{0,3}$`), "2"},
	"GOMEMLIMIT":    {regexp.MustCompile(`^(off|[1-9][0-9]{0,14}(([KMGT]i)?B)?)$`), "1800MiB"},
	VariableProxy:   {regexp.MustCompile(`^https?://[^\s$]+$`), "http://proxy.example.com:3128"},
	VariableNoProxy: {regexp.MustCompile(`^[^\s$]+$`), "169.254.170.23,10.0.0.0/8"},
}

// environment allows few variables. By others the AWS SDK would find its credentials and its endpoints.
func environment(at string, value any) (flaws []flaw) {
	seen := map[string]bool{}
	for i, fields := range entries(value) {
		at := fmt.Sprintf("%s[%d]", at, i)
		flaws = append(flaws, only(at, fields, "name", "value")...)
		name, _ := fields["name"].(string)
		variable, allowed := variables[name]
		text, is := fields["value"].(string)
		switch {
		case !allowed:
			flaws = append(flaws, flaw{at + ".name", fmt.Sprintf("is %s, and through its variables the controller finds AWS and its "+
				"credentials; allowed are %s; leave it out", Shown(fields["name"]), strings.Join(slices.Sorted(maps.Keys(variables)), ", "))})
		case seen[name]:
			flaws = append(flaws, flaw{at + ".name", "is " + name + ", which is there twice; keep one of them"})
		case !is || !variable.takes.MatchString(text):
			flaws = append(flaws, flaw{at + ".value", fmt.Sprintf("is %s, which is no value of %s; write, for example, %q",
				Shown(fields["value"]), name, variable.example)})
		}
		seen[name] = true
	}
	return flaws
}

// entries returns the objects of a list. An element of another kind is nil.
func entries(value any) (all []map[string]any) {
	list, _ := value.([]any)
	for _, element := range list {
		fields, _ := element.(map[string]any)
		all = append(all, fields)
	}
	return all
}

// only refuses the fields of an object that are not allowed.
func only(at string, value any, allowed ...string) (flaws []flaw) {
	fields, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(allowed, name) {
			flaws = append(flaws, flaw{Join(at, name), "is protected: allowed are " + strings.Join(allowed, ", ") + "; leave it out"})
		}
	}
	return flaws
}

// resources leaves out claims: devices of other pods.
func resources(at string, value any) []flaw { return only(at, value, "limits", "requests") }

// Times in the chart's values. Karpenter's process ends if a refresh is below a minute (Options.Validate).
var (
	timeSpan = atLeast(1, "a number with a unit", "10s")
	refresh  = atLeast(time.Minute, "a number with a unit, a minute or more", "5m")
)

// atLeast reads a text as Karpenter does.
func atLeast(least time.Duration, allowed, example string) func(at string, value any) []flaw {
	return func(at string, value any) []flaw {
		text, is := value.(string)
		if d, err := time.ParseDuration(text); !is || err == nil && d >= least {
			return nil
		}
		return []flaw{{at, fmt.Sprintf("is %s; allowed is %s; write, for example, %q", Shown(value), allowed, example)}}
	}
}

// fraction refuses percentages: Karpenter takes 7.5 for 750%, and no instance would have memory left.
func fraction(at string, value any) []flaw {
	number, is := value.(float64)
	if whole, integer := value.(int64); integer {
		number, is = float64(whole), true
	}
	if !is || number < 1 {
		return nil
	}
	return []flaw{{at, fmt.Sprintf("is %s, which is %.4g%%; allowed is a number below 1; write, for example, 0.075 for 7.5%%", Shown(value),
		100*number)}}
}

var number = regexp.MustCompile(`^[0-9]{1,3}$`)

func digits(at string, value any) []flaw {
	if text, is := value.(string); !is || number.MatchString(text) {
		return nil
	}
	return []flaw{{at, fmt.Sprintf("is %s; allowed is a whole number in quotes; write, for example, %q", Shown(value), "1")}}
}

// bits32 refuses numbers that the API server cannot read.
func bits32(example int) func(at string, value any) []flaw {
	return func(at string, value any) []flaw {
		if number, is := value.(int64); !is || number <= math.MaxInt32 {
			return nil
		}
		return []flaw{{at, fmt.Sprintf("is %s; allowed is a whole number up to %d; write, for example, %d", Shown(value), math.MaxInt32,
			example)}}
	}
}

// nameOfObject refuses what is no name of an object of Kubernetes.
func nameOfObject(at string, value any) []flaw {
	text, is := value.(string)
	if !is || text == "" || len(validation.IsDNS1123Subdomain(text)) == 0 {
		return nil
	}
	return []flaw{{at, fmt.Sprintf("is %s; allowed is a name of a-z, 0-9, dashes and dots; write, for example, %q", Shown(value),
		"system-cluster-critical")}}
}

// port leaves a negative number to the check of its kind.
func port(at string, value any) []flaw {
	const last = 65535
	if number, is := value.(int64); !is || number < 0 || number >= 1 && number <= last {
		return nil
	}
	return []flaw{{at, fmt.Sprintf("is %s; allowed is a port from 1 to %d; write, for example, 8080", Shown(value), last)}}
}

// affinity refuses anti-affinities to others' pods: the scheduler would keep those away from the controller's nodes, or
// from its whole zone.
func affinity(at string, value any) (flaws []flaw) {
	fields, _ := value.(map[string]any)
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	apart, _ := fields["podAntiAffinity"].(map[string]any)
	for i, term := range entries(apart[required]) {
		at := fmt.Sprintf("%s.podAntiAffinity.%s[%d]", at, required, i)
		if selector, given := term["labelSelector"]; given && !selectsController(selector) {
			flaws = append(flaws, flaw{at + ".labelSelector", "is protected: it keeps pods of others away from the controller's; leave it out, " +
				"and it selects the controller's own"})
		}
		for _, field := range []string{"namespaceSelector", "namespaces"} {
			if _, given := term[field]; given {
				flaws = append(flaws, flaw{at + "." + field, "is protected: it keeps pods of others away from the controller's; leave it out"})
			}
		}
	}
	return flaws
}

// selectsController reports whether a label selector can select only pods of the controller.
func selectsController(selector any) bool {
	fields, _ := selector.(map[string]any)
	labels, _ := fields["matchLabels"].(map[string]any)
	own := map[string]string{"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}
	for key, value := range own {
		if labels[key] == value {
			return true
		}
	}
	return slices.ContainsFunc(entries(fields["matchExpressions"]), func(e map[string]any) bool {
		key, _ := e["key"].(string)
		values, _ := e["values"].([]any)
		return e["operator"] == "In" && own[key] != "" && len(values) == 1 && values[0] == own[key]
	})
}
