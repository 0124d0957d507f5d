package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

var update = flag.Bool("update", false, "write the golden plans anew: go test ./internal/plan -update")

// facts returns an ordinary cluster that Sawhorse has never touched.
func facts() plan.Facts {
	return plan.Facts{
		Cluster: &plan.ClusterFacts{
			Cluster: plan.Cluster{
				Name: "demo", ARN: "arn:aws:eks:eu-central-1:123456789012:cluster/demo",
				Account: "123456789012", Region: "eu-central-1", Partition: "aws",
				OIDCIssuer: "https://oidc.eks.eu-central-1.amazonaws.com/id/ABC", SecurityGroup: "sg-cluster",
			},
			Status: "ACTIVE", Version: "1.35", AuthMode: "CONFIG_MAP", Tags: texts{ownership.TagRack: "demo"},
		},
		Deployment: plan.Deployment{RequireClusterTag: true, NodeRoles: []string{"*-node"}},
		NodeGroups: []plan.NodeGroup{
			{Name: "build", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m6i.large"},
				Labels: map[string]string{ownership.LabelBuild: "true"}, Scaling: plan.Scaling{Max: 3},
				Taints:    []plan.NodeGroupTaint{{Key: "dedicated", Value: "build", Effect: "NO_SCHEDULE"}},
				Resources: plan.Resources{AutoScalingGroups: []plan.AutoScalingGroup{{Name: "eks-build"}}}},
			{Name: "system", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m6i.large"},
				NodeRole: "arn:aws:iam::123456789012:role/demo-node", Labels: map[string]string{"a": "1", "b": "2", "c": "3"},
				Scaling: plan.Scaling{Min: 2, Max: 4, Desired: 2}},
		},
		Subnets: []plan.Tagged{
			{ID: "subnet-a", Zone: "eu-central-1a", Tags: map[string]string{"Name": "a", "kubernetes.io/role/internal-elb": "1"}},
			{ID: "subnet-b", Zone: "eu-central-1b"},
		},
		SecurityGroups: []plan.Tagged{{ID: "sg-cluster", Tags: map[string]string{ownership.TagClusterOwned + "demo": "owned"}}},
		PodIdentity:    true,
		OIDCProvider:   true,
	}
}

func additional(name, effect string) plan.NodeGroup {
	g := plan.NodeGroup{
		Name: name, CapacityType: "ON_DEMAND", Labels: map[string]string{ownership.LabelAdditional: name},
		Scaling:   plan.Scaling{Min: 1, Max: 5, Desired: 1},
		Resources: plan.Resources{AutoScalingGroups: []plan.AutoScalingGroup{{Name: "eks-" + name}}},
	}
	if effect != "" {
		g.Taints = []plan.NodeGroupTaint{{Key: "dedicated", Value: name, Effect: effect}}
	}
	return g
}

type texts = map[string]string

