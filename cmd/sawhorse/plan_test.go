package main

import (
	"slices"
	"strings"
	"testing"
)

const wasOn = `"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true"}`

// planned returns the names of the steps in an input's plan.
func planned(t *testing.T, input string) []string {
	t.Helper()
	var names []string
	for _, s := range outlookOf(t, input).Steps {
		names = append(names, s.Name)
	}
	return names
}

// outlookOf is what the command plan prints as JSON, without a process.
func outlookOf(t *testing.T, text string) outlook {
	t.Helper()
	in, err := readInput([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	seen, _ := in.outlook()
	return seen
}

// Package plan tests the order of the steps. This test checks that the plan has exactly the steps that lead from the
// applied to the requested parameters.
func TestPlanHasTheStepsThatLeadThere(t *testing.T) {
	t.Parallel()
	off := `{"rack":"demo","params":{"karpenter_auth_mode":"true","karpenter_enabled":"false"},` + wasOn + `}`
	prepare, all := planned(t, `{"rack":"demo","params":{"karpenter_auth_mode":"true"}}`), planned(t, on(""))
	applied := func(name string) bool { return slices.Contains(prepare, name) }
	rest := slices.DeleteFunc(slices.Clone(all), applied)
	if !applied("access") || applied("nodepools") || len(all) != len(prepare)+len(rest) {
		t.Fatalf("access alone: %q, with Karpenter: %q", prepare, all)
	}
	enable := planned(t, onWith("", `"previous":{"karpenter_auth_mode":"true"}`))
	if !slices.Equal(enable, append([]string{"access/conflicts"}, rest...)) {
		t.Errorf("where access has been applied: %q, want access/conflicts, %q", enable, rest)
	}
	disable := planned(t, off)
	for _, name := range disable {
		if slices.Contains(prepare, name) {
			t.Errorf("turned off: %s has been applied and stays", name)
		}
	}
	inOrder := []string{"autoscaler", "nodepools", "controller/release", "queue", "infrastructure"}
	if got := slices.DeleteFunc(disable, func(name string) bool { return !slices.Contains(inOrder, name) }); !slices.Equal(got, inOrder) {
		t.Errorf("turned off: %q", got)
	}
}

func TestPlanIsWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, input, goal string
		steps             []string
		pools             []string
	}{
		{what: "nothing is asked", input: `{"rack":"demo"}`, goal: "none"},
		{what: "a new pool, and nothing else", input: onWith(`"build_node_enabled":"true"`, wasOn), goal: "karpenter",
			steps: []string{"nodepools"}, pools: []string{"pool build is created"}},
		{what: "all has been applied", input: onWith("", wasOn), goal: "karpenter"},
		{what: "the same, spelled otherwise", goal: "karpenter",
			input: onWith(`"karpenter_cpu_limit":"100","karpenter_arch":"","tags":"unset"`, wasOn)},
		{what: "lists in another order", goal: "karpenter", input: onWith(`"karpenter_instance_families":"c6i,m6i"`,
			`"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true","karpenter_instance_families":"m6i,c6i"}`)},
		{what: "a limit leaves the nodes", input: onWith(`"karpenter_cpu_limit":"7"`, wasOn), goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool workload is changed: its nodes stay"}},
		{what: "a label replaces them", input: onWith(`"karpenter_node_labels":"a=b"`, wasOn), goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool workload is changed: Karpenter replaces its nodes (NodePoolDrifted), as its disruption budget allows"}},
		{what: "as many as there are", input: onWith(`"karpenter_node_disk":"50"`, wasOn+`,"observed":{"pools":{"workload":{"nodes":12}}}`),
			goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool workload is changed: Karpenter replaces its 12 nodes (NodeClassDrift), as its disruption budget allows"}},
		{what: "pools come and go", goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool b is retired: it launches no more nodes, Karpenter empties its nodes, as its disruption budget allows, and it " +
				"goes with the last one", "pool c is created"},
			input: onWith(`"additional_karpenter_nodepools_config":"[{\"name\":\"a\"},{\"name\":\"c\"}]"`,
				`"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true",`+
					`"additional_karpenter_nodepools_config":"[{\"name\":\"a\"},{\"name\":\"b\"}]"}`)},
		{what: "facts that leave a pool out do not say that it is created", goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool workload is changed: its nodes stay"},
			input: onWith(`"karpenter_cpu_limit":"7"`, wasOn+`,"observed":{"pools":{"build":{"nodes":1}}}`)},
		{what: "nor does a pool that has nodes while previous is left out", goal: "karpenter", steps: planned(t, on("")),
			pools: []string{"pool workload is changed: Karpenter may replace some or all of its 12 nodes (NodeClassDrift, NodePoolDrifted), as " +
				"its disruption budget allows"},
			input: onWith("", `"observed":{"pools":{"workload":{"nodes":12}}}`)},
		{what: "a cluster whose name is left out is the rack's", goal: "karpenter", steps: []string{"nodepools"},
			pools: []string{"pool workload is changed: its nodes stay"},
			input: onWith(`"karpenter_cpu_limit":"7"`, wasOn+`,"observed":{"cluster":{"version":"1.33","authMode":"API"}}`)},
		{what: "the controller alone", input: onWith(`"high_availability":"false"`, wasOn), goal: "karpenter",
			steps: []string{"controller/release"}},
		{what: "it stays on where nothing says false", input: `{"rack":"demo","params":{"paused":"false"},` + wasOn + `}`, goal: "karpenter"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := outlookOf(t, c.input)
			var steps, pools []string
			for _, s := range got.Steps {
				steps = append(steps, s.Name)
			}
			for _, e := range got.Pools {
				pools = append(pools, e.String())
			}
			if string(got.Goal) != c.goal || !got.Accepted || got.Problems == nil || got.Warnings == nil || got.Steps == nil || got.Pools == nil {
				t.Errorf("%+v", got)
			}
			if !slices.Equal(steps, c.steps) {
				t.Errorf("steps %q\nwant  %q", steps, c.steps)
			}
			if !slices.Equal(pools, c.pools) {
				t.Errorf("pools %q\nwant  %q", pools, c.pools)
			}
		})
	}
}

// The plan says what it cannot know because the input leaves it out.
func TestPlanOfPartialFacts(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		onWith("", `"observed":{"pools":{"workload":{"nodes":12}}}`): "unknown  previous is left out although the cluster has pools: ",
		onWith(`"karpenter_cpu_limit":"7"`, wasOn+`,"observed":{"pools":{"build":{"nodes":1}}}`): "unknown  observed.pools leaves pool " +
			"workload out: how many nodes it has is not known\n",
		onWith(`"karpenter_cpu_limit":"7"`, wasOn+`,"observed":{"pools":{"workload":{"nodes":1}}}`): "",
		on(""): "",
	} {
		got := sawhorse(t, input, "plan", "-").ends(t, 0).stdout
		if want == "" && strings.Contains(got, "unknown") || !strings.Contains(got, want) {
			t.Errorf("%s: lacks %q:\n%s", input, want, got)
		}
	}
}

