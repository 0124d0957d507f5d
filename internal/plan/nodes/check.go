package nodes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Check returns what the API server or Karpenter would refuse of the manifests and of the controller's values, under the
// parameters that cause it. The manifests are checked side by side: nine tenths of a validation's time are spent here. Those of
// karpenter_defaults_config alone come first: what is too much to tell of them, or takes long, is not judged again for each pool.
func (c Compiled) Check() []params.Problem {
	var alone, others []*draft
	for _, d := range c.all() {
		if d.alone {
			alone = append(alone, d)
		} else {
			others = append(others, d)
		}
	}
	found, hopeless := c.judge(alone)
	others = slices.DeleteFunc(others, func(d *draft) bool { return slices.Contains(hopeless, d.kind) })
	more, _ := c.judge(others)
	return slices.Concat(c.values(), found, more)
}

// muchToJudge is the size of a manifest in bytes from which on, if it is wrong, others that have the same in them are not judged.
const muchToJudge = 8 << 10

// judge checks manifests. It returns the kinds of those that are wrong in too many places, or that are wrong and large, too.
func (c Compiled) judge(drafts []*draft) (found findings, hopeless []string) {
	verdicts := make([]*verdict, len(drafts))
	var checks sync.WaitGroup
	for i, d := range drafts {
		checks.Go(func() { verdicts[i] = d.check() })
	}
	checks.Wait()
	for i, d := range drafts {
		v := verdicts[i]
		found = slices.Concat(found, d.tooOld(), v.told(d))
		if v.rest > 0 || len(v.problems) > 0 && len(canonical.JSON(d.object)) > muchToJudge {
			hopeless = append(hopeless, d.kind)
		}
	}
	return found, hopeless
}

// findings are the problems or the warnings that checks found.
type findings []params.Problem

// refuse adds a problem with a value. Its message begins with the place of the value.
func (f *findings) refuse(from origin, format string, args ...any) {
	f.warn(from, "%s %s", from.name(), fmt.Sprintf(format, args...))
}

// warn adds a problem or a warning.
func (f *findings) warn(from origin, format string, args ...any) {
	*f = append(*f, params.NewProblem(from.parameter, from.path, format, args...))
}

// mostProblems is how many problems of one manifest are told. A value of 64 KB can have thousands, and the rest is counted.
const mostProblems = 100

// verdict collects the problems with a manifest, each path once.
type verdict struct {
	problems findings
	// rest counts the problems that are not told.
	rest int
}

// full reports whether there are as many problems as are told.
func (v *verdict) full() bool { return len(v.problems) >= mostProblems }

// add adds problems, without those that are known already.
func (v *verdict) add(found findings, known func(params.Problem) bool) {
	for _, p := range found {
		switch {
		case known != nil && known(p):
		case v.full():
			v.rest++
		default:
			v.problems = append(v.problems, p)
		}
	}
}

// samePlace reports whether there is a problem with the same path. A parameter without a path may have several problems.
func (v *verdict) samePlace(p params.Problem) bool {
	return p.Path != "" && slices.ContainsFunc(v.problems, func(known params.Problem) bool {
		return known.Parameter == p.Parameter && known.Path == p.Path
	})
}

// overlap reports whether there is a problem with the same path, with one that it is inside of, or with one inside of it.
func (v *verdict) overlap(p params.Problem) bool {
	return slices.ContainsFunc(v.problems, func(known params.Problem) bool {
		return known.Parameter == p.Parameter && (known.Path == p.Path || inside(known.Path, p.Path) || inside(p.Path, known.Path))
	})
}

// told returns the problems, and how many there are besides.
func (v *verdict) told(d *draft) findings {
	if v.rest == 0 {
		return v.problems
	}
	from := v.problems[len(v.problems)-1].Parameter
	return append(v.problems, params.NewProblem(from, "", "%s has at least %d problems more than the %d that are told for its %s; mend "+
		"these first", from, v.rest, mostProblems, d.kind))
}

// mostElements is how many elements of a list are judged. None that Karpenter could use is as long, and the schema's validator
// takes a second for a few thousand that are wrong.
const mostElements = 2000