func with(base texts, more ...string) texts {
	all := maps.Clone(base)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

var on = texts{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}

// builds is a rack whose builds run on Karpenter's nodes.
var builds = with(on, "build_node_enabled", "true")

// named is a rack that names its system node groups.
var named = with(on, "system_node_groups", "system", "build_node_groups", "build")

// copied returns the on-demand copy of the group system, made for a rack.
func copied(rack string) plan.NodeGroup {
	g := facts().NodeGroups[1]
	g.Name, g.Tags = "system-ondemand", map[string]string{
		ownership.TagRack: rack, ownership.TagCluster: "arn:aws:eks:eu-central-1:123456789012:cluster/demo", ownership.TagReplaces: "system",
	}
	return g
}

// prepared is what is recorded of a cluster in which nothing was in the way of Karpenter.
var prepared = texts{"access/conflicts": "done"}

// cases are the golden plans. The expected result of each is in testdata/{name}.json.
var cases = []struct {
	name   string
	params texts
	facts  func(*plan.Facts)
	// problems are the parameters with problems, in order.
	problems string
}{
	{name: "nothing-asked"},
	{name: "access-only", params: texts{"karpenter_auth_mode": "true"}},
	{name: "enable", params: on},
	{name: "enable-with-builds", params: builds},
	{name: "enable-all-parameters", params: with(on,
		"karpenter_arch", "arm64,amd64", "karpenter_capacity_types", "spot,on-demand", "karpenter_consolidate_after", "5m",
		"karpenter_consolidation_enabled", "false", "karpenter_cpu_limit", "200", "karpenter_disruption_budget_nodes", "3",
		"karpenter_instance_families", "m6i,c6i", "karpenter_instance_sizes", "xlarge,large", "karpenter_memory_limit_gb", "800",
		"karpenter_node_disk", "100", "karpenter_node_expiry", "Never", "karpenter_node_volume_type", "io2"),
		facts: func(f *plan.Facts) { f.Cluster.AuthMode = "API" }},
	{name: "enable-private-with-gpus", params: with(on,
		"nvidia_device_plugin_enable", "true",
		"karpenter_image_repository", "123456789012.dkr.ecr.eu-central-1.amazonaws.com/karpenter/controller",
		"isolated_vpc", "true", "high_availability", "false", "node_policy_arns", "arn:aws:iam::123456789012:policy/own"),
		facts: func(f *plan.Facts) {
			f.Subnets[0].Owner = "210987654321"
			f.NodeGroups = append(f.NodeGroups, additional("gpu", "NO_SCHEDULE"))
		}},
	{name: "enable-irsa", params: on, facts: func(f *plan.Facts) { f.PodIdentity = false }},
	{name: "enable-with-dedicated-groups", params: on, facts: func(f *plan.Facts) {
		f.NodeGroups = append(f.NodeGroups, additional("gpu", "NO_SCHEDULE"), additional("db", "NO_EXECUTE"))
	}},
	{name: "turned-off", params: with(on, "karpenter_enabled", "false"), facts: func(f *plan.Facts) {
		f.Records = plan.Records{ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared, Credentials: "podidentity"}
		f.PodIdentity, f.OIDCProvider = false, false // no longer looked up
	}},

	{name: "cluster-gone", params: with(on, "karpenter_enabled", "false"), facts: func(f *plan.Facts) {
		f.Lost, f.Cluster, f.NodeGroups = &f.Cluster.Cluster, nil, nil
		f.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared, Credentials: "podidentity"}
	}},
	{name: "cluster-gone-while-on", params: on, facts: func(f *plan.Facts) {
		f.Lost, f.Cluster = &f.Cluster.Cluster, nil
		f.Records = plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared}
	}, problems: "cluster_name"},

	{name: "no-cluster", params: on, facts: func(f *plan.Facts) { f.Cluster = nil }, problems: "cluster_name"},
	{name: "claimed", params: on, facts: func(f *plan.Facts) { f.Records.ClusterLock = "other" }, problems: "cluster_name"},
	{name: "auto-mode-turned-off", params: with(on, "karpenter_enabled", "false"), facts: func(f *plan.Facts) {
		f.Cluster.AutoMode = true
		f.Records = plan.Records{ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared, Credentials: "podidentity"}
	}},
	{name: "auto-mode", params: on, facts: func(f *plan.Facts) { f.Cluster.AutoMode = true }, problems: "cluster_name"},
	{name: "cluster-not-active", params: on, facts: func(f *plan.Facts) { f.Cluster.Status = "CREATING" }, problems: "cluster_name"},
	{name: "not-let-in", params: on, facts: func(f *plan.Facts) { f.Cluster.Tags, f.Subnets = nil, nil },
		problems: "cluster_name"},
	{name: "let-in-for-another-rack", params: on, facts: func(f *plan.Facts) { f.Cluster.Tags[ownership.TagRack] = "other" },
		problems: "cluster_name"},
	{name: "in-before-the-tag", params: on, facts: func(f *plan.Facts) {
		f.Cluster.Tags, f.Cluster.AuthMode, f.Records = nil, "API_AND_CONFIG_MAP", plan.Records{ClusterLock: "demo", Goal: plan.GoalAccess}
	}},
	{name: "tag-of-another-cluster", params: on, facts: func(f *plan.Facts) {
		f.Subnets[1].Tags = map[string]string{ownership.TagDiscovery: "other"}
		f.SecurityGroups[0].Tags[ownership.TagDiscovery] = "other"
	}, problems: "karpenter_auth_mode karpenter_auth_mode"},
	{name: "no-subnets", params: on, facts: func(f *plan.Facts) { f.Subnets = nil }, problems: "karpenter_auth_mode"},
	{name: "no-system-group", params: on, facts: func(f *plan.Facts) { f.NodeGroups = f.NodeGroups[:1] }, problems: "karpenter_enabled"},
	{name: "capacity-block-as-system-group", params: on, facts: func(f *plan.Facts) { f.NodeGroups[1].CapacityType = "CAPACITY_BLOCK" },
		problems: "system_node_groups"},
	{name: "spot-system-group", params: on, facts: func(f *plan.Facts) { f.NodeGroups[1].CapacityType = "SPOT" },
		problems: "system_node_groups"},
	{name: "spot-system-group-named", params: named, facts: func(f *plan.Facts) { f.NodeGroups[1].CapacityType = "SPOT" }},
	{name: "spot-system-group-turned-off", params: with(named, "karpenter_enabled", "false"), facts: func(f *plan.Facts) {
		f.NodeGroups[1].CapacityType = "SPOT"
		f.NodeGroups = append(f.NodeGroups, copied("demo"))
		f.Records = plan.Records{ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Applied: prepared, Credentials: "podidentity"}
	}},
	{name: "spot-system-group-name-taken", params: named, facts: func(f *plan.Facts) {
		f.NodeGroups[1].CapacityType = "SPOT"
		f.NodeGroups = append(f.NodeGroups, copied("other"))
		// A group with the role that it has then needs a taint.
		f.NodeGroups[2].Taints = []plan.NodeGroupTaint{{Key: "a", Effect: "NO_SCHEDULE"}}
	}, problems: "system_node_groups"},
	{name: "groups-not-dedicated", params: on, facts: func(f *plan.Facts) {
		f.NodeGroups = append(f.NodeGroups, additional("gpu", "NO_SCHEDULE"), additional("web", ""), additional("db", "PREFER_NO_SCHEDULE"))
	}, problems: "karpenter_enabled"},
	{name: "irsa-without-provider", params: on, facts: func(f *plan.Facts) { f.PodIdentity, f.OIDCProvider = false, false },
		problems: "karpenter_enabled"},
	{name: "irsa-without-sts", params: on, facts: func(f *plan.Facts) { f.PodIdentity, f.OIDCWithoutSTS = false, true },
		problems: "karpenter_enabled"},
	{name: "foreign-names", params: on,
		facts: func(f *plan.Facts) { f.Unmanaged = []string{"IAM role demo-karpenter", "SQS queue demo-karpenter"} }, problems: "rack rack"},
	{name: "two-owned-groups", params: on, facts: func(f *plan.Facts) {
		f.SecurityGroups = append(f.SecurityGroups, plan.Tagged{
			ID: "sg-node", Tags: map[string]string{ownership.TagClusterOwned + "demo": "owned", ownership.TagClusterOwned + "x": "owned"},
		})
	}},
}

