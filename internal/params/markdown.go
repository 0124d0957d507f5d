package params

import (
	"cmp"
	"fmt"
	"strings"
)

// Markdown returns the documentation of all parameters, which is the content of docs/parameters.md.
func Markdown() string {
	var out strings.Builder
	out.WriteString("# Parameters\n\nWritten by `sawhorse params`. A parameter that is absent, or whose value is one of the words " +
		"`unset` and `default`, has its default. The order of a list has no effect, except for instance types, and an element that is repeated " +
		"counts once. In a pool's JSON an empty text is an absent field.\n")
	for _, section := range Sections {
		fmt.Fprintf(&out, "\n## %s\n\n| name | type | default | allowed | meaning |\n|---|---|---|---|---|\n", section)
		for _, p := range Table {
			if p.Section == section {
				row(&out, p.Name, p.Value, p.Default, p.Absent, p.Description)
			}
		}
		if section == SectionController {
			chartValues(&out)
		}
		if section != SectionAdditional {
			continue
		}
		fmt.Fprintf(&out, "\nThe fields of a pool:\n\n| field | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
		for _, f := range poolFields {
			absent := "none"
			switch f.Name {
			case "name":
				absent = "required"
			case "instance_families", "instance_sizes":
				absent = "all"
			case "volume_iops", "volume_throughput":
				absent = "the workload's, for gp3"
			}
			row(&out, f.Name, f.Value, f.Default, absent, f.Description)
		}
		out.WriteString("\nThe fields `nodePool` and `ec2NodeClass` are objects, as in `" + ParamOverride + "`, of this pool alone.\n")
	}
	precedence(&out)
	return out.String()
}

func row(out *strings.Builder, name string, v Value, standing, absent, meaning string) {
	if standing != "" {
		absent = "`" + standing + "`"
	}
	fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", name, v.Type, absent, v.Allowed, meaning)
}

// chartValues writes which values of the controller's chart may be set, and why others may not.
func chartValues(out *strings.Builder) {
	out.WriteString("\nThe values of the chart that `" + ParamController + "` may set, where the version has them:\n\n" +
		"| value | allowed |\n|---|---|\n")
	for _, v := range ChartValues {
		if allowed := cmp.Or(v.Within, strings.Join(v.Words, ", ")); v.Refused == "" {
			fmt.Fprintf(out, "| `%s` | %s |\n", v.Path, allowed)
		}
	}
	out.WriteString("\nAll others are rejected, also those of a version that is newer than Sawhorse:\n\n| value | why |\n|---|---|\n")
	for _, v := range ChartValues {
		if v.Refused != "" {
			fmt.Fprintf(out, "| `%s` | %s |\n", v.Path, v.Refused)
		}
	}
}
