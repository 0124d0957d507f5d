package nodes

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// having returns the facts of a cluster for which the AMIs of an alias were looked up: all but those of the given kinds are there.
func having(kubernetes, alias string, absent ...string) plan.Facts {
	facts := plan.Facts{Cluster: &plan.ClusterFacts{Version: kubernetes}, AliasImages: map[string]string{}}
	for _, image := range plan.BehindAlias(alias, kubernetes) {
		facts.AliasImages[image.Parameter] = "ami-0123456789abcdef0"
	}
	for _, image := range plan.BehindAlias(alias, kubernetes) {
		for _, kind := range absent {
			if kind == image.Arch+" ("+image.Variant+")" {
				facts.AliasImages[image.Parameter] = ""
			}
		}
	}
	return facts
}

// An AMI is needed for each architecture and variant that a pool's requirements allow, and for no other.
func TestAliasesWithoutAnAMI(t *testing.T) {
	const alias, own = "al2023@v20260828", `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260828"}]}}`
	families := func(arch, families string) map[string]string {
		return map[string]string{params.ParamAlias: alias, "karpenter_arch": arch, "karpenter_instance_families": families}
	}
	device := func(requirement string) map[string]string {
		return map[string]string{params.ParamAlias: alias, params.ParamOverride: `{"nodePool":{"template":{"spec":{"requirements":[` +
			requirement + `]}}}}`}
	}
	for _, c := range []struct {
		written      map[string]string
		absent, want string // parameter, path and kind, or "" for none
	}{
		{families("arm64", "m7g"), "arm64 (standard)", "karpenter_ami_alias  arm64 (standard) under Kubernetes 1.35"},
		{families("arm64", "m7g"), "amd64 (standard)", ""},
		{families("amd64,arm64", "m7i,m7g"), "arm64 (standard)", "karpenter_ami_alias  arm64 (standard)"},
		{families("amd64", "m7i"), "amd64 (nvidia)", ""},
		{families("amd64", "g5"), "amd64 (nvidia)", "karpenter_ami_alias  amd64 (nvidia)"},
		{families("arm64", "g5g"), "arm64 (nvidia)", "karpenter_ami_alias  arm64 (nvidia)"},
		{families("amd64", "inf2"), "amd64 (neuron)", "karpenter_ami_alias  amd64 (neuron)"},
		{families("amd64", "inf2"), "amd64 (standard)", ""},
		{map[string]string{params.ParamAlias: alias}, "amd64 (neuron)", "karpenter_ami_alias  amd64 (neuron)"},
		{device(`{"key":"karpenter.k8s.aws/instance-gpu-count","operator":"DoesNotExist"}`), "amd64 (nvidia)", ""},
		{device(`{"key":"karpenter.k8s.aws/instance-gpu-name","operator":"In","values":["t4"]}`), "amd64 (standard)", ""},
		{device(`{"key":"karpenter.k8s.aws/instance-accelerator-count","operator":"Exists"}`), "amd64 (nvidia)", ""},
		{map[string]string{params.ParamDefaults: own}, "amd64 (standard)",
			"karpenter_defaults_config ec2NodeClass.amiSelectorTerms[0].alias amd64 (standard)"},
		{map[string]string{params.ParamAdditional: `[{"name":"a","arch":"arm64",` + own[1:] + `]`}, "arm64 (standard)",
			"additional_karpenter_nodepools_config [0].ec2NodeClass.amiSelectorTerms[0].alias arm64 (standard)"},
		{map[string]string{params.ParamAlias: alias, "build_node_enabled": "true"}, "amd64 (standard)", "karpenter_ami_alias  amd64 (standard)"},
	} {
		c.written["karpenter_auth_mode"], c.written["karpenter_enabled"] = "true", "true"
		parsed := params.Parse(params.Input{Rack: "demo", Params: c.written})
		facts := having("1.35", alias, c.absent)
		problems, warnings := Compile(parsed.Config, facts).Aliases(facts, nil)
		var got string
		for _, p := range problems {
			got += p.Parameter + " " + p.Path + " " + p.Message
		}
		words := strings.SplitN(c.want, " ", 3)
		if len(warnings) > 0 || (c.want == "") != (got == "") || c.want != "" && !strings.HasPrefix(got, words[0]+" "+words[1]+" ") ||
			c.want != "" && (!strings.Contains(got, words[2]) || !strings.Contains(got, alias) || len(problems) > 1) {
			t.Errorf("%v without %s: %q, want %q", c.written, c.absent, got, c.want)
		}
		if problems, _ := Compile(parsed.Config, plan.Facts{}).Aliases(plan.Facts{}, nil); len(problems) > 0 {
			t.Errorf("nothing was looked up: %v", problems)
		}
	}
}

