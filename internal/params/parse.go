package params

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Input is what a rack's parameters say and said.
type Input struct {
	Rack string
	// Params are the texts as written, by parameter name.
	Params map[string]string
	// Secure names the parameters that were written as SecureString.
	Secure []string
	// Previous are the effective texts of the last accepted plan; nil for a new rack.
	Previous map[string]string
	// Removing tells that Karpenter was turned off in an earlier round and has not gone completely.
	Removing bool
	// Objects are the texts behind s3:// values, by URI. One that is missing was not read: the command line reads none.
	Objects map[string]Object
}

// Object is what an s3:// value leads to: its text, or, as the end of a sentence, why there is none.
type Object struct {
	Text    string
	Problem string
}

// Result is a Config, and what is wrong with the input. With Problems, the Config is not to be put into force; a parameter
// that was refused has its default in it, so that the rest can still be judged.
type Result struct {
	Config   Config
	Problems []Problem
	Warnings []Problem
	// Effective are the texts that the Config was made of: what was written, plus what a one-way rule keeps.
	Effective map[string]string

	turningOff bool
	written    map[string]string
}

// Parse reads every parameter, so that all problems are told and not just the first.
func Parse(in Input) Result {
	r := &Result{Config: Config{Rack: in.Rack}, Effective: map[string]string{}}
	r.written = r.known(r.leftAlone(in))
	r.keepOn(in)
	for _, p := range Table {
		r.read(p)
	}
	r.cluster(in)
	r.override(in.Objects)
	r.additional(in.Objects)
	r.turningOff = in.Previous[enabled] == "true" && r.Effective[enabled] == "false" || in.Removing && r.Effective[enabled] != "true"
	r.rules(in)
	r.advice()
	problems := r.Problems
	for _, p := range problems {
		r.Config.Refused = append(r.Config.Refused, p.Parameter)
	}
	slices.Sort(r.Config.Refused)
	r.Config.Refused = slices.Compact(r.Config.Refused)
	r.Problems = nil
	r.Add(problems...)
	return *r
}

// Add adds problems that were found later, in what the parameters were made into.
func (r *Result) Add(problems ...Problem) {
	for _, p := range problems {
		if r.turningOff && ofPool(p.Parameter) {
			r.Warnings = append(r.Warnings, p) // turning off is never held up
		} else {
			r.Problems = append(r.Problems, p)
		}
	}
	r.Problems, r.Warnings = sorted(r.Problems), sorted(r.Warnings)
}

// Hinder adds problems with what only Karpenter needs: turning it off is held up by none of those.
func (r *Result) Hinder(problems ...Problem) {
	if r.turningOff {
		r.Advise(problems...)
		return
	}
	r.Add(problems...)
}

// Advise adds warnings that were found later.
func (r *Result) Advise(warnings ...Problem) { r.Warnings = sorted(append(r.Warnings, warnings...)) }

// MostNames is how many names a rack may have under params/. Of more, only so many are read, and they are one problem: a problem for
// each would cost more to tell than to write.
const MostNames = 200

// known are the parameters that say something, unknown names and secrets being problems.
func (r *Result) known(in Input) map[string]string {
	crowded := len(in.Params) > MostNames
	if crowded {
		r.problem("rack", "", "rack %s has more than %d names under params/, and Sawhorse knows %d parameters; delete those that it does not know (sawhorse params lists the ones it does)",
			short(in.Rack), MostNames, len(Table))
	}
	texts := map[string]string{}
	secure := map[string]bool{}
	for _, name := range in.Secure {
		secure[name] = true
	}
	for name, value := range in.Params {
		switch _, known := Lookup(name); {
		case !known && crowded: // one problem for all of them
		case !known:
			r.problem(name, "", "%s is not a parameter of Sawhorse; %s", short(name), suggestion(name))
		case secure[name]:
			r.problem(name, "", "%s is a SecureString, which Sawhorse does not read because none of its settings is a secret; delete it and write it again with --type String", name)
		case value != "" && value != Unset:
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
			return // read behind all others
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

// read reads a text that was given, or gives the rest of the sentence that refuses it.
func (p Param) read(c *Config, value string) string {
	if !p.matches(value) {
		return fmt.Sprintf("is %s; allowed is %s; %s", short(value), p.Allowed, p.instead(value, p.good))
	}
	if err := p.set(c, value); err != nil {
		return fmt.Sprintf("is %s, %v; allowed is %s; %s", short(value), err, p.Allowed, p.instead(value, p.good))
	}
	return ""
}

// good tells whether a text would be taken.
func (p Param) good(value string) bool { return p.matches(value) && p.set(&Config{}, value) == nil }

func (r *Result) problem(parameter, path, format string, args ...any) {
	r.Problems = append(r.Problems, NewProblem(parameter, path, format, args...))
}

func (r *Result) warning(parameter, path, format string, args ...any) {
	r.Warnings = append(r.Warnings, NewProblem(parameter, path, format, args...))
}

var patterns = func() map[Pattern]*regexp.Regexp {
	compiled := map[Pattern]*regexp.Regexp{}
	for _, p := range Table {
		if compiled[p.Pattern] == nil {
			compiled[p.Pattern] = regexp.MustCompile(p.Pattern.Whole())
		}
	}
	for _, f := range poolFields {
		if compiled[f.Pattern] == nil {
			compiled[f.Pattern] = regexp.MustCompile(f.Pattern.Whole())
		}
	}
	return compiled
}()

func (v Value) matches(value string) bool { return patterns[v.Pattern].MatchString(value) }

var days = regexp.MustCompile(`^([1-9][0-9]{0,4})d$`)

// spaced are signs with white space around them.
var spaced = regexp.MustCompile(`\s*([,=:%])\s*`)

// longest is how long a suggestion may be; who wrote more than that wants the rule and not the text.
const longest = 300

// instead is what to write in place of a refused value: its own meaning in the right spelling where that can be told.
func (v Value) instead(value string, good func(string) bool) string {
	spelled := strings.Join(strings.Fields(value), "")
	switch v.Type {
	case "list":
		spelled = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }), ",")
	case "labels", "taints", "tags", "text": // two words are not one
		spelled = spaced.ReplaceAllString(strings.TrimSpace(value), "$1")
	}
	tries := []string{spelled}
	if lower := strings.ToLower(spelled); v.Type == "bool" || v.Type == "list" || v.Type == "duration" || v.Pattern == volumeTypeValue.Pattern {
		tries = append(tries, lower)
		if lower == "never" {
			tries = append(tries, "Never")
		}
		if m := days.FindStringSubmatch(lower); m != nil && v.Type == "duration" {
			n, _ := strconv.Atoi(m[1])
			tries = append(tries, strconv.Itoa(24*n)+"h")
		}
		if v.Type == "list" && v.Pattern == patternList && strings.Contains(lower, "-") {
			return "names with a dash can be given in karpenter_config, as nodePool.template.spec.requirements"
		}
	}
	for _, try := range tries {
		if try != value && len(try) <= longest && good(try) {
			return "write " + try
		}
	}
	return "write, for example, " + v.Example
}
