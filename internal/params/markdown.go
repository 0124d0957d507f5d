package params

import (
	"fmt"
	"strings"
)

// Markdown is the documentation of all parameters; docs/parameters.md holds it.
func Markdown() string {
	var out strings.Builder
	out.WriteString("# Parameters\n\nWritten by `sawhorse params`. A parameter that is absent, or whose value is the word `unset`, has its default.\n")
	for _, section := range []Section{SectionRack, SectionEnabling, SectionWorkload} {
		fmt.Fprintf(&out, "\n## %s\n\n| name | type | default | allowed | meaning |\n|---|---|---|---|---|\n", section)
		for _, p := range Table {
			if p.Section != section {
				continue
			}
			absent := p.Absent
			if p.Default != "" {
				absent = "`" + p.Default + "`"
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", p.Name, p.Type, absent, p.Allowed, p.Description)
		}
	}
	return out.String()
}