// An alias by age is the release that was found. Where there is none it is refused, and where nobody has looked the newest stands for it.
func TestAgedAliases(t *testing.T) {
	const aged = "al2023@latest-7d"
	config := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", params.ParamAlias: aged, "karpenter_node_os": "al2023",
	}}).Config
	for _, c := range []struct {
		found             map[string]string
		is                string
		problems, warning string
	}{
		{map[string]string{aged: "al2023@v20260821"}, "al2023@v20260821", "", ""},
		{map[string]string{aged: ""}, "al2023@latest", "AWS has no release of al2023 for Kubernetes 1.35", ""},
		{nil, "al2023@latest", "", "names a release by its age, al2023@latest-7d"},
	} {
		facts := plan.Facts{Cluster: &plan.ClusterFacts{Version: "1.35"}, Aged: c.found}
		compiled := Compile(config, facts)
		problems, warnings := compiled.Aliases(facts, nil)
		for got, want := range map[*[]params.Problem]string{&problems: c.problems, &warnings: c.warning} {
			if (want == "") != (len(*got) == 0) || want != "" && !strings.Contains((*got)[0].Message, want) {
				t.Errorf("%v: %v, want %q", c.found, *got, want)
			}
		}
		for _, object := range compiled.Objects() {
			if object["kind"] == "EC2NodeClass" {
				term := object["spec"].(map[string]any)["amiSelectorTerms"].([]any)[0].(map[string]any)
				if term["alias"] != c.is {
					t.Errorf("%v: %v, want %s", c.found, term, c.is)
				}
			}
		}
	}
}

// A release that an age names, and that lacks an image, is refused for a new pool, and for nodes that a pool did not have. One that is in
// force keeps what it has: nobody has written the release.
func TestAnAgedAliasWithoutAnAMI(t *testing.T) {
	const aged, release = "al2023@latest-7d", "al2023@v20260821"
	families := func(families string) params.Config {
		return params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
			params.ParamAlias: aged, "karpenter_arch": "amd64", "karpenter_instance_families": families}}).Config
	}
	facts := having("1.35", release, "amd64 (neuron)")
	facts.Aged = map[string]string{aged: "al2023@v20260814"}
	inForce := func(of string) *plan.Plan {
		return &plan.Plan{NodePools: plan.NodePools{Objects: Compile(families(of), facts).Objects()}}
	}
	both, one := inForce("m7i,inf2"), inForce("m7i")
	facts.Aged[aged] = release
	for _, c := range []struct {
		inForce *plan.Plan
		warns   bool
	}{{nil, false}, {both, true}, {one, false}} {
		problems, warnings := Compile(families("m7i,inf2"), facts).Aliases(facts, c.inForce)
		if all := append(problems, warnings...); len(all) != 1 || len(warnings) == 1 != c.warns ||
			!strings.Contains(all[0].Message, `is "al2023@latest-7d", now al2023@v20260821, of which AWS has no AMI for amd64 (neuron)`) {
			t.Errorf("problems %v, warnings %v", problems, warnings)
		}
	}
}

// What is in force is a warning after an upgrade of the cluster, but not for nodes that the pool did not have before.
func TestAliasesInForce(t *testing.T) {
	const alias = "al2023@v20260828"
	parsed := func(arch string) params.Config {
		return params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
			params.ParamAlias: alias, "karpenter_arch": arch, "karpenter_instance_families": "m7i,m7g"}}).Config
	}
	before := Compile(parsed("amd64"), having("1.35", alias))
	inForce := &plan.Plan{NodePools: plan.NodePools{Objects: before.Objects()}}
	facts := having("1.36", alias, "amd64 (standard)", "arm64 (standard)")
	for arch, warned := range map[string]bool{"amd64": true, "amd64,arm64": false} {
		problems, warnings := Compile(parsed(arch), facts).Aliases(facts, inForce)
		if warned != (len(warnings) == 1) || warned != (len(problems) == 0) {
			t.Errorf("%s: problems %v, warnings %v", arch, problems, warnings)
		}
	}
}