// crowded refuses lists that are too long to be judged.
func (d *draft) crowded(value any, path ...string) (found findings) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = append(found, d.crowded(value[name], append(path, name)...)...)
		}
	case []any:
		if len(value) > mostElements {
			found.refuse(d.blame(path...), "has %d elements; allowed are %d; take out %d", len(value), mostElements, len(value)-mostElements)
			return found
		}
		for i, element := range value {
			found = append(found, d.crowded(element, append(path, strconv.Itoa(i))...)...)
		}
	}
	return found
}

// check looks for unknown fields, then applies the CRD's schema and rules, then the checks that Karpenter makes when it
// uses a NodePool.
func (d *draft) check() *verdict {
	v, definition := &verdict{}, d.api.crds[d.kind]()
	if v.add(d.crowded(d.spec()), nil); len(v.problems) > 0 {
		return v
	}
	unknown, refused, broken := definition.check(d.object)
	// Each path is reported once, by the first check that refuses it. Checks that know what to write instead come first,
	// then the schema, the CEL rules, and Karpenter. Rules that failed to evaluate a value of the wrong type come last,
	// because they know only the section.
	v.add(d.numbers(d.spec(), definition.at([]string{"spec"})), nil)
	known := slices.Concat(d.initial, d.extended(), d.amis(), d.volumes(), d.boot(), d.kubelet(), d.values(), d.families())
	v.add(slices.DeleteFunc(known, v.samePlace), nil) // some take such a number for missing
	listed := map[string]bool{}
	for i, path := range unknown {
		if v.full() {
			v.rest += len(unknown) - i
			break
		}
		var found findings
		field := d.route(path)
		if of := definition.at(field[:len(field)-1]); of != nil && of.Items != nil {
			continue // an object where a list belongs, which the schema refuses as a whole
		}
		found.unknown(d, definition, field, listed)
		v.add(found, nil)
	}
	for i, e := range refused {
		if v.full() {
			v.rest += len(refused) - i
			break
		}
		if !strings.HasSuffix(e.Detail, "must validate at least one schema (anyOf)") { // said of a quantity beside what its type must be
			v.add(d.refused(e), v.samePlace)
		}
	}
	var byRules, stumbled findings
	for i, e := range broken {
		if v.full() || len(byRules)+len(stumbled) >= mostProblems {
			v.rest += len(broken) - i
			break
		}
		if d.kind == kindOverlay && e.Detail == "invalid resource restricted" {
			continue // extended tells which
		}
		if _, rule, found := strings.Cut(e.Detail, " evaluating rule: "); found {
			e.Detail, e.BadValue = rule, nil
			stumbled = append(stumbled, d.refused(e)...)
			continue
		}
		byRules = append(byRules, d.refused(e)...)
	}
	v.add(slices.DeleteFunc(byRules, v.samePlace), nil) // several may refer to one list
	if v.full() {
		return v
	}
	quantities := d.quantities()
	v.add(quantities, v.overlap)
	agreed := len(refused) == 0 && len(quantities) == 0 && d.read() == nil
	v.add(slices.Concat(d.typed(agreed), d.overlay()), v.overlap)
	if !agreed {
		v.add(d.unreadable(), v.overlap)
	}
	v.add(d.contradictions(), func(p params.Problem) bool { return p.Path != "" && v.overlap(p) })
	v.add(stumbled, v.overlap)
	return v
}

