package validation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// validated is one case of a table in testdata: what is written, and the expected problems and warnings.
type validated struct {
	What string
	// Config and Pools are the two JSON parameters as JSON, Params any parameter as text.
	Config, Pools json.RawMessage
	Params        map[string]string
	// Problems and Warnings are "parameter path: part of the message", in order.
	Problems, Warnings []string
}

func (c validated) texts() map[string]string {
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	if c.Config != nil {
		texts["karpenter_config"] = string(c.Config)
	}
	if c.Pools != nil {
		texts["additional_karpenter_nodepools_config"] = string(c.Pools)
	}
	maps.Copy(texts, c.Params)
	return texts
}

// offline are the facts of the command line, which knows no cluster and no deployment.
var offline = plan.Facts{Offline: true, Deployment: plan.Deployment{Unknown: true}}

func result(t *testing.T, texts map[string]string) Result {
	t.Helper()
	return Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: offline})
}

func TestTables(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []validated
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			t.Run(filepath.Base(file)+"/"+c.What, func(t *testing.T) {
				v := result(t, c.texts())
				same(t, "problems", v.Problems, c.Problems)
				same(t, "warnings", v.Warnings, c.Warnings)
				for _, p := range v.Problems { // each says what to do, and has a limited length
					if !strings.ContainsAny(p.Message, ";:") || len(p.Message) > 500 {
						t.Error(p.Message)
					}
				}
			})
		}
	}
}

func same(t *testing.T, what string, got []params.Problem, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: no %q", what, want[i])
		case i >= len(want):
			t.Errorf("%s: %s %s: %s was not expected", what, got[i].Parameter, got[i].Path, got[i].Message)
		default:
			place, part, _ := strings.Cut(want[i], ": ")
			if strings.TrimSpace(got[i].Parameter+" "+got[i].Path) != place || !strings.Contains(got[i].Message, part) {
				t.Errorf("%s: %s %s: %s\nwant %q", what, got[i].Parameter, got[i].Path, got[i].Message, want[i])
			}
		}
	}
}

// The same parameters in any iteration order of Go's maps give the same Result, byte for byte.
func TestSameInputSameResult(t *testing.T) {
	texts := map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true", "tags": "a=b,c=d,e=f",
		"karpenter_node_labels": "x=1,y=2,z=3", "karpenter_node_taints": "c:NoSchedule,a:NoExecute,b:NoSchedule",
		"karpenter_config": `{"nodePool":{"template":{"metadata":{"labels":{"b":"1","a":"2"}}}},` +
			`"ec2NodeClass":{"tags":{"z":"1","y":"2"}}}`,
		"additional_karpenter_nodepools_config": `[{"name":"b"},{"name":"a"}]`,
	}
	first := fmt.Sprint(result(t, texts))
	for range 50 {
		shuffled := map[string]string{}
		maps.Copy(shuffled, texts)
		if again := fmt.Sprint(result(t, shuffled)); again != first {
			t.Fatalf("\n%s\n%s", first, again)
		}
	}
}

