package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Compares the complete output, because CI jobs read it with many different tools. Empty lists must be lists too.
func TestCheckPrints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, input string
		code        int
		want        string
	}{
		{"accepted", on(""), 0, `{
  "accepted": true,
  "problems": [],
  "warnings": []
}
`},
		{"refused", on(`"karpenter_arch":"x86"`), 1, `{
  "accepted": false,
  "problems": [
    {
      "parameter": "karpenter_arch",
      "message": "karpenter_arch is \"x86\"; allowed is amd64, arm64, or both with a comma; did you mean amd64?"
    }
  ],
  "warnings": []
}
`},
		{"refused within JSON", on(`"karpenter_config":"{\"nodePool\":{\"wait\":1}}"`), 1, `{
  "accepted": false,
  "problems": [
    {
      "parameter": "karpenter_config",
      "path": "nodePool.wait",
      "message": "nodePool.wait is no field of Karpenter's NodePool; allowed are disruption, limits, replicas, template, weight"
    }
  ],
  "warnings": []
}
`},
		{"accepted with a warning", on(`"karpenter_disruption_budget_nodes":"0"`), 0, `{
  "accepted": true,
  "problems": [],
  "warnings": [
    {
      "parameter": "karpenter_disruption_budget_nodes",
      "message": "a disruption budget of 0 without a schedule never lets Karpenter consolidate or replace a node of its own accord"
    }
  ]
}
`},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := sawhorse(t, c.input, "check", "-").ends(t, c.code).stdout; got != c.want {
				t.Errorf("stdin: %s\nwant %s", got, c.want)
			}
			if got := sawhorse(t, "", "check", file(t, c.input)).ends(t, c.code).stdout; got != c.want {
				t.Errorf("file: %s\nwant %s", got, c.want)
			}
		})
	}
}

// -o text prints a line for each problem and warning, and the result.
func TestCheckPrintsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input string
		code  int
		want  string
	}{
		{on(""), 0, "accepted\n"},
		{on(`"karpenter_disruption_budget_nodes":"0"`), 0,
			"warning  karpenter_disruption_budget_nodes: a disruption budget of 0 without a schedule never lets Karpenter " +
				"consolidate or replace a node of its own accord\naccepted\n"},
		{on(`"karpenter_arch":"x86"`), 1,
			"problem  karpenter_arch: karpenter_arch is \"x86\"; allowed is amd64, arm64, or both with a comma; did you mean amd64?\nrefused\n"},
	} {
		if got := sawhorse(t, c.input, "check", "-o", "text", "-").ends(t, c.code).stdout; got != c.want {
			t.Errorf("%s: %s", c.input, got)
		}
	}
}

// says compares problems or warnings with "parameter path: part of the message".
func says(t *testing.T, what string, got []params.Problem, want []string) {
	t.Helper()
	matches := func(p params.Problem, want string) bool {
		place, part, _ := strings.Cut(want, ": ")
		return strings.TrimSpace(p.Parameter+" "+p.Path) == place && strings.Contains(p.Message, part)
	}
	if !slices.EqualFunc(got, want, matches) {
		t.Errorf("%s:\n%s\nwant\n%s", what, listed(got), strings.Join(want, "\n"))
	}
}

// listed returns problems, one per line.
func listed(problems []params.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, line(p))
	}
	return strings.Join(all, "\n")
}

// checkCase is an input, and the expected result of check.
type checkCase struct {
	what, input        string
	problems, warnings []string
}