// build does the same as a pass, without AWS.
func build(t *testing.T, written texts, f plan.Facts) plan.Outcome {
	t.Helper()
	parsed := params.Parse(params.Input{Rack: "demo", Params: written, Previous: f.Records.Params})
	if len(parsed.Problems) > 0 {
		t.Fatal(parsed.Problems)
	}
	built := plan.Build(parsed.Config, f, nodes.Compile(parsed.Config, f).Objects())
	built.Plan.SetFingerprints()
	built.Plan.Access.Rights = nil // every plan has plan.Rights()
	return built
}

func outcome(t *testing.T, name string) plan.Outcome {
	t.Helper()
	for _, c := range cases {
		if c.name == name {
			f := facts()
			if c.facts != nil {
				c.facts(&f)
			}
			return build(t, c.params, f)
		}
	}
	t.Fatalf("no case %s", name)
	return plan.Outcome{}
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGoldenPlans(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := outcome(t, c.name)
			var problems []string
			for _, p := range got.Problems {
				problems = append(problems, p.Parameter)
			}
			if strings.Join(problems, " ") != c.problems {
				t.Errorf("problems %v, want %q", got.Problems, c.problems)
			}
			golden(t, c.name+".json", shown(got))
		})
	}
}

// shown returns what a golden file contains: the plan is left out if there are problems.
func shown(o plan.Outcome) any {
	all := struct {
		Problems []params.Problem `json:"problems,omitempty"`
		Warnings []params.Problem `json:"warnings,omitempty"`
		Plan     *plan.Plan       `json:"plan,omitempty"`
	}{o.Problems, o.Warnings, &o.Plan}
	if len(o.Problems) > 0 {
		all.Plan = nil
	}
	return all
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, text(t, value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, value)
	if bytes.Equal(got, want) {
		return
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			t.Fatalf("%s: line %d\n got %s\nwant %s\n(go test ./internal/plan -update, then read the difference)", file, i+1, a[i],
				append(b, "the end")[min(i, len(b))])
		}
	}
	t.Fatalf("%s: the plan ends early", file)
}

