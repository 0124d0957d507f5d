package params

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Input holds a rack's parameters and those of its last accepted plan.
type Input struct {
	Rack string
	// Params maps parameter names to the texts as written.
	Params map[string]string
	// Secure names the parameters that were written as SecureString.
	Secure []string
	// Previous has the effective texts of the last accepted plan. It is nil for a new rack.
	Previous map[string]string
	// Removing means that there may be something of Karpenter to remove: the rack had it on, and its removal has not ended since.
	Removing bool
	// Objects maps s3:// URIs to their content. A missing entry was not read: the command line reads none.
	Objects map[string]Object
}

// Object is the content of an s3:// value. If it could not be read, Problem has the reason as the end of a sentence.
type Object struct {
	Text    string
	Problem string
}

// Result holds a Config and the problems of the input. If there are Problems, the Config must not be applied. A refused
// parameter has its default in the Config, so that the other parameters can still be checked.
type Result struct {
	Config   Config
	Problems []Problem
	Warnings []Problem
	// Effective has the texts that the Config was made from: the written ones and those that a one-way rule keeps.
	Effective map[string]string

	turningOff bool
	written    map[string]string
}

// Parse reads every parameter and reports all problems, not only the first.
func Parse(in Input) Result {
	r := &Result{Config: Config{Rack: in.Rack}, Effective: map[string]string{}}
	r.written = r.known(r.leftAlone(in))
	r.keepOn(in)
	for _, p := range Table {
		r.read(p)
	}
	r.cluster(in)
	r.overrides(in.Objects)
	r.additional(in.Objects)
	r.controller(in.Objects)
	r.overlays(in.Objects)
	r.overlayGate()
	r.turningOff = !r.refused(enabled) &&
		(in.Previous[enabled] == "true" && r.Effective[enabled] == "false" || in.Removing && r.Effective[enabled] != "true")
	r.rules(in)
	r.advice()
	problems := r.Problems
	for _, p := range problems {
		r.Config.Refused = append(r.Config.Refused, p.Parameter)
	}
	for name := range r.written {
		if !slices.Contains(r.Config.Refused, name) {
			r.Config.Given = append(r.Config.Given, name)
		}
	}
	slices.Sort(r.Config.Given)
	slices.Sort(r.Config.Refused)
	r.Config.Refused = slices.Compact(r.Config.Refused)
	r.Problems = nil
	r.Add(problems...)
	return *r
}

// TurningOff reports whether the parameters turn Karpenter off that was on.
func (r Result) TurningOff() bool { return r.turningOff }

// Add adds problems that were found later, in the objects made from the parameters. While Karpenter is being turned
// off, problems of pool parameters become warnings.
func (r *Result) Add(problems ...Problem) {
	for _, p := range problems {
		if r.turningOff && ofPool(p.Parameter) {
			r.Warnings = append(r.Warnings, p) // turning Karpenter off is never blocked
		} else {
			r.Problems = append(r.Problems, p)
		}
	}
	r.Problems, r.Warnings = sorted(r.Problems), sorted(r.Warnings)
}

// RejectUnlessDisabling adds problems that matter only while Karpenter is on. If Karpenter is being turned off, they
// become warnings.
func (r *Result) RejectUnlessDisabling(problems ...Problem) {
	if r.turningOff {
		r.Advise(problems...)
		return
	}
	r.Add(problems...)
}

// Advise adds warnings that were found later.
func (r *Result) Advise(warnings ...Problem) { r.Warnings = sorted(append(r.Warnings, warnings...)) }

// MostNames is the most names that a rack may have under params/. With more, a pass stops reading, and the unknown
// names are reported as one problem instead of one each.
const MostNames = 200

// known returns the parameters that have a value, and reports unknown names and SecureStrings as problems.
func (r *Result) known(in Input) map[string]string {
	crowded := len(in.Params) > MostNames
	if crowded {
		r.problem("rack", "", "rack %s has more than %d names under params/, and Sawhorse knows %d parameters; delete those that it does not "+
			"know (sawhorse params lists the ones it does)", Quoted(in.Rack), MostNames, len(Table))
	}
	texts := map[string]string{}
	for name, value := range in.Params {
		switch _, known := Lookup(name); {
		case !known && crowded: // reported as one problem above
		case !known:
			r.problem(name, "", "%s is not a parameter of Sawhorse; %s", Quoted(name), suggestion(name))
		case slices.Contains(in.Secure, name):
			r.problem(name, "", "%s is a SecureString, which Sawhorse does not read because none of its settings is a secret; "+
				"delete it and write it again with --type String", name)
		case value != "" && value != Unset && value != Default:
			texts[name] = value
		}
	}
	return texts
}