// run judges the input as the command does, in this process: TestCheckPrints runs the command.
func (c checkCase) run(t *testing.T) {
	t.Helper()
	in, err := readInput([]byte(c.input))
	if err != nil {
		t.Fatal(err)
	}
	made, accepted := check(in)
	got, _ := made.(answer)
	if accepted != (len(c.problems) == 0) || got.Accepted != accepted || got.Problems == nil || got.Warnings == nil {
		t.Errorf("%+v", got)
	}
	says(t, "problems", got.Problems, c.problems)
	says(t, "warnings", got.Warnings, c.warnings)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const was = `"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true"}`
	for _, c := range []checkCase{
		{what: "only a rack", input: `{"rack":"demo"}`},
		{what: "everything optional is null", input: `{"rack":"demo","params":null,"previous":null,"observed":null}`},
		{what: "an empty text means absent", input: on(`"karpenter_cpu_limit":"","karpenter_config":"","tags":"unset"`)},
		{what: "an unknown name means nothing, even with an empty text", input: on(`"karpenter_cpu_limits":""`),
			problems: []string{"karpenter_cpu_limits: did you mean karpenter_cpu_limit?"}},
		{what: "all problems, in order of their parameters",
			input: on(`"paused":"yes","karpenter_cpu_limit":"0","cluster_nam":"x","tags":"Name=x"`),
			problems: []string{"cluster_nam: did you mean cluster_name?", "karpenter_cpu_limit: is \"0\"", "paused: is \"yes\"",
				"tags: the tag \"Name\" is reserved"}},

		{what: "a rack's name", input: `{"rack":"Demo","params":{}}`, problems: []string{"rack: the rack's name is \"Demo\""}},
		{what: "a rack's name that ends in a dash", input: `{"rack":"demo-"}`, problems: []string{"rack: no dash at the end"}},
		{what: "a rack's name that is too long for AWS", input: strings.Replace(on(""), "demo", strings.Repeat("d", 60), 1),
			problems: []string{"rack: use a shorter name, and sawhorse register RACK --cluster NAME for a cluster of another name"}},

		{what: "a rule between two parameters stands under the one to change", input: `{"rack":"demo","params":{"karpenter_enabled":"true"}}`,
			problems: []string{"karpenter_enabled: set karpenter_auth_mode to true too"}},
		{what: "auth mode is one-way",
			input:    `{"rack":"demo","params":{"karpenter_auth_mode":"false"},"previous":{"karpenter_auth_mode":"true"}}`,
			problems: []string{"karpenter_auth_mode: EKS cannot go back"}},
		{what: "auth mode was never on",
			input: `{"rack":"demo","params":{"karpenter_auth_mode":"false"},"previous":{"karpenter_auth_mode":"false"}}`},
		{what: "what was on stays on", input: `{"rack":"demo","params":{"paused":"false"},` + was + `}`,
			warnings: []string{"karpenter_auth_mode: counts as true", "karpenter_enabled: counts as true"}},
		{what: "a new rack has nothing that stays on", input: `{"rack":"demo","params":{},"previous":{}}`},
		{what: "another cluster", input: onWith(`"cluster_name":"east"`, `"previous":{"karpenter_auth_mode":"true","cluster_name":"west"}`),
			problems: []string{"cluster_name: write west"}},
		{what: "another cluster than the one of the rack's name", input: onWith(`"cluster_name":"east"`, was),
			problems: []string{"cluster_name: write demo"}},
		{what: "turning off is not held up",
			input:    `{"rack":"demo","params":{"karpenter_auth_mode":"true","karpenter_enabled":"false","karpenter_cpu_limit":"0"},` + was + `}`,
			warnings: []string{"karpenter_cpu_limit: is \"0\""}},
		{what: "while off, pools are validated", input: `{"rack":"demo","params":{"karpenter_enabled":"false","karpenter_cpu_limit":"0"}}`,
			problems: []string{"karpenter_cpu_limit: is \"0\""}},
		{what: "what was applied is not validated",
			input: onWith("", `"previous":{"karpenter_auth_mode":"true","karpenter_cpu_limit":"lots","gone":"x"}`)},
		{what: "an object in S3", input: on(`"karpenter_config":"s3://bucket/key.json"`),
			warnings: []string{"karpenter_config: which only a pass reads"}},
	} {
		t.Run(c.what, c.run)
	}
}