func TestEveryGoldenHasACase(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(cases) {
		t.Errorf("%d files in testdata, %d cases", len(files), len(cases))
	}
}

// The same input gives the same bytes, for any iteration order of Go's maps and after marshaling through the record's
// JSON.
func TestSameInputSameBytes(t *testing.T) {
	for _, c := range cases {
		first := text(t, outcome(t, c.name))
		for range 20 {
			if again := text(t, outcome(t, c.name)); !bytes.Equal(again, first) {
				t.Fatalf("%s: two plans of one input:\n%s\n%s", c.name, first, again)
			}
		}
		var read plan.Outcome
		if err := json.Unmarshal(first, &read); err != nil {
			t.Fatal(err)
		}
		if again := text(t, read); !bytes.Equal(again, first) {
			t.Errorf("%s: read and written again it is\n%s\nand was\n%s", c.name, again, first)
		}
	}
}

// A small change makes only its own step due, because steps are compared by fingerprint.
func TestOnlyWhatChangedIsDue(t *testing.T) {
	applied := texts{}
	for _, s := range outcome(t, "enable").Plan.Steps {
		applied[s.Name] = s.Fingerprint
	}
	for _, c := range []struct {
		what   string
		params texts
		facts  func(*plan.Facts)
		due    string
	}{
		{"nothing", on, nil, ""},
		{"cpu limit", with(on, "karpenter_cpu_limit", "200"), nil, "nodepools"},
		{"node_disk", with(on, "node_disk", "50"), nil, "nodepools"},
		{"node_disk that is not inherited", with(on, "karpenter_node_disk", "20", "node_disk", "50"), nil, ""},
		{"a default written out", with(on, "karpenter_cpu_limit", "100", "cluster_name", "demo", "paused", "false"), nil, ""},
		{"a list in another order", with(on, "karpenter_capacity_types", "on-demand"), nil, ""},
		{"the cluster's version", on, func(f *plan.Facts) { f.Cluster.Version = "1.34" }, ""},
		{"access mode migrated meanwhile", on, func(f *plan.Facts) { f.Cluster.AuthMode = "API_AND_CONFIG_MAP" }, ""},
		{"our own tags and labels", on, func(f *plan.Facts) {
			f.Subnets[1].Tags = map[string]string{ownership.TagDiscovery: "demo"}
			f.NodeGroups[1].Labels[ownership.LabelSystemNode] = "true"
		}, ""},
		{"a build node comes", on, func(f *plan.Facts) { f.NodeGroups[0].Scaling.Desired = 1 }, ""},
		{"another maximum of the build group", on, func(f *plan.Facts) { f.NodeGroups[0].Scaling.Max = 5 }, "proof autoscaler"},
		{"claimed, credentials chosen", on, func(f *plan.Facts) {
			f.Records = plan.Records{ClusterLock: "demo", Goal: plan.GoalKarpenter, WasOn: true, Credentials: "podidentity"}
			f.PodIdentity, f.OIDCProvider = false, false
		}, ""},
		{"a new system group", on, func(f *plan.Facts) {
			f.NodeGroups = append(f.NodeGroups, plan.NodeGroup{Name: "system2", InstanceTypes: []string{"m6i.large"}})
		}, "nodegroups/labels"},
		{"an additional group", on, func(f *plan.Facts) { f.NodeGroups = append(f.NodeGroups, additional("gpu", "NO_SCHEDULE")) },
			"proof autoscaler"},
	} {
		f := facts()
		if c.facts != nil {
			c.facts(&f)
		}
		got := build(t, c.params, f)
		var due []string
		for _, s := range got.Plan.Due(applied) {
			due = append(due, s.Name)
		}
		if len(got.Problems) > 0 || strings.Join(due, " ") != c.due {
			t.Errorf("%s: due %v (problems %v), want %q", c.what, due, got.Problems, c.due)
		}
	}
}