// No input may cause a crash or a hang.
func TestHostileJSON(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"name":"p%d"}`, i))
	}
	for what, text := range map[string]string{
		"64 KB of [":         strings.Repeat("[", 64<<10),
		"64 KB of {":         strings.Repeat(`{"a":`, 13<<10),
		"deep and closed":    strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"invalid UTF-8":      "{\"nodePool\":\"\xff\xfe\"}",
		"a long number":      `{"nodePool":{"weight":` + strings.Repeat("9", 60000) + `}}`,
		"1,000 pools":        "[" + strings.Join(many, ",") + "]",
		"more than 64 KB":    "[" + strings.Repeat(" ", 64<<10) + "]",
		"base64 of a bomb":   strings.Repeat("W1tb", 30000),
		"a byte order mark":  "\ufeff{}",
		"a key of 60,000":    `{"` + strings.Repeat("k", 60000) + `":1}`,
		"a control sequence": "{\"nodePool\":{\"\u001b[31m\":1}}",
	} {
		for _, name := range []string{"karpenter_config", "additional_karpenter_nodepools_config"} {
			v := result(t, map[string]string{name: text})
			if len(v.Problems) == 0 {
				t.Errorf("%s: %s is taken", name, what)
			}
			for _, p := range v.Problems {
				if len(p.Message) > 1000 || strings.ContainsAny(p.Message, "\x00\x1b") {
					t.Errorf("%s: %s: %.200q", name, what, p.Message)
				}
			}
		}
	}
}

// Turning Karpenter off is never blocked, not even by manifests that Karpenter refuses.
func TestTurningOffIsNotHeldUpByManifests(t *testing.T) {
	previous := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "cluster_name": "demo"}
	parsed := params.Parse(params.Input{Rack: "demo", Previous: previous, Params: map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "false", "karpenter_config": `{"nodePool":{"weight":300},"x":1}`,
		"karpenter_node_labels": "karpenter.sh/x=y",
		"node_disk":             "60000",
	}})
	v := Validate(Input{Parsed: parsed, Facts: offline})
	if len(v.Problems) > 0 || len(v.Warnings) != 5 {
		t.Errorf("problems %v, warnings %v", v.Problems, v.Warnings)
	}
	t.Log("with requirements that Karpenter's own code panics on")
	reserved := offline
	reserved.Reservations = map[string]plan.Reservation{
		"cr-0123456789abcdef0": {State: "active", InstanceType: "m7i.large", Zone: "eu-central-1a"}}
	for _, key := range []string{"karpenter.k8s.aws/instance-family", "topology.kubernetes.io/zone", "example.com/x"} {
		for _, wrong := range []string{`"operator":"in","values":["m7i"]`, `"operator":"In","values":"m7i"`, `"operator":"Gt","values":["x"]`} {
			config := `{"nodePool":{"template":{"spec":{"requirements":[{"key":"` + key + `",` + wrong + `}]}}},"ec2NodeClass":` +
				`{"capacityReservationSelectorTerms":[{"id":"cr-0123456789abcdef0"}]}}`
			for _, on := range []string{"true", "false"} {
				parsed := params.Parse(params.Input{Rack: "demo", Previous: previous, Params: map[string]string{
					"karpenter_auth_mode": "true", "karpenter_enabled": on, "karpenter_config": config}})
				if v := Validate(Input{Parsed: parsed, Facts: reserved}); (len(v.Problems) > 0) != (on == "true") {
					t.Errorf("%s, enabled %s: %v", config, on, v.Problems)
				}
			}
		}
	}
}

// A controller that runs until the last node is gone keeps its values if others are refused, of which turning off only warns.
func TestTurningOffKeepsTheControllersValues(t *testing.T) {
	on := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_controller_config": `{"logLevel":"debug"}`}
	was := Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: on}), Facts: offline, Compare: true}).Plan
	off := func(config string) Result {
		texts := maps.Clone(on)
		texts["karpenter_enabled"], texts["karpenter_controller_config"] = "false", config
		facts := offline
		facts.Records.WasOn = true
		return Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts, Previous: on}), Facts: facts, Compare: true,
			InForce: &was})
	}
	text, err := os.ReadFile("testdata/attacks.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []validated
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{`{"logLevel":7}`, `{"strategy":{"x":1}}`, `{"settings":{"featureGates":{"nodeRepair":"true"}}}`,
		`{"settings":{"featureGates":7}}`, `{"controller":{"metrics":{"port":8081}}}`, `{"none":1}`, `{"settings":{"enableZonalShift":true}}`,
		`{"replicas":"x"}`, `{"controller":[]}`} {
		cases = append(cases, validated{Params: map[string]string{"karpenter_controller_config": config}, Problems: []string{"of a kind"}})
	}
	for _, c := range cases {
		config := c.Params["karpenter_controller_config"]
		if c.Problems == nil {
			continue
		}
		v := off(config)
		removes := slices.ContainsFunc(v.Plan.Steps, func(s plan.Step) bool { return s.Name == plan.FitStep })
		if len(v.Problems) > 0 || !removes || !reflect.DeepEqual(v.Plan.Controller.Release.Values, was.Controller.Release.Values) {
			t.Errorf("%s: problems %v, steps %v, %v", config, v.Problems, v.Plan.Steps, v.Plan.Controller.Release.Values)
		}
	}
	if v := off(`{"logLevel":"error"}`); v.Plan.Controller.Release.Values["logLevel"] != "error" {
		t.Errorf("others that are good: %v", v.Plan.Controller.Release.Values)
	}
}

// Manifests that passed the checks are not checked again. Others are checked, and compared with those in force.
func TestWhatWasCheckedIsNotCheckedAgain(t *testing.T) {
	parse := func(limit, age string) params.Result {
		return params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
			"karpenter_cpu_limit": limit, "karpenter_rotate_after": age}})
	}
	first := Validate(Input{Parsed: parse("10", ""), Facts: offline, Compare: true})
	facts := plan.Facts{
		Offline: true, Records: plan.Records{Applied: applied(&first.Plan), Checked: first.Objects},
		Pools: map[string]plan.PoolFacts{"workload": {Nodes: 3, CPU: "12", Memory: "24Gi"}},
	}
	again := Input{Parsed: parse("10", ""), Facts: facts, Compare: true, InForce: &first.Plan}
	if effects := Validate(again).Plan.Effects; again.Needs().Pools || len(effects) > 0 {
		t.Errorf("changes pools %v, effects %v", again.Needs().Pools, effects)
	}
	another := again
	another.Parsed = parse("11", "")
	other := Validate(another)
	nodes := 3
	if want := []plan.Effect{{Pool: "workload", Change: events.PoolChanged, Nodes: &nodes}}; !another.Needs().Pools ||
		!reflect.DeepEqual(other.Plan.Effects, want) {
		t.Errorf("changes pools %v, effects %v", another.Needs().Pools, other.Plan.Effects)
	}
	same(t, "warnings", other.Warnings, []string{"karpenter_cpu_limit: may have 11 of cpu, and 12 runs now on 3 nodes"})
	aged := again
	aged.Parsed = parse("10", "24h") // is in no manifest
	rotates := []plan.Effect{{Pool: "workload", Change: events.PoolChanged, MayReplace: true, Reasons: []string{"Rotated"}, Nodes: &nodes}}
	if effects := Validate(aged).Plan.Effects; !aged.Needs().Pools || !reflect.DeepEqual(effects, rotates) {
		t.Errorf("changes pools %v, effects %v", aged.Needs().Pools, effects)
	}
}

// If the cluster has been deleted, no nodes are drained.
func TestPoolsOfAClusterThatIsGone(t *testing.T) {
	on := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	was := result(t, on).Plan
	off := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "false"}
	gone := plan.Facts{Lost: &plan.Cluster{Name: "demo", ARN: "arn"}, Records: plan.Records{WasOn: true}}
	v := Validate(Input{
		Parsed: params.Parse(params.Input{Rack: "demo", Params: off, Previous: on, Removing: true}), Facts: gone, Compare: true, InForce: &was,
	})
	if len(v.Problems) > 0 || len(v.Plan.Effects) != 1 ||
		v.Plan.Effects[0].String() != "pool workload went with its cluster: Sawhorse ends through EC2 what is left of its nodes" {
		t.Errorf("%v, problems %v", v.Plan.Effects, v.Problems)
	}
}

// An invalid rack name is reported once, and not for everything that is derived from it.
func TestRackNames(t *testing.T) {
	for _, rack := range []string{"", "A B", "x\x00y", "-a", "a-", "../x", "{}", "é"} {
		texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true"}
		v := Validate(Input{Parsed: params.Parse(params.Input{Rack: rack, Params: texts}), Facts: offline})
		if len(v.Problems) != 1 || v.Problems[0].Parameter != "rack" {
			t.Errorf("%q: %v", rack, v.Problems)
		}
	}
}

// AWS's limit applies to the tags of karpenter_config and of the parameter together. A tag in both counts once.
func TestLimitOfTags(t *testing.T) {
	tags := func(from, n int) (pairs []string, object string) {
		fields := map[string]string{}
		for i := range n {
			key := fmt.Sprint("t", from+i)
			pairs, fields[key] = append(pairs, key+"=x"), "x"
		}
		text, err := json.Marshal(map[string]any{"ec2NodeClass": map[string]any{"tags": fields}})
		if err != nil {
			t.Fatal(err)
		}
		return pairs, string(text)
	}
	ofParameter, _ := tags(0, 30)
	for n, want := range map[int][]string{20: nil, 21: {"karpenter_config ec2NodeClass.tags: make 41 tags; allowed are 40"},
		4500: {"karpenter_config ec2NodeClass.tags: take out 4480"}} {
		_, config := tags(20, n)
		same(t, fmt.Sprint(n, " tags"), result(t, map[string]string{"tags": strings.Join(ofParameter, ","), "karpenter_config": config}).Problems,
			want)
	}
}

// Of thousands of problems a number is told, and those of the defaults are told once and not again for each pool. Each of these took
// from ten seconds to minutes of CPU, of which validate has seventeen seconds.
func TestThousandsOfProblems(t *testing.T) {
	list := func(n int, element string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(element, "#", fmt.Sprint(i)))
		}
		return strings.Join(all, ",")
	}
	spec := func(text string) string { return `{"nodePool":{"template":{"spec":{` + text + `}}}}` }
	pools := "[" + list(50, `{"name":"p#"}`) + "]"
	types := `"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]},` +
		`{"key":"node.kubernetes.io/instance-type","operator":"NotIn","values":[` + list(1500, `"c6i.#x"`) + `]}]`
	for what, c := range map[string]struct {
		parameter, value string
		problems         int
		last             string
	}{
		"restricted keys": {"karpenter_defaults_config",
			spec(`"requirements":[` + list(150, `{"key":"karpenter.sh/k#","operator":"Exists"}`) + `]`), 101,
			"at least 51 problems more than the 100"},
		"labels": {"karpenter_defaults_config", `{"nodePool":{"template":{"metadata":{"labels":{` + list(2000, `"karpenter.sh/k#":"x"`) + `}}}}}`,
			101, "problems more than the 100"},
		"elements of a wrong kind": {"karpenter_config", spec(`"startupTaints":[` + list(20000, "1") + `]`), 1,
			"has 20000 elements; allowed are 2000; take out 18000"},
		"taints that are good": {"karpenter_defaults_config",
			spec(`"taints":[` + list(1500, `{"key":"k#","effect":"NoSchedule"}`) + `]`), 0, ""},
		"types that nobody knows": {"karpenter_defaults_config", spec(types), 0, ""},
	} {
		v := result(t, map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
			"additional_karpenter_nodepools_config": pools, c.parameter: c.value})
		told := slices.ContainsFunc(v.Problems, func(p params.Problem) bool { return strings.Contains(p.Message, c.last) })
		if len(v.Problems) != c.problems || c.problems > 0 && !told {
			t.Errorf("%s: %d problems, want %d: %.300v", what, len(v.Problems), c.problems, v.Problems)
		}
	}
}

