package doctor

import (
	"fmt"
	"strings"
)

// Markdown returns the documentation's tables of severities and of checks. docs/doctor.md contains them.
func Markdown() string {
	var out strings.Builder
	out.WriteString("| severity | means |\n|---|---|\n")
	for _, s := range Severities {
		fmt.Fprintf(&out, "| %s | %s |\n", s.Severity, s.Means)
	}
	out.WriteString("\n| check | looks at | why | reads |\n|---|---|---|---|\n")
	for _, c := range checks {
		var needs []string
		for _, s := range c.needs {
			needs = append(needs, string(s))
		}
		if len(needs) == 0 {
			needs = []string{string(TheCluster)}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", c.name, c.looks, c.why, strings.Join(needs, ", "))
	}
	return out.String()
}