// A build group that comes long after Cluster Autoscaler's hand-over goes to zero only when the pool has shown a first node.
func TestALateBuildGroupWaitsForAProof(t *testing.T) {
	f := facts()
	groups := f.NodeGroups
	f.NodeGroups = slices.DeleteFunc(slices.Clone(groups), func(g plan.NodeGroup) bool { return g.Labels[ownership.LabelBuild] != "" })
	applied := texts{}
	for _, s := range build(t, builds, f).Plan.Steps {
		applied[s.Name] = s.Fingerprint
	}
	f.NodeGroups = groups
	late := build(t, builds, f)
	var due []string
	for _, s := range late.Plan.Due(applied) {
		due = append(due, s.Name)
	}
	if strings.Join(due, " ") != "proof nodegroups/build" {
		t.Error(due)
	}
}

// Problems with what only Karpenter needs of network and node groups never block turning it off. Before and after, they
// are problems.
func TestOffIsNotHeldUp(t *testing.T) {
	wrong := with(on, "subnet_ids", "subnet-0123456789abcdef0", "build_node_groups", "gone")
	f := facts()
	f.Subnets[0].Tags = texts{ownership.TagDiscovery: "other"}
	f.Records = plan.Records{Goal: plan.GoalKarpenter}
	for _, c := range []struct {
		what              string
		params            texts
		wasOn             bool
		problems, warning int
	}{
		{"on", wrong, true, 3, 0},
		{"turning off", with(wrong, "karpenter_enabled", "false"), true, 0, 3},
		{"off", with(wrong, "karpenter_enabled", "false"), false, 3, 0},
	} {
		f.Records.WasOn = c.wasOn
		got := build(t, c.params, f)
		if len(got.Problems) != c.problems || len(got.Warnings) != c.warning {
			t.Errorf("%s: problems %v, warnings %v", c.what, got.Problems, got.Warnings)
		}
		if slices.Contains(got.Plan.Network.Subnets, f.Subnets[0].ID) {
			t.Errorf("%s: the subnet of another cluster is chosen: %v", c.what, got.Plan.Network.Subnets)
		}
	}
}

// Turning Karpenter off makes every step due that turning it on did, and turning it on again does the same.
func TestEverythingOfKarpenterIsDueWhenItIsTurned(t *testing.T) {
	onPlan, offPlan := outcome(t, "enable-with-builds").Plan, outcome(t, "turned-off").Plan
	for _, c := range []struct{ from, to plan.Plan }{{onPlan, offPlan}, {offPlan, onPlan}} {
		applied := texts{}
		for _, s := range c.from.Steps {
			applied[s.Name] = s.Fingerprint
		}
		due := map[string]bool{}
		for _, s := range c.to.Due(applied) {
			due[s.Name] = true
		}
		want := "infrastructure queue controller/release nodepools proof autoscaler nodegroups/build nodegroups/placement"
		if c.to.Goal == plan.GoalAccess {
			want += " nodegroups/fit nodegroups/capacity controller/serve"
		} else {
			want += " access/conflicts"
		}
		for name := range strings.FieldsSeq(want) {
			if !due[name] {
				t.Errorf("from %s to %s: %s is not due", c.from.Goal, c.to.Goal, name)
			}
		}
		if len(due) != len(strings.Fields(want)) {
			t.Errorf("from %s to %s: due %v", c.from.Goal, c.to.Goal, due)
		}
	}
}

