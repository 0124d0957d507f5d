// Package doctor judges what was observed of a rack's cluster and account: what would hold Karpenter up, now or later, why that
// matters and what to do about it. It is pure: package observe looks, this one judges.
package doctor

import (
	"fmt"
	"strings"
)

// Severity tells how much a finding matters.
type Severity string

// The severities. Unknown is a check that could not be made.
const (
	Fails   Severity = "fails"
	Warns   Severity = "warns"
	Info    Severity = "info"
	Unknown Severity = "unknown"
)

// Severities are all of them, the worst first, with what they mean.
var Severities = []struct {
	Severity Severity
	Means    string
}{
	{Fails, "Karpenter lacks something that it needs, or something works against it"},
	{Warns, "it works, and will hurt in a case that is likely"},
	{Info, "good to know before Karpenter moves pods"},
	{Unknown, "nobody could look: the finding says what was refused and how to allow it"},
}

// Finding is one thing that was found.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// What was found, why it matters, and what to do; Commands do it, where commands can.
	What     string   `json:"what"`
	Why      string   `json:"why"`
	Do       string   `json:"do"`
	Commands []string `json:"commands,omitempty"`
}

// Report is what all checks found.
type Report struct {
	Rack     string    `json:"rack"`
	Cluster  string    `json:"cluster"`
	Findings []Finding `json:"findings"`
	// Good are the checks that were made and found nothing.
	Good []string `json:"good"`
}

// Count is the number of findings of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Examine makes every check. Findings are in the order of severity, then of the checks.
func Examine(o *Observed) Report {
	all := Report{Rack: o.Rack, Cluster: o.Config.ClusterName, Findings: []Finding{}, Good: []string{}}
	by := map[Severity][]Finding{}
	for _, c := range checks {
		found := c.make(o)
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

// check is one look at what was observed.
type check struct {
	name string
	// looks is what it looks at, why why that matters: in findings and in the documentation.
	looks, why string
	// needs are the sources without which it cannot be made.
	needs []Source
	judge func(*Observed) []Finding
}

// make makes the check, or tells why it cannot be made.
func (c check) make(o *Observed) []Finding {
	for _, s := range c.needs {
		if reason := o.Unseen[s]; reason != "" {
			do, commands := s.remedy(o)
			return []Finding{{Severity: Unknown, What: reason, Do: do, Commands: commands}}
		}
	}
	return c.judge(o)
}

func finding(s Severity, what, do string, commands ...string) Finding {
	return Finding{Severity: s, What: what, Do: do, Commands: commands}
}

// shown is how many names a finding lists.
const shown = 10

// some lists the first names, and counts the others.
func some(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
