package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// previously returns the member of an input with the parameters of a rack with Karpenter that were applied last.
func previously(more string) string {
	return `"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true"` + more + `}`
}

const placedAt = "karpenter_config ec2NodeClass.placementGroupSelector: "

const placed = `"karpenter_config":"{\"ec2NodeClass\":{\"placementGroupSelector\":{\"name\":\"near\"}}}"`

const refreshing = `"karpenter_controller_config":"{\"settings\":{\"amiRefreshInterval\":\"5m\"}}"`

func TestCheckOfVersions(t *testing.T) {
	t.Parallel()
	on136 := `,"observed":{"cluster":{"version":"1.36"}}`
	for _, c := range []checkCase{
		{what: "each version of the catalogue", input: on(`"karpenter_version":"1.15.1"`)},
		{what: "unset", input: on(`"karpenter_version":"unset"`)},
		{what: "empty", input: on(`"karpenter_version":""`)},
		{what: "a version that there is not", input: on(`"karpenter_version":"1.11.0"`),
			problems: []string{"karpenter_version: which Sawhorse does not have; allowed is 1.10.0, 1.12.1, 1.14.3 or 1.15.1; write 1.12.1"}},
		{what: "with a v", input: on(`"karpenter_version":"v1.12.1"`), problems: []string{"karpenter_version: write 1.12.1"}},
		{what: "a minor alone", input: on(`"karpenter_version":"1.14"`), problems: []string{"karpenter_version: write 1.14.3"}},
		{what: "a word", input: on(`"karpenter_version":"latest"`), problems: []string{"karpenter_version: write, for example, 1.15.1"}},
		{what: "a bad version, while Karpenter is turned off",
			input: `{"rack":"demo","params":{"karpenter_auth_mode":"true","karpenter_enabled":"false","karpenter_version":"2"},` +
				previously("") + `}`,
			warnings: []string{"karpenter_version: allowed is 1.10.0, 1.12.1, 1.14.3 or 1.15.1; write 1.15.1"}},
		{what: "a field of a newer version", input: on(placed),
			problems: []string{placedAt + "is no field of Karpenter 1.10.0's EC2NodeClass; 1.12.1 has it: write karpenter_version 1.12.1"}},
		{what: "and that version", input: on(`"karpenter_version":"1.12.1",` + placed)},
		{what: "it runs already", input: onWith(placed, previously(`,"karpenter_version":"1.12.1"`))},
		{what: "down, with a field of the newer version",
			input:    onWith(`"karpenter_version":"1.10.0",`+placed, previously(`,"karpenter_version":"1.12.1"`)),
			problems: []string{placedAt + "is no field of Karpenter 1.10.0's EC2NodeClass; 1.12.1 has it"}},
		{what: "a Kubernetes that the version does not list", input: onWith(`"karpenter_version":"1.12.1"`, previously("")+on136),
			problems: []string{"karpenter_version: is not installed on others; write karpenter_version 1.14.3, which lists it"}},
		{what: "the version in force does not list it", input: onWith("", previously(`,"karpenter_version":"1.12.1"`)+on136),
			warnings: []string{"cluster_name: Karpenter 1.12.1 lists 1.26 to 1.35, and may not work with others"}},
		{what: "the version in force, named, does not list it",
			input:    onWith(`"karpenter_version":"1.12.1"`, previously(`,"karpenter_version":"1.12.1"`)+on136),
			warnings: []string{"karpenter_version: may not work with others; write karpenter_version 1.14.3"}},
		{what: "a Kubernetes that only the newest lists",
			input:    onWith(`"karpenter_version":"1.14.3"`, `"observed":{"cluster":{"version":"1.37"}}`),
			problems: []string{"karpenter_version: write karpenter_version 1.15.1, which lists it"}},
		{what: "a Kubernetes that none lists", input: onWith("", `"observed":{"cluster":{"version":"1.38"}}`),
			problems: []string{"cluster_name: no version that Sawhorse has lists it"}},

		{what: "values of the chart", input: on(`"karpenter_controller_config":"{\"logLevel\":\"debug\"}"`)},
		{what: "a value that the version does not have", input: on(refreshing),
			problems: []string{"karpenter_controller_config settings.amiRefreshInterval: 1.14.3 has it: write karpenter_version 1.14.3"}},
		{what: "a value of the version",
			input: on(`"karpenter_version":"1.14.3",` + refreshing)},
		{what: "the version that is in force has the value",
			input: onWith(refreshing, previously(`,"karpenter_version":"1.14.3"`))},
		{what: "a protected value", input: on(`"karpenter_controller_config":"{\"controller\":{\"image\":{\"tag\":\"1.14.3\"}}}"`),
			problems: []string{"karpenter_controller_config controller.image: is protected: karpenter_version chooses the image"}},
		{what: "a freeze", input: on(`"karpenter_freeze":"true"`), warnings: []string{"karpenter_freeze: write false when the freeze is over"}},
	} {
		t.Run(c.what, c.run)
	}
}