// A suggestion must not be as long as an overlong value.
func TestSuggestionsAreShort(t *testing.T) {
	var families []string
	for i := range 5000 {
		families = append(families, fmt.Sprint("C", i))
	}
	problems := result(t, map[string]string{"additional_karpenter_nodepools_config": `[{"name":"a","instance_families":"` +
		strings.Join(families, ",") + `"}]`}).Problems
	if len(problems) != 1 || len(problems[0].Message) > 500 {
		t.Errorf("%.1000v", problems)
	}
}

// The limits themselves are allowed, and one more is not: 100 pools, and 64 KiB of JSON, measured after decoding.
func TestLimits(t *testing.T) {
	pools := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"name":"p%d"}`, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	padded := func(n int) string { return "[" + strings.Repeat(" ", n-len(pools(1))) + pools(1)[1:] }
	encoded := base64.StdEncoding.EncodeToString([]byte(padded(params.MaxJSON)))
	for what, c := range map[string]struct{ value, problem string }{
		"100 pools":       {pools(100), ""},
		"101 pools":       {pools(101), "take out 1"},
		"64 KiB":          {padded(params.MaxJSON), ""},
		"64 KiB, encoded": {encoded, ""},
		"one byte more":   {padded(params.MaxJSON + 1), "64"},
	} {
		problems := result(t, map[string]string{"additional_karpenter_nodepools_config": c.value}).Problems
		if (len(problems) > 0) != (c.problem != "") || len(problems) > 0 && !strings.Contains(problems[0].Message, c.problem) {
			t.Errorf("%s: %v", what, problems)
		}
	}
}

// A pool of the plan in force that no pass has made is not changed or removed, but created, or nothing happens to it.
func TestAPoolThatWasPlannedButNeverMade(t *testing.T) {
	pools := func(text string) map[string]string {
		return map[string]string{"additional_karpenter_nodepools_config": text}
	}
	running := func(names ...string) plan.Facts {
		facts := observed()
		facts.Pools = map[string]plan.PoolFacts{}
		for _, name := range names {
			facts.Pools[name] = plan.PoolFacts{Nodes: 2}
		}
		return facts
	}
	was := compared(t, pools(`[{"name":"a","dedicated":true}]`), observed(), nil).Plan
	for _, c := range []struct {
		what    string
		is      string
		running plan.Facts
		want    string
	}{
		{"changed, not made", `[{"name":"a","dedicated":true,"cpu_limit":7}]`, running("workload"), "pool a is created"},
		{"the same, not made", `[{"name":"a","dedicated":true}]`, running("workload"), "pool a is created"},
		{"removed, not made", `[]`, running("workload"), ""},
		{"changed, made", `[{"name":"a","dedicated":true,"cpu_limit":7}]`, running("workload", "a"), "pool a is changed: its 2 nodes stay"},
		{"removed, made", `[]`, running("workload", "a"), "pool a is retired: it launches no more nodes, Karpenter empties " +
			"its 2 nodes, as its disruption budget allows, and it goes with the last one"},
		{"changed, not looked up", `[{"name":"a","dedicated":true,"cpu_limit":7}]`, observed(), "pool a is changed: its nodes stay"},
	} {
		var effects []string
		for _, e := range compared(t, pools(c.is), c.running, &was).Plan.Effects {
			effects = append(effects, e.String())
		}
		if got := strings.Join(effects, "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