// Without build_node_enabled there is no build pool: build groups stay as they are, under Cluster Autoscaler.
func TestBuildGroupsStayWithoutAPoolForBuilds(t *testing.T) {
	zero, one := func(*plan.NodeGroup) {}, func(g *plan.NodeGroup) { g.Scaling.Desired = 1 }
	for _, c := range []struct {
		what     string
		params   texts
		group    func(*plan.NodeGroup)
		emptied  map[string]plan.Scaling
		empty    bool
		targets  string
		warnings string
	}{
		{"with nodes", on, one, nil, false, "0:3:eks-build", "with nodes and no pool"},
		{"without nodes", on, zero, nil, false, "0:3:eks-build", ""},
		{"not dedicated", on, func(g *plan.NodeGroup) { g.Taints = nil }, nil, false, "0:3:eks-build", "that are not dedicated: build"},
		{"emptied by Sawhorse, its size as it was", on, zero,
			map[string]plan.Scaling{"build": {Min: 1, Max: 3, Desired: 2}}, false, "1:3:eks-build", ""},
		{"emptied by Sawhorse, its size as the rack has it", with(on, "build_node_min_count", "2"), zero,
			map[string]plan.Scaling{"build": {Min: 1, Max: 3, Desired: 2}}, false, "2:3:eks-build", ""},
		{"a pool for builds", builds, one, nil, true, "", ""},
	} {
		f := facts()
		c.group(&f.NodeGroups[0])
		f.Records.Emptied = c.emptied
		got := build(t, c.params, f)
		var targets, warnings []string
		for _, arg := range got.Plan.Autoscaler.Args {
			targets = append(targets, strings.TrimPrefix(arg, "--nodes="))
		}
		for _, w := range got.Warnings {
			warnings = append(warnings, w.Parameter+": "+w.Message)
		}
		if all := strings.Join(targets, " "); got.Plan.Nodegroups.BuildEmpty != c.empty || all != c.targets {
			t.Errorf("%s: emptied %v, targets %s, want %s", c.what, got.Plan.Nodegroups.BuildEmpty, all, c.targets)
		}
		if all := strings.Join(warnings, "; "); (c.warnings == "") != (all == "") || !strings.Contains(all, c.warnings) {
			t.Errorf("%s: warnings %q, want %q", c.what, all, c.warnings)
		}
	}
}

// Before the build pool is removed, the build groups have nodes again. When the pool is created, the groups keep their
// nodes until it is Ready.
func TestBuildsAlwaysHaveNodes(t *testing.T) {
	for _, c := range []struct {
		what, from, to, want string
	}{
		{"the pool goes", "enable-with-builds", "enable", "nodegroups/build nodepools proof autoscaler"},
		{"the pool comes", "enable", "enable-with-builds", "nodepools proof autoscaler nodegroups/build"},
	} {
		applied := texts{}
		for _, s := range outcome(t, c.from).Plan.Steps {
			applied[s.Name] = s.Fingerprint
		}
		to := outcome(t, c.to).Plan
		var due []string
		for _, s := range to.Due(applied) {
			due = append(due, s.Name)
		}
		if got := strings.Join(due, " "); got != c.want {
			t.Errorf("%s: due %s, want %s", c.what, got, c.want)
		}
	}
}

// Policies that only the system nodes have are warnings, except the ECR read-only policy, which AWS has replaced by
// another.
func TestPoliciesThatKarpentersNodesLack(t *testing.T) {
	f := facts()
	f.SystemPolicies = []string{
		"arn:aws:iam::123456789012:policy/logs", "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly",
		"arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
	}
	got := build(t, on, f)
	if len(got.Problems) > 0 || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0].Message, "lacks: arn:aws:iam::123456789012:policy/logs;") {
		t.Errorf("problems %v, warnings %v", got.Problems, got.Warnings)
	}
	if got := build(t, texts{"karpenter_auth_mode": "true"}, f); len(got.Warnings) > 0 {
		t.Errorf("without Karpenter: %v", got.Warnings)
	}
}