// inside reports whether a JSON path is inside of another one. The empty path contains none.
func inside(path, outer string) bool {
	rest, is := strings.CutPrefix(path, outer)
	return is && outer != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// unknown refuses a field that Karpenter's API does not have. The allowed fields of an object are listed in one problem
// only.
func (f *findings) unknown(d *draft, definition crd, path []string, listed map[string]bool) {
	from, _ := d.origin(path)
	name, object := path[len(path)-1], path[:len(path)-1]
	known := definition.fields(object)
	otherwise := "leave it out"
	if d.inKubelet(path) {
		f.refuse(from, "is no field of the kubelet's configuration, and Karpenter rejects it from %s on; %s", kubeletSince(),
			params.DidYouMean(name, known, otherwise))
		return
	}
	_, _, limited := d.translation()
	if version := d.having(path, nil); version != "" && !(limited && slices.Contains(object, "kubelet")) {
		f.refuse(from, "is no field of Karpenter %s's %s; %s has it: write karpenter_version %s, or leave it out", d.api.Version, d.kind,
			version, version)
		return
	}
	why := func(name string) string { return params.WhyProtected(from.parameter, d.placeOf(object)+"."+name) }
	protected := func(name string) bool { return why(name) != "" }
	if at := strings.Join(object, "\x00"); name == "spec" && at == "spec" {
		otherwise, known = "write its fields in "+topOf[d.kind]+" itself", nil
	} else if place := d.elsewhere(name); place != "" {
		if otherwise, known = "write it as "+place, nil; params.WhyProtected(from.parameter, place) != "" {
			otherwise = fmt.Sprintf("%s is protected, too: %s; leave it out", place, params.WhyProtected(from.parameter, place))
		}
	} else if near := params.Nearest(name, known); protected(near) {
		otherwise, known = fmt.Sprintf("%s is protected, too: %s; leave it out", near, why(near)), nil
	} else if known = slices.DeleteFunc(known, protected); !listed[at] && params.Nearest(name, known) == "" && len(known) > 0 {
		listed[at], otherwise = true, "allowed are "+strings.Join(known, ", ")
	}
	f.refuse(from, "is no field of Karpenter's %s; %s", d.kind, params.DidYouMean(name, known, otherwise))
}

// refused returns the problems for an error of the CRD's schema or rules. There are several if a rule is about several
// keys.
func (d *draft) refused(e *field.Error) (found findings) {
	if _, place, found := strings.Cut(e.Detail, " in spec."); found && e.Field == "<nil>" {
		e.Field = "spec." + place // errors about a number's format have no field
	}
	path := d.route(e.Field)
	from, known := d.origin(path)
	origins := []origin{from}
	if !known {
		origins = d.below(path, e.Detail)
	}
	reason := strings.TrimPrefix(strings.TrimSuffix(e.Detail, "."), e.Field+" in body ")
	switch {
	case e.Type == field.ErrorTypeRequired && reason == "":
		reason = "is required"
	case strings.HasPrefix(reason, "should match '") && len(path) > 0 && examples[path[len(path)-1]] != "":
		reason = "its form is not that of such a value"
	}
	by := "by Kubernetes for Karpenter's " + d.kind
	if d.inKubelet(path) {
		by = "by Karpenter from " + kubeletSince() + " on"
	}
	for _, from := range origins {
		found.refuse(from, "%sis refused %s: %s; %s", value(e), by, reason, d.instead(path, e))
	}
	return found
}

// value returns the refused value for a sentence, or "" if the error does not have it. For a list that is too long or
// too short the error has the length instead.
func value(e *field.Error) string {
	switch e.BadValue.(type) {
	case string, int64, float64, bool:
	default:
		return ""
	}
	if e.Type == field.ErrorTypeRequired || strings.HasSuffix(e.Detail, " items") || strings.Contains(e.Detail, "must be of type") {
		return ""
	}
	if encoded, err := json.Marshal(e.BadValue); err == nil && len(encoded) <= 80 {
		return "is " + string(encoded) + ", which "
	}
	return ""
}

// examples maps fields that often have invalid values to valid ones.
var examples = map[string]string{
	"expireAfter": "720h or Never", "terminationGracePeriod": "48h", "consolidateAfter": "30s or Never", "nodes": `"10%" or "3"`,
	"schedule": `"0 9 * * mon-fri"`, "duration": "8h", "cpu": `"200"`, "memory": `"800Gi"`, "volumeSize": "100Gi",
	"weight": "an integer from 1 to 100", kindOverlay + " weight": "an integer from 1 to 10000", "price": `"0.25"`,
	"priceAdjustment": `"-10%" or "+0.02"`,
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// remedies lists what to write instead if a rule of Karpenter's CRDs refuses a whole section. A rule is recognized by
// the beginning of its message.
var remedies = []struct{ message, instead string }{
	{"must specify amiFamily", `write amiFamily too, for example "AL2023"`},
	{"if set, amiFamily must be", `write amiSelectorTerms for that family too, for example [{"alias":"bottlerocket@latest"}] ` +
		`with Bottlerocket, or leave amiFamily out`},
	{"'alias' is mutually exclusive", "keep the alias alone, or write amiFamily and terms without an alias"},
	{"'id' is mutually exclusive", "keep the id alone in its term"},
	{"'ssmParameter' is mutually exclusive", "keep the ssmParameter alone in its term"},
	{"snapshotID or volumeSize must be defined", `write volumeSize, for example "100Gi"`},
	{"expected at least one, got none", "write one of these"},
	{"'schedule' must be set with 'duration'", `write both, for example "schedule":"0 9 * * mon-fri","duration":"8h"`},
	{"requirements operator 'Gt'", `write one whole number in quotes, for example "values":["7"]`},
	{"requirements with operator 'In'", `write a value, for example "values":["c6i"], or leave the requirement out`},
	{"requirements with 'minValues'", "write a smaller minValues, or more values"},
	{"evictionSoft OwnerKey", "write evictionSoftGracePeriod for the same signals too"},
	{"evictionSoftGracePeriod OwnerKey", "write evictionSoft for the same signals too"},
	{"cannot set both 'price' and 'priceAdjustment'", "keep one of them"},
	{`must be of type string: "object"`, "write one text"},
	{"must be of type string", "write it in quotes"},
	{`must be of type integer: "string"`, "write a whole number without quotes"},
	{`must be of type boolean: "string"`, "write true or false without quotes"},
	{`must be of type array: "string"`, "write it in brackets, as a list"},
	{`must be of type array: "object"`, "write it in brackets, as a list"},
}

// instead returns what to write in place of a refused value.
func (d *draft) instead(path []string, e *field.Error) string {
	if e.Type == field.ErrorTypeNotSupported {
		if version := d.having(path, e.BadValue); version != "" {
			return fmt.Sprintf("%s has it: write karpenter_version %s, or another value", version, version)
		}
	}
	if len(path) > 0 {
		if example := cmp.Or(examples[d.kind+" "+path[len(path)-1]], examples[path[len(path)-1]]); example != "" {
			return "write, for example, " + example
		}
	}
	for _, r := range remedies {
		if strings.Contains(e.Detail, r.message) {
			return r.instead
		}
	}
	if e.Type == field.ErrorTypeNotSupported {
		var supported []string
		for _, match := range quoted.FindAllStringSubmatch(e.Detail, -1) {
			supported = append(supported, match[1])
		}
		return params.DidYouMean(fmt.Sprint(e.BadValue), supported, "write one of these")
	}
	if text, is := e.BadValue.(string); is && strings.Contains(e.Detail, " is restricted") {
		if version := d.knowing(text); version != "" {
			return fmt.Sprintf("%s has it: write karpenter_version %s, or leave it out", version, version)
		}
		const own = "write a key of your own domain, or leave it out"
		if d.api.named()[text] { // not misspelled, but forbidden
			return own
		}
		return params.DidYouMean(text, wellKnown(), own)
	}
	return "change it or leave it out"
}

// below finds the origins for a rule on a whole section: the parts that the message names, else the one parameter, or
// section of a config, that they come from.
func (d *draft) below(path []string, message string) []origin {
	under := strings.Join(path, "\x00") + "\x00"
	words := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(` "'`, r) })
	var named, all []origin
	longest := 0
	for _, at := range slices.Sorted(maps.Keys(d.origins)) {
		from := d.origins[at]
		if !strings.HasPrefix(at, under) || from == d.fallback {
			continue
		}
		length := 0
		for _, word := range words {
			if means(word, at[strings.LastIndexByte(at, 0)+1:]) {
				length = max(length, len(word))
			}
		}
		if length > longest { // the longest match wins: "tag" and "label" are valid keys too
			longest, named = length, nil
		}
		if length == longest && !slices.Contains(named, from) {
			named = append(named, from)
		}
		if !slices.Contains(all, from) {
			all = append(all, from)
		}
	}
	switch {
	case longest > 0 || len(all) == 1:
		return named
	case len(all) == 0:
		return []origin{d.fallback}
	case slices.ContainsFunc(all, func(from origin) bool { return from.config }):
		return []origin{d.over(all).from(append([]string{topOf[d.kind]}, path[min(1, len(path)):]...)...)}
	default:
		return []origin{{parameter: all[0].parameter}}
	}
}

// over returns the last of the configs that one of the origins is in.
func (d *draft) over(all []origin) (last layer) {
	for _, l := range d.layers {
		if slices.ContainsFunc(all, func(from origin) bool { return from.config && from.parameter == l.parameter }) {
			last = l
		}
	}
	return last
}

// means reports whether a word of a message is the key, a prefix of it that ends in a slash, its domain, or a parent of
// its domain.
func means(word, key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return word == key || strings.HasSuffix(word, "/") && strings.HasPrefix(key, word) ||
		found && (domain == word || strings.HasSuffix(domain, "."+word))
}
