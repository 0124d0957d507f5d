package nodes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// If every system node group has a taint that Karpenter's controller does not tolerate, the controller has no node to run on. One group
// without such a taint is enough. A taint may be laid on them at any time, so it is only warned of where the tolerations are in force.
func TestClosed(t *testing.T) {
	group := func(name, taint, effect string) plan.NodeGroup {
		g := plan.NodeGroup{Name: name, CapacityType: "ON_DEMAND"}
		if taint != "" {
			g.Taints = []plan.NodeGroupTaint{{Key: taint, Value: "x", Effect: effect}}
		}
		return g
	}
	leaving := group("second", "", "")
	leaving.Status = "DELETING"
	own, critical := group("system", "own", "NO_SCHEDULE"), group("system", "CriticalAddonsOnly", "NO_SCHEDULE")
	const only = `{"key":"own","operator":"Exists"}`
	had := func(tolerations string) *plan.Plan {
		parsed := params.Parse(params.Input{Rack: "demo", Params: controllerOf(tolerations)})
		made := plan.Plan{Goal: plan.GoalKarpenter}
		made.Controller.Release = plan.Release{Version: plan.Target(parsed.Config, plan.Facts{}).Version, Values: parsed.Config.ControllerValues}
		return &made
	}
	before := had("")
	before.Controller.Release.Version = "1.9.0"
	for what, c := range map[string]struct {
		groups      []plan.NodeGroup
		tolerations string
		inForce     *plan.Plan
		problem     string
		warning     string
	}{
		"the only one":                     {[]plan.NodeGroup{own}, "", nil, "system (own)", ""},
		"by NoExecute":                     {[]plan.NodeGroup{group("system", "own", "NO_EXECUTE")}, "", nil, "system (own)", ""},
		"both":                             {[]plan.NodeGroup{group("second", "b", "NO_SCHEDULE"), own}, "", nil, "second (b), system (own)", ""},
		"the other one is being deleted":   {[]plan.NodeGroup{leaving, own}, "", nil, "system (own)", ""},
		"one of two":                       {[]plan.NodeGroup{group("second", "", ""), own}, "", nil, "", ""},
		"a taint that the chart tolerates": {[]plan.NodeGroup{critical}, "", nil, "", ""},
		"a preference":                     {[]plan.NodeGroup{group("system", "own", "PREFER_NO_SCHEDULE")}, "", nil, "", ""},
		"its tolerations":                  {[]plan.NodeGroup{own}, only, nil, "", ""},
		"another value":                    {[]plan.NodeGroup{own}, `{"key":"own","value":"y"}`, nil, "system (own)", ""},
		"another effect":                   {[]plan.NodeGroup{own}, `{"key":"own","value":"x","effect":"NoExecute"}`, nil, "system (own)", ""},
		"in place of the chart's":          {[]plan.NodeGroup{critical}, only, nil, "system (CriticalAddonsOnly)", ""},
		"a taint laid on later":            {[]plan.NodeGroup{own}, "", had(""), "", "system (own)"},
		"another version of Karpenter":     {[]plan.NodeGroup{own}, "", before, "system (own)", ""},
		"tolerations taken away later":     {[]plan.NodeGroup{own}, "", had(only), "system (own)", ""},
		"tolerations that were in force":   {[]plan.NodeGroup{critical}, only, had(only), "", "system (CriticalAddonsOnly)"},
		"turned on again":                  {[]plan.NodeGroup{own}, "", &plan.Plan{Goal: plan.GoalAccess}, "system (own)", ""},
	} {
		texts := controllerOf(c.tolerations)
		facts := plan.Facts{Offline: true, NodeGroups: c.groups}
		problems, warnings := Compile(params.Parse(params.Input{Rack: "demo", Params: texts}).Config, facts).Closed(facts, c.inForce)
		says := func(got []params.Problem, want string) {
			t.Helper()
			if (want != "") != (len(got) > 0) || want != "" && !strings.Contains(got[0].Message, "does not tolerate: "+want) {
				t.Errorf("%s: %v, want %q", what, got, want)
			}
		}
		says(problems, c.problem)
		says(warnings, c.warning)
		if off, advice := compiledOff(texts, facts).Closed(facts, c.inForce); len(off)+len(advice) > 0 {
			t.Errorf("%s: without Karpenter: %v %v", what, off, advice)
		}
	}
}

// controllerOf returns parameters with tolerations of the controller, "" for none.
func controllerOf(tolerations string) map[string]string {
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "system_node_groups": "system,second"}
	if tolerations != "" {
		texts[params.ParamController] = fmt.Sprintf(`{"tolerations":[%s]}`, tolerations)
	}
	return texts
}

// Karpenter tells only its log of user data that it cannot read.
func TestUserDataThatKarpenterCannotRead(t *testing.T) {
	const (
		toml     = "[settings.kernel]\nlockdown = \"integrity\"\n"
		script   = "#!/bin/sh\ntrue\n"
		config   = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
		unended  = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript\n\n" + script
		archive  = unended + "--B--\n"
		plain    = "MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n" + script
		notTOML  = "is no TOML"
		notMIME  = "is no MIME archive"
		bottle   = "bottlerocket@v1.44.0"
		standard = "al2023@v20260828"
	)
	for _, c := range []struct{ family, alias, userData, want string }{
		{"", bottle, toml, ""},
		{"", bottle, config, notTOML},
		{"", bottle, script, notTOML},
		{"", bottle, "\n" + script, notTOML},
		{"", bottle, archive, notTOML},
		{"", bottle, "[settings.kubernetes]\nmax-pods = \"many\"", notTOML},
		{"", standard, script, ""},
		{"", standard, config, ""},
		{"", standard, archive, ""},
		{"", standard, "\n" + archive, notMIME}, // the headers of which then are none
		{"", standard, unended, notMIME},
		{"", standard, plain, notMIME},
		{"AL2", "", plain, notMIME},
		{"Custom", standard, plain, ""}, // it stays as it is
	} {
		class := map[string]any{"userData": c.userData, "amiSelectorTerms": []any{map[string]any{"id": "ami-0123456789abcdef0"}}}
		if c.alias != "" {
			class["amiSelectorTerms"] = []any{map[string]any{"alias": c.alias}}
		}
		if c.family != "" {
			class["amiFamily"] = c.family
		}
		texts := controllerOf("")
		texts[params.ParamOverride] = string(canonical.JSON(map[string]any{"ec2NodeClass": class}))
		parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
		problems := append(parsed.Problems, Compile(parsed.Config, plan.Facts{}).Check()...)
		if (c.want == "") != (len(problems) == 0) || c.want != "" &&
			(problems[0].Path != "ec2NodeClass.userData" || !strings.Contains(problems[0].Message, c.want)) {
			t.Errorf("%s %s %q: %v, want %q", c.family, c.alias, c.userData, problems, c.want)
		}
	}
}