// Every version accepts the pools of every rack, so a rack may choose any, and render prints the same manifests.
func TestRenderOfEveryVersion(t *testing.T) {
	t.Parallel()
	want := sawhorse(t, on(threePools), "render", "-").ends(t, 0).stdout
	parameter, _ := params.Lookup("karpenter_version")
	if len(parameter.Words) < 4 {
		t.Fatalf("versions %q", parameter.Words)
	}
	for _, version := range parameter.Words {
		input := on(threePools + `,"karpenter_version":"` + version + `"`)
		if got := sawhorse(t, input, "render", "-").ends(t, 0).stdout; got != want {
			t.Errorf("karpenter_version=%s:\n%s\nwant\n%s", version, got, want)
		}
	}
	objects := decoded[[]plan.Object](t, sawhorse(t, on(`"karpenter_freeze":"true"`), "render", "-").ends(t, 0).stdout)
	budgets := fmt.Sprint(objects[1]["spec"].(map[string]any)["disruption"].(map[string]any)["budgets"])
	if budgets != "[map[nodes:10%] map[nodes:0]]" {
		t.Errorf("frozen: budgets %s", budgets)
	}
}

func TestPlanOfAChangeOfVersion(t *testing.T) {
	t.Parallel()
	up := []string{"access/conflicts", "infrastructure", "controller/crds", "controller/release"}
	for _, c := range []struct {
		what, from, to, more string
		steps, pools         []string
	}{
		{what: "up", from: "1.10.0", to: "1.12.1", steps: up},
		{what: "from what a rack without a choice runs", to: "1.12.1", steps: up},
		{what: "without other rights", from: "1.12.1", to: "1.14.3", steps: []string{"controller/crds", "controller/release"}},
		{what: "down", from: "1.12.1", to: "1.10.0", steps: []string{"access/conflicts", "controller/release", "infrastructure"}},
		{what: "a label beside it", from: "1.12.1", to: "1.14.3", more: `,"karpenter_node_labels":"a=b"`,
			steps: []string{"controller/crds", "controller/release", "nodepools"},
			pools: []string{"pool workload is changed: Karpenter replaces its nodes (NodePoolDrifted), as its disruption budget allows"}},
		{what: "the same", from: "1.12.1", to: "1.12.1"},
		{what: "the parameter goes, and the version stays", from: "1.12.1"},
	} {
		t.Run(c.what, func(t *testing.T) {
			chosen := func(version string) string {
				if version == "" {
					return ""
				}
				return `"karpenter_version":"` + version + `"`
			}
			before := ""
			if c.from != "" {
				before = "," + chosen(c.from)
			}
			got := outlookOf(t, onWith(chosen(c.to)+c.more, previously(before)))
			var steps, pools []string
			for _, s := range got.Steps {
				steps = append(steps, s.Name)
			}
			for _, e := range got.Pools {
				pools = append(pools, e.String())
			}
			if !slices.Equal(steps, c.steps) || !slices.Equal(pools, c.pools) {
				t.Errorf("steps %q, pools %q; want %q, %q", steps, pools, c.steps, c.pools)
			}
		})
	}
}

// The plan names what changes: policies, values and CRDs.
func TestPlanShowsWhatAVersionChanges(t *testing.T) {
	t.Parallel()
	got := sawhorse(t, onWith(`"karpenter_version":"1.12.1","karpenter_controller_config":"{\"logLevel\":\"debug\"}"`, previously("")),
		"plan", "-").ends(t, 0).stdout
	for _, part := range []string{
		`added "ec2:DescribeInstanceStatus"`, `controller.policies.zonal-shift: added`, `values.controller.image.tag: "1.10.0" → "1.12.1"`,
		`values.logLevel: added "debug"`, `version: "1.10.0" → "1.12.1"`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
}
