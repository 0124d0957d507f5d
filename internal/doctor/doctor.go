// Package doctor evaluates what was observed of a rack's cluster and account. It reports what would keep Karpenter from
// working, now or later, why that matters and what to do about it. What a pass would say, it asks the plan; its own checks are
// about the rest. It makes no calls: package observe does.
package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Severity is the importance of a finding.
type Severity string

// The severities. Unknown means that the check could not be made.
const (
	Fails   Severity = "fails"
	Warns   Severity = "warns"
	Info    Severity = "info"
	Unknown Severity = "unknown"
)

// Severities are all severities with their meaning, the worst first.
var Severities = []struct {
	Severity Severity
	Means    string
}{
	{Fails, "Karpenter lacks something that it needs, or something works against it"},
	{Warns, "it works, and will hurt in a case that is likely"},
	{Info, "good to know before Karpenter moves pods"},
	{Unknown, "nobody could look: the finding says what was refused and how to allow it"},
}

// Finding is one result of a check.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// What describes what was found, Why the reason why it matters, and Do the remedy. Commands are the commands that
	// carry out the remedy, if commands can.
	What     string   `json:"what"`
	Why      string   `json:"why"`
	Do       string   `json:"do"`
	Commands []string `json:"commands,omitempty"`
}

// Report holds the results of all checks.
type Report struct {
	Rack     string    `json:"rack"`
	Cluster  string    `json:"cluster"`
	Findings []Finding `json:"findings"`
	// Good are the checks that were made and found nothing.
	Good []string `json:"good"`
}

// Count returns the number of findings of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Examine makes all checks on the observed state and returns their results. Findings are sorted by severity, then by
// check.
func Examine(o *Observed) Report {
	all := Report{Rack: o.Rack, Cluster: o.Config.ClusterName, Findings: []Finding{}, Good: []string{}}
	by := map[Severity][]Finding{}
	for _, c := range checks {
		if c.name == upgrade && o.Kubernetes == "" {
			continue
		}
		found := c.run(o)
		if len(found) == 0 {
			all.Good = append(all.Good, c.name)
		}
		for _, f := range found {
			f.Check, f.Why = c.name, c.why
			by[f.Severity] = append(by[f.Severity], f)
		}
	}
	for _, s := range Severities {
		all.Findings = append(all.Findings, by[s.Severity]...)
	}
	return all
}

// check is one check of the observed state.
type check struct {
	name string
	// examines describes what the check looks at, and why the reason for the check. The documentation shows both;
	// findings show why.
	examines, why string
	// needs are the sources without which the check cannot be made.
	needs []Source
	// validate adds what it finds.
	validate func(*Observed, *findings)
}

// asPass is the name of the check that asks the plan. It is made with what could be read, so that a bad value is found
// without a cluster too.
const asPass = "parameters"

// ofPass are the sources of a pass, besides the parameters.
var ofPass = []Source{Rules, TheCluster, Associations, Facts, Deployments}

// reads returns what the check reads.
func (c check) reads() []Source {
	if c.name == asPass {
		return slices.Concat(c.needs, ofPass)
	}
	return c.needs
}

// run returns the check's findings. If a source that the check needs is missing, the only finding has the reason.
func (c check) run(o *Observed) (found findings) {
	for _, s := range c.needs {
		if o.Unseen[s] != "" {
			found.unseen(o, s)
			return found
		}
	}
	c.validate(o, &found)
	return found
}

// findings collects the findings of one check.
type findings []Finding

func (f *findings) add(s Severity, what, do string, commands ...string) {
	*f = append(*f, Finding{Severity: s, What: what, Do: do, Commands: commands})
}

// unseen adds that a source could not be read, and the remedy.
func (f *findings) unseen(o *Observed, s Source) {
	do, commands := s.remedy(o)
	f.add(Unknown, o.Unseen[s], do, commands...)
}

// failsIf returns Fails if the condition holds, or else Warns.
func failsIf(condition bool) Severity {
	if condition {
		return Fails
	}
	return Warns
}

// mostNames is the maximum number of names that a finding lists.
const mostNames = 10

// some lists the first names and counts the others.
func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}