func (r *Result) read(p Param) {
	value, given := r.written[p.Name]
	if given {
		r.Effective[p.Name] = value
		if p.Type == "json" {
			return // read after all other parameters
		}
		refusal := p.read(&r.Config, value)
		if refusal == "" {
			return
		}
		r.problem(p.Name, "", "%s %s", p.Name, refusal)
	}
	if p.Default != "" {
		if err := p.set(&r.Config, p.Default); err != nil {
			panic("params: default of " + p.Name + ": " + err.Error())
		}
	}
}

// read sets the parameter from a given text. It returns the rest of the sentence that refuses the text, or "".
func (p Param) read(c *Config, value string) string {
	return p.refusal(value, p.good, func() error { return p.set(c, value) })
}

// refusal returns the rest of the sentence that refuses a text, or "" if the text matches and set takes it.
func (v Value) refusal(text string, good func(string) bool, set func() error) string {
	why := ""
	if v.matches(text) {
		err := set()
		if err == nil {
			return ""
		}
		why = ", " + err.Error()
	}
	return fmt.Sprintf("is %s%s; allowed is %s; %s", Quoted(text), why, v.Allowed, v.instead(text, good))
}

func (p Param) good(value string) bool { return p.matches(value) && p.set(&Config{}, value) == nil }

func (r *Result) problem(parameter, path, format string, args ...any) {
	r.Problems = append(r.Problems, NewProblem(parameter, path, format, args...))
}

func (r *Result) warning(parameter, path, format string, args ...any) {
	r.Warnings = append(r.Warnings, NewProblem(parameter, path, format, args...))
}

var patterns = func() map[Pattern]*regexp.Regexp {
	compiled := map[Pattern]*regexp.Regexp{}
	add := func(v Value) {
		if compiled[v.Pattern] == nil {
			compiled[v.Pattern] = regexp.MustCompile(v.Pattern.Whole())
		}
	}
	for _, p := range Table {
		add(p.Value)
	}
	for _, f := range poolFields {
		add(f.Value)
	}
	return compiled
}()

func (v Value) matches(value string) bool { return patterns[v.Pattern].MatchString(value) }

var days = regexp.MustCompile(`^([1-9][0-9]{0,4})d$`)

// spaced matches separators with white space around them.
var spaced = regexp.MustCompile(`\s*([,=:%])\s*`)

// longest is the largest length of a suggested value. For longer values the example is more useful.
const longest = 300

// instead suggests what to write instead of a refused value: the same value spelled correctly if possible, else the
// example.
func (v Value) instead(value string, good func(string) bool) string {
	spelled := strings.Join(strings.Fields(value), "")
	switch v.Type {
	case "list":
		spelled = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }), ",")
	case "labels", "taints", "tags", "text", "schedule": // two words are not joined
		spelled = spaced.ReplaceAllString(strings.TrimSpace(value), "$1")
	}
	tries := []string{spelled}
	if lower := strings.ToLower(spelled); v.Type == "bool" || v.Type == "list" || v.Type == "duration" ||
		v.Pattern == volumeTypeValue.Pattern {
		tries = append(tries, lower)
		if lower == "never" {
			tries = append(tries, "Never")
		}
		if m := days.FindStringSubmatch(lower); m != nil && v.Type == "duration" {
			n, _ := strconv.Atoi(m[1])
			tries = append(tries, strconv.Itoa(24*n)+"h")
		}
		if dashless := strings.ReplaceAll(lower, "-", ""); v.Example == sizesValue.Example && slices.Contains(Sizes(), dashless) {
			return "write " + dashless
		}
		if v.Type == "list" && v.Pattern == patternList && strings.Contains(lower, "-") {
			return "names with a dash can be given as nodePool.template.spec.requirements, in the pool's config (karpenter_config is the " +
				"workload pool's, karpenter_build_config the build pool's) or in its entry"
		}
	}
	for _, try := range append(tries, v.respelled(value)...) {
		if try != value && len(try) <= longest && good(try) {
			return "write " + try
		}
	}
	if near := v.nearest(value); near != "" && good(near) {
		return "did you mean " + near + "?"
	}
	return "write, for example, " + v.Example
}