func TestPlanText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, input string
		code        int
		want        string
	}{
		{"nothing to do", onWith("", wasOn), 0, "nothing to do\n"},
		{"a change", onWith(`"karpenter_node_labels":"a=b"`, wasOn), 0, ` 1. nodepools            NodePools and EC2NodeClasses
    objects[NodePool/workload].spec.template.metadata.labels.a: added "b"
pool workload is changed: Karpenter replaces its nodes (NodePoolDrifted), as its disruption budget allows
`},
		{"access alone", `{"rack":"demo","params":{"karpenter_auth_mode":"true"}}`, 0,
			` 1. access               cluster access mode, access entries and the rights of Sawhorse's own functions
 2. access/conflicts     names in the cluster that others hold
 3. network              discovery tags on subnets and security groups
 4. nodegroups/labels    label of the system node groups
 5. controller/crds      Karpenter's CRDs
`},
		{"paused", onWith(`"paused":"true","karpenter_cpu_limit":"7"`, wasOn), 0, `paused: a pass would report these steps, and take none of them
 1. nodepools            NodePools and EC2NodeClasses
    objects[NodePool/workload].spec.limits.cpu: "100" → "7"
pool workload is changed: its nodes stay
`},
		{"paused, and nothing to do", onWith(`"paused":"true"`, wasOn), 0, "nothing to do\n"},
		{"a warning", onWith(`"karpenter_disruption_budget_nodes":"0"`, wasOn), 0,
			`warning  karpenter_disruption_budget_nodes: a disruption budget of 0 without a schedule never lets Karpenter ` +
				`consolidate or replace a node of its own accord
 1. nodepools            NodePools and EC2NodeClasses
    objects[NodePool/workload].spec.disruption.budgets: [{"nodes":"10%"}] → [{"nodes":"0"}]
pool workload is changed: its nodes stay
`},
		{"refused, for a name that would garble the terminal", `{"rack":"demo","params":{"\u001b[2Jx\n":"y"}}`, 1,
			`problem  "\x1b[2Jx\n": "\x1b[2Jx\n" is not a parameter of Sawhorse; delete it (sawhorse params lists the names there are)
refused: a pass would change nothing
`},
		{"refused, and frozen", onWith(`"karpenter_arch":"x86","karpenter_freeze":"true"`, wasOn), 1,
			`problem  karpenter_arch: karpenter_arch is "x86"; allowed is amd64, arm64, or both with a comma; did you mean amd64?
warning  karpenter_freeze: karpenter_freeze is true: Karpenter consolidates no nodes and replaces none after a change; ` +
				`it still replaces nodes that expire (karpenter_node_expiry), that EC2 interrupts, or, before Karpenter 1.15, ` +
				`that node repair finds unhealthy; ` +
				`write false when the freeze is over
refused: a pass would only do this to what is in force
 1. nodepools/freeze     freeze of the NodePools that exist
`},
		{"refused", onWith(`"karpenter_arch":"x86"`, wasOn), 1,
			`problem  karpenter_arch: karpenter_arch is "x86"; allowed is amd64, arm64, or both with a comma; did you mean amd64?
refused: a pass would change nothing
`},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := sawhorse(t, c.input, "plan", "-").ends(t, c.code).stdout; got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			if got := sawhorse(t, c.input, "plan", "-o", "text", "-").stdout; got != c.want {
				t.Errorf("-o text: %s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPlanRefusedAsJSON(t *testing.T) {
	t.Parallel()
	got := sawhorse(t, onWith(`"karpenter_arch":"x86","karpenter_cpu_limit":"7"`, wasOn), "plan", "-o", "json", "-").ends(t, 1)
	if o := decoded[outlook](t, got.stdout); o.Accepted || len(o.Problems) != 1 || len(o.Steps) > 0 || len(o.Pools) > 0 ||
		!strings.Contains(got.stdout, `"steps": [],`) {
		t.Errorf("%s", got.stdout)
	}
}

// --sections prints what each step applies, after the steps: also of steps that have nothing to do.
func TestPlanSections(t *testing.T) {
	t.Parallel()
	input := onWith(`"karpenter_cpu_limit":"7","nvidia_device_plugin_enable":"true"`, wasOn)
	short, long := sawhorse(t, input, "plan", "-").ends(t, 0).stdout, sawhorse(t, input, "plan", "--sections", "-").ends(t, 0).stdout
	rest, ok := strings.CutPrefix(long, short)
	if !ok {
		t.Fatalf("%s\nbegins otherwise than\n%s", long, short)
	}
	at := -1
	for _, part := range []string{
		"\naccess\n{\n", "\ninfrastructure\n{\n", `"Sid": "AllowScopedEC2InstanceActionsWithTags"`,
		"\nqueue\n{\n", `"aws.health"`, "\ncontroller/crds\n{\n", "\ncontroller/release\n{\n", `"interruptionQueue": "demo-karpenter"`,
		"\ncontroller/plugin\n{\n", `"kind": "DaemonSet"`, "\nnodepools\n{\n", `"kind": "NodePool"`,
	} {
		next := strings.Index(rest, part)
		if next <= at {
			t.Errorf("%q is not there, or not in its place", part)
		}
		at = next
	}
	got := decoded[outlook](t, sawhorse(t, input, "plan", "-o", "json", "-").ends(t, 0).stdout)
	differs := map[string]string{}
	for _, s := range got.Sections {
		differs[s.Step] = strings.Join(s.Differs, "\n")
		// The input has no node groups, so there is nothing to label.
		if section, _ := s.Section.Section.(map[string]any); len(section) == 0 && s.Step != "nodegroups/labels" {
			t.Errorf("%s has no section", s.Step)
		}
	}
	if differs["nodepools"] != `objects[NodePool/workload].spec.limits.cpu: "100" → "7"` || differs["queue"] != "" ||
		!strings.HasPrefix(differs["controller/plugin"], "devicePlugin: added {") {
		t.Errorf("differs %q", differs)
	}
}