func TestCheckOfWhatWasObserved(t *testing.T) {
	t.Parallel()
	// EKS's answer, with more fields than are read.
	const system = `{"nodegroupName":"system","nodegroupArn":"arn:aws:eks:eu-central-1:123456789012:nodegroup/demo/system/x",` +
		`"clusterName":"demo","version":"1.35",
		"createdAt":"2026-01-02T03:04:05+00:00","status":"ACTIVE","capacityType":"%s",
		"scalingConfig":{"minSize":2,"maxSize":4,"desiredSize":2},"instanceTypes":["t3.large"],
		"subnets":["subnet-1"],"amiType":"AL2023_x86_64_STANDARD","nodeRole":"arn:aws:iam::123456789012:role/nodes","labels":{},"diskSize":20,
		"resources":{"autoScalingGroups":[{"name":"eks-system"}],"remoteAccessSecurityGroup":"sg-1"},"health":{"issues":[]},
		"updateConfig":{"maxUnavailable":1},"nodeRepairConfig":{"enabled":false},"tags":{}}`
	const extra = `{"nodegroupName":"gpu","labels":{"convox.io/label":"gpu"},"taints":[%s],"scalingConfig":{"minSize":0,"maxSize":3,` +
		`"desiredSize":0},"someday":{"eks":["has more"]}}`
	facts := func(groups ...string) string { return `"observed":{"nodegroups":[` + strings.Join(groups, ",") + `]}` }
	good := fmt.Sprintf(system, "ON_DEMAND")
	for _, c := range []checkCase{
		{what: "an on-demand system group", input: onWith("", facts(good))},
		{what: "as aws eks describe-nodegroup prints it", input: onWith("", facts(`{"nodegroup":`+good+`}`))},
		{what: "a SPOT system group", input: onWith("", facts(fmt.Sprintf(system, "SPOT"))), problems: []string{"system_node_groups: SPOT"}},
		{what: "a SPOT system group in its envelope", input: onWith("", facts(`{"nodegroup":`+fmt.Sprintf(system, "SPOT")+`}`)),
			problems: []string{"system_node_groups: SPOT"}},
		{what: "a SPOT system group without Karpenter",
			input: `{"rack":"demo","params":{"karpenter_auth_mode":"true"},` + facts(fmt.Sprintf(system, "SPOT")) + `}`},
		{what: "an additional group that is not dedicated", input: onWith("", facts(good, fmt.Sprintf(extra, ""))),
			problems: []string{"karpenter_enabled: not dedicated: gpu"}},
		{what: "a taint that only prefers is not dedicated",
			input:    onWith("", facts(good, fmt.Sprintf(extra, `{"key":"a","effect":"PREFER_NO_SCHEDULE"}`))),
			problems: []string{"karpenter_enabled: not dedicated: gpu"}},
		{what: "an additional group that is dedicated",
			input: onWith("", facts(good, fmt.Sprintf(extra, `{"key":"a","value":"b","effect":"NO_SCHEDULE"}`)))},
		{what: "names of groups", input: onWith(`"build_node_groups":"builds"`, facts(good)),
			problems: []string{"build_node_groups: it has system"}},
		{what: "names of groups that nobody has looked for", input: on(`"build_node_groups":"builds"`)},
		{what: "a version, and nothing else of the cluster", input: onWith("", `"observed":{"cluster":{"version":"1.36"}}`),
			problems: []string{"cluster_name: runs Kubernetes 1.36"}},
		{what: "a version that Karpenter in force does not list", input: onWith("", wasOn+`,"observed":{"cluster":{"version":"1.36"}}`),
			warnings: []string{"cluster_name: write karpenter_version 1.14.3, which lists it"}},
		{what: "a version for that Kubernetes",
			input: onWith(`"karpenter_version":"1.14.3"`, wasOn+`,"observed":{"cluster":{"version":"1.36"}}`)},
		{what: "a limit below what runs",
			input:    onWith(`"karpenter_cpu_limit":"64"`, `"observed":{"pools":{"workload":{"nodes":12,"cpu":"96"}}}`),
			warnings: []string{"karpenter_cpu_limit: may have 64 of cpu, and 96 runs now on 12 nodes"}},
		{what: "a cluster that is being deleted", input: onWith("", `"observed":{"cluster":{"status":"DELETING"}}`),
			problems: []string{"cluster_name: is DELETING"}},
		{what: "another rack's cluster", input: onWith("", `"observed":{"cluster":{},"records":{"claim":"prod"}}`),
			problems: []string{"cluster_name: belongs to rack \"prod\""}},
	} {
		t.Run(c.what, c.run)
	}
}
