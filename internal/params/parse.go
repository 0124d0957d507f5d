package params

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
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
}

// Result is a Config, and what is wrong with the input. With Problems, the Config is not to be used.
type Result struct {
	Config   Config
	Problems []Problem
	Warnings []Problem
	// Effective are the texts that the Config was made of: what was written, plus what a one-way rule keeps.
	Effective map[string]string
}

// Parse reads every parameter, so that all problems are told and not just the first.
func Parse(in Input) Result {
	r := &Result{Config: Config{Rack: in.Rack}, Effective: map[string]string{}}
	texts := r.written(in)
	r.keepOn(in, texts)
	for _, p := range Table {
		r.read(p, texts)
	}
	if r.Config.ClusterName == "" {
		r.Config.ClusterName = in.Rack
	}
	r.rules(in)
	sortProblems(r.Problems)
	sortProblems(r.Warnings)
	return *r
}

// written are the parameters that say something, unknown names and secrets being problems.
func (r *Result) written(in Input) map[string]string {
	texts := map[string]string{}
	secure := map[string]bool{}
	for _, name := range in.Secure {
		secure[name] = true
	}
	for name, value := range in.Params {
		switch _, known := Lookup(name); {
		case !known:
			r.problem(name, "%s is not a parameter of Sawhorse; %s", short(name), nearest(name))
		case secure[name]:
			r.problem(name, "%s is a SecureString, which Sawhorse does not read because none of its settings is a secret; delete it and write it again with --type String", name)
		case value != "" && value != Unset:
			texts[name] = value
		}
	}
	return texts
}

func (r *Result) read(p Param, texts map[string]string) {
	value, given := texts[p.Name]
	if !given {
		if p.Default == "" {
			return
		}
		value = p.Default
	} else {
		r.Effective[p.Name] = value
	}
	if !p.matches(value) {
		r.problem(p.Name, "%s is %s; allowed is %s; %s", p.Name, short(value), p.Allowed, p.instead(value))
		return
	}
	if err := p.set(&r.Config, value); err != nil {
		r.problem(p.Name, "%s is %s, %v; allowed is %s; %s", p.Name, short(value), err, p.Allowed, p.instead(value))
	}
}

func (r *Result) problem(parameter, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Parameter: parameter, Message: fmt.Sprintf(format, args...)})
}

func (r *Result) warning(parameter, format string, args ...any) {
	r.Warnings = append(r.Warnings, Problem{Parameter: parameter, Message: fmt.Sprintf(format, args...)})
}

var patterns = func() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for _, p := range Table {
		compiled[p.Name] = regexp.MustCompile(`^(?:` + p.Pattern + `)$`)
	}
	return compiled
}()

func (p Param) matches(value string) bool { return patterns[p.Name].MatchString(value) }

var days = regexp.MustCompile(`^([1-9][0-9]{0,4})d$`)

// instead is what to write in place of a refused value: its own meaning in the right spelling where that can be told.
func (p Param) instead(value string) string {
	separator := ""
	if p.Type == "list" {
		separator = ","
	}
	trimmed := strings.Join(strings.FieldsFunc(strings.ToLower(value), func(r rune) bool {
		return unicode.IsSpace(r) || r == ',' && p.Type == "list"
	}), separator)
	if trimmed == "never" {
		trimmed = "Never"
	}
	if m := days.FindStringSubmatch(trimmed); m != nil && p.Type == "duration" {
		n, _ := strconv.Atoi(m[1])
		trimmed = strconv.Itoa(24*n) + "h"
	}
	if p.Type == "list" && p.Pattern == patternList && strings.Contains(trimmed, "-") {
		return "names with a dash can be given in karpenter_config, as nodePool.template.spec.requirements"
	}
	if trimmed != value && p.matches(trimmed) && p.set(&Config{}, trimmed) == nil {
		return "write " + trimmed
	}
	return "write, for example, " + p.Example
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, value string) error {
		*field(c) = value == "true"
		return nil
	}
}

func integer(least int, field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n > math.MaxInt32 || n < int64(least) {
			return fmt.Errorf("which is out of range")
		}
		*field(c) = int(n)
		return nil
	}
}

func list(field func(*Config) *[]string) func(*Config, string) error {
	return func(c *Config, value string) error {
		elements := strings.Split(value, ",")
		sort.Strings(elements)
		for i := 1; i < len(elements); i++ {
			if elements[i] == elements[i-1] {
				return fmt.Errorf("which has %s twice", elements[i])
			}
		}
		*field(c) = elements
		return nil
	}
}

func duration(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		if _, err := time.ParseDuration(value); err != nil {
			return fmt.Errorf("which is longer than 292 years")
		}
		*field(c) = value
		return nil
	}
}

func expiry(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		if value == "Never" {
			*field(c) = value
			return nil
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("which is longer than 292 years")
		}
		if d == 0 {
			return fmt.Errorf("which would delete every node at once")
		}
		*field(c) = value
		return nil
	}
}

func budget(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		digits, percent := strings.CutSuffix(value, "%")
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			return fmt.Errorf("which is out of range")
		}
		if percent && n > 100 {
			return fmt.Errorf("which is more than all nodes")
		}
		// One spelling for each number: Karpenter's CRD takes at most two digits before the percent sign, or 100%.
		*field(c) = strconv.FormatInt(n, 10) + value[len(digits):]
		return nil
	}
}
