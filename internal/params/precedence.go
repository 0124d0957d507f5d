package params

import (
	"fmt"
	"strings"
)

// Layered is a setting of a pool that each layer can have.
type Layered struct {
	Setting string
	// Object is the manifest that has the setting, and Path where.
	Object string
	Path   []string
	// BuiltIn is what is there if no layer sets it.
	BuiltIn string
	// Layers are those over the built-in defaults, each before the ones in front of it: karpenter_defaults_config, the parameter
	// or field, and the pool's own config.
	Layers [3]Layer
}

// Layer is one way to write a setting: a parameter with its text or, in an entry of additional_karpenter_nodepools_config, a
// member of the entry. Value is what it comes to.
type Layer struct{ Parameter, Text, Value string }

// Combination is a choice of the layers that set something, and which layer's value the pool then has.
type Combination struct {
	Sets [3]bool
	// InForce is the number of the layer, or -1 for the built-in default.
	InForce int
}

// Combinations are all choices of layers.
var Combinations = []Combination{
	{[3]bool{false, false, false}, -1}, {[3]bool{true, false, false}, 0}, {[3]bool{false, true, false}, 1}, {[3]bool{true, true, false}, 1},
	{[3]bool{false, false, true}, 2}, {[3]bool{true, false, true}, 2}, {[3]bool{false, true, true}, 2}, {[3]bool{true, true, true}, 2},
}

func capacityTypes(capacity string) string {
	return `{"nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["` + capacity +
		`"]}]}}}}`
}

// Precedence has a setting of each kind: one that a config replaces, a requirement, a label, a key of disruption, and the AMIs.
var Precedence = []Layered{
	{"expiry of the workload pool's nodes", "NodePool/workload", []string{"template", "spec", "expireAfter"}, "720h", [3]Layer{
		{ParamDefaults, `{"nodePool":{"template":{"spec":{"expireAfter":"100h"}}}}`, "100h"},
		{"karpenter_node_expiry", "200h", "200h"},
		{ParamOverride, `{"nodePool":{"template":{"spec":{"expireAfter":"300h"}}}}`, "300h"},
	}},
	{"capacity type of the build pool", "NodePool/build", []string{"template", "spec", "requirements", "0", "values", "0"}, "on-demand",
		[3]Layer{
			{ParamDefaults, capacityTypes("spot"), "spot"},
			{"karpenter_build_capacity_types", "on-demand", "on-demand"},
			{ParamBuildConfig, capacityTypes("reserved"), "reserved"},
		}},
	{"label `team` of an entry's nodes", "NodePool/a", []string{"template", "metadata", "labels", "team"}, "", [3]Layer{
		{ParamDefaults, `{"nodePool":{"template":{"metadata":{"labels":{"team":"all"}}}}}`, "all"},
		{ParamAdditional, `"labels":"team=one"`, "one"},
		{ParamAdditional, `"nodePool":{"template":{"metadata":{"labels":{"team":"own"}}}}`, "own"},
	}},
	{"time until an entry's nodes are consolidated", "NodePool/a", []string{"disruption", "consolidateAfter"}, "30s", [3]Layer{
		{ParamDefaults, `{"nodePool":{"disruption":{"consolidateAfter":"1m"}}}`, "1m"},
		{ParamAdditional, `"consolidate_after":"2m"`, "2m"},
		{ParamAdditional, `"nodePool":{"disruption":{"consolidateAfter":"3m"}}`, "3m"},
	}},
	{"AMIs of the build pool", "EC2NodeClass/build", []string{"amiSelectorTerms", "0", "alias"}, "al2023@latest", [3]Layer{
		{ParamDefaults, `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260701"}]}}`, "al2023@v20260701"},
		{ParamAlias, "al2023@v20260801", "al2023@v20260801"},
		{ParamBuildConfig, `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260901"}]}}`, "al2023@v20260901"},
	}},
}

// precedence writes what each combination of layers comes to.
func precedence(out *strings.Builder) {
	out.WriteString("\n## The four layers\n\n" +
		"Built-in defaults; `" + ParamDefaults + "`; parameters, or the fields of an entry; the pool's own " +
		"config (`" + ParamOverride + "`, `" + ParamBuildConfig + "`, or `nodePool` and `ec2NodeClass` of an entry). Each comes over the\n" +
		"ones before it, and a parameter that is absent sets nothing. Each line is one combination of what is written, and what the\n" +
		"pool then has; `sawhorse render --explain` says the same of each field of a rack.\n\n" +
		"| setting | " + ParamDefaults + " | parameter or field | own config | in force |\n|---|---|---|---|---|\n")
	for _, l := range Precedence {
		for _, c := range Combinations {
			fmt.Fprintf(out, "| %s |", l.Setting)
			for i, layer := range l.Layers {
				cell := " "
				if c.Sets[i] {
					cell = " `" + layer.Value + "` "
				}
				out.WriteString(cell + "|")
			}
			inForce := l.BuiltIn
			if c.InForce >= 0 {
				inForce = l.Layers[c.InForce].Value
			}
			if inForce == "" {
				inForce = "none"
			} else {
				inForce = "`" + inForce + "`"
			}
			fmt.Fprintf(out, " %s |\n", inForce)
		}
	}
}
