package params

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// cases holds the valid and the invalid values of one parameter.
type cases struct {
	// Field is the path in the Config's JSON. Accept maps each valid text to the value expected there, null for an
	// absent field.
	Field  string
	Accept map[string]any
	// Reject maps each invalid text to the expected end of the problem.
	Reject map[string]string
	// With are parameters without which no text is valid.
	With map[string]string
}

func (c cases) parse(name, value string) Result {
	texts := maps.Clone(c.With)
	if texts == nil {
		texts = map[string]string{}
	}
	texts[name] = value
	return Parse(Input{Rack: "demo", Params: texts})
}

func values(t *testing.T) map[string]cases {
	t.Helper()
	text, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]cases{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryParameterHasGoodAndBadValues(t *testing.T) {
	all := values(t)
	for _, p := range Table {
		if c := all[p.Name]; p.Type != "json" && (len(c.Accept) == 0 || len(c.Reject) == 0) {
			t.Errorf("%s: testdata/values.json has no good or no bad value", p.Name)
		}
		delete(all, p.Name)
	}
	for name := range all {
		t.Errorf("%s: testdata/values.json has it and the table has not", name)
	}
}

func TestAccept(t *testing.T) {
	for name, c := range values(t) {
		for value, want := range c.Accept {
			r := c.parse(name, value)
			if len(r.Problems) > 0 {
				t.Errorf("%s=%q: %v", name, value, r.Problems)
			}
			if got := field(t, r.Config, c.Field); !reflect.DeepEqual(got, want) {
				t.Errorf("%s=%q: %s is %v, want %v", name, value, c.Field, got, want)
			}
			if r.Effective[name] != value {
				t.Errorf("%s=%q: in force is %q", name, value, r.Effective[name])
			}
		}
	}
}

// A problem names the parameter, its value, what is allowed and what to write instead.
func TestReject(t *testing.T) {
	for name, c := range values(t) {
		p, _ := Lookup(name)
		for value, advice := range c.Reject {
			problems := c.parse(name, value).Problems
			if len(problems) != 1 || problems[0].Parameter != name || problems[0].Path != "" {
				t.Errorf("%s=%q: problems %v, want one", name, value, problems)
				continue
			}
			message := problems[0].Message
			for _, part := range []string{name + " is " + Quoted(value), "allowed is " + p.Allowed + "; "} {
				if !strings.Contains(message, part) {
					t.Errorf("%s=%q: %q is not in %q", name, value, part, message)
				}
			}
			if !strings.HasSuffix(message, "; "+advice) {
				t.Errorf("%s=%q: advice %q is not the end of %q", name, value, advice, message)
			}
			// The suggested value must be accepted.
			if better, ok := strings.CutPrefix(advice, "write "); ok {
				if again := c.parse(name, strings.TrimPrefix(better, "for example, ")); len(again.Problems) > 0 && name != enabled {
					t.Errorf("%s=%q: the advice is refused: %v", name, value, again.Problems)
				}
			}
		}
	}
}

func TestAbsentUnsetAndEmptyAreTheDefault(t *testing.T) {
	absent := Parse(Input{Rack: "demo"})
	if len(absent.Problems)+len(absent.Warnings) > 0 {
		t.Fatalf("an empty rack: %v %v", absent.Problems, absent.Warnings)
	}
	for _, text := range []string{"", Unset, Default} {
		all := map[string]string{}
		for _, p := range Table {
			all[p.Name] = text
		}
		if r := Parse(Input{Rack: "demo", Params: all}); !reflect.DeepEqual(r, absent) {
			t.Errorf("%q: %+v, want %+v", text, r, absent)
		}
	}
	defaults := map[string]string{}
	for _, p := range Table {
		if p.Default != "" {
			defaults[p.Name] = p.Default
		}
	}
	r := Parse(Input{Rack: "demo", Params: defaults})
	if len(r.Config.Given) != len(defaults) {
		t.Errorf("a written default sets its parameter: %v", r.Config.Given)
	}
	if r.Config.Given = nil; !reflect.DeepEqual(r.Config, absent.Config) {
		t.Errorf("the defaults written out: %+v, want %+v", r.Config, absent.Config)
	}
}

// A changed default would change every rack.
func TestDefaults(t *testing.T) {
	want := `{"rack":"demo","clusterName":"demo","nodeDisk":20,"highAvailability":true,"workload":{"name":"",` +
		`"capacityTypes":["on-demand"],"cpuLimit":100,` +
		`"memoryLimitGB":400,"disk":0,"consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"30s","nodeExpiry":"720h",` +
		`"disruptionBudget":"10%","volumeType":"gp3","os":"al2023"},` +
		`"build":{"name":"","capacityTypes":["on-demand"],"cpuLimit":32,"memoryLimitGB":256,"disk":0,"consolidationPolicy":"",` +
		`"consolidateAfter":"60s","nodeExpiry":"","volumeType":""}}`
	got, err := json.Marshal(Parse(Input{Rack: "demo"}).Config)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestAllProblemsInOrderAndTheSameEachTime(t *testing.T) {
	in := Input{Rack: "demo", Params: map[string]string{"paused": "maybe", "karpenter_cpu_limit": "0", "cpu": "1", "node_disk": "x"}}
	first := Parse(in)
	var got []string
	for _, p := range first.Problems {
		got = append(got, p.Parameter)
	}
	if want := []string{"cpu", "karpenter_cpu_limit", "node_disk", "paused"}; !slices.Equal(got, want) {
		t.Errorf("problems of %v, want %v", got, want)
	}
	for range 50 {
		in.Params = maps.Clone(in.Params) // a map with another iteration order
		if again := Parse(in); !reflect.DeepEqual(again, first) {
			t.Fatalf("the same input: %+v, before %+v", again, first)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"karpenter_cpu_limt":        "did you mean karpenter_cpu_limit?",
		"Karpenter_Enabled":         "did you mean karpenter_enabled?",
		"KARPENTER_ENABLED":         "did you mean karpenter_enabled?",
		"karpenter_instance_family": "did you mean karpenter_instance_families?",
		"workload/cpu_limit":        "did you mean karpenter_cpu_limit?",
		"zz":                        "delete it (sawhorse params lists the names there are)",
		strings.Repeat("x", 2000):   "delete it (sawhorse params lists the names there are)",
	} {
		// A parameter that register created and that no longer exists is refused too.
		for _, value := range []string{"1", Unset} {
			problems := Parse(Input{Rack: "demo", Params: map[string]string{name: value}}).Problems
			if len(problems) != 1 || problems[0].Parameter != name || !strings.HasSuffix(problems[0].Message, "; "+want) {
				t.Errorf("%.40s=%s: %v, want %q", name, value, problems, want)
			}
		}
	}
}

func TestSecureString(t *testing.T) {
	r := Parse(Input{Rack: "demo", Params: map[string]string{"node_disk": ""}, Secure: []string{"node_disk"}})
	if len(r.Problems) != 1 || r.Problems[0].Parameter != "node_disk" || !strings.Contains(r.Problems[0].Message, "--type String") {
		t.Errorf("%v", r.Problems)
	}
}

func TestLongValuesAreCutInSentences(t *testing.T) {
	for value, shown := range map[string]string{
		strings.Repeat("x", 5000): strings.Repeat("x", 60), strings.Repeat("ü", 2000): strings.Repeat("ü", 30),
		"x" + strings.Repeat("ü", 2000): "x" + strings.Repeat("ü", 29), // the 60th byte is in the middle of a letter
	} {
		problems := Parse(Input{Rack: "demo", Params: map[string]string{"karpenter_cpu_limit": value}}).Problems
		if len(problems) != 1 || len(problems[0].Message) > 300 || !strings.Contains(problems[0].Message, ` is "`+shown+`…"`) {
			t.Errorf("%.10s…: %v", value, problems)
		}
	}
}

// The written value with its mistake corrected can be copied if it has at most 300 bytes. Of a longer one the sentence would
// be hard to read.
func TestLongValuesAreNotCorrected(t *testing.T) {
	for length, want := range map[int]bool{300: true, 301: false} {
		corrected := "a=" + strings.Repeat("x", 200)
		corrected += ",b=" + strings.Repeat("y", length-len(corrected)-3)
		problems := Parse(Input{Rack: "demo", Params: map[string]string{"tags": strings.ReplaceAll(corrected, ",", " , ")}}).Problems
		if len(problems) != 1 || strings.HasSuffix(problems[0].Message, "; write "+corrected) != want {
			t.Errorf("%d bytes: %v", length, problems)
		}
	}
}

// Problems are written into JSON and into the log, both of which are UTF-8: other bytes of names and values are
// escaped.
func TestProblemsAreValidUTF8(t *testing.T) {
	texts := []string{"\xff", "\xff.json", "/\xff", "s3://b\xff/k", "s3://bucket/\xff", "a\xff=b,\xff", "\xff:NoSchedule", "[\xff]"}
	for _, p := range append(slices.Clone(Table), Param{Name: "\xff"}, Param{Name: "karpenter_\xffcpu_limit"}) {
		for _, text := range texts {
			r := Parse(Input{Rack: "demo", Params: map[string]string{p.Name: text}})
			if len(r.Problems)+len(r.Warnings) == 0 {
				t.Errorf("%s=%q is accepted", p.Name, text)
			}
			for _, each := range append(r.Problems, r.Warnings...) {
				if !utf8.ValidString(each.Parameter) || !utf8.ValidString(each.Path) || !utf8.ValidString(each.Message) {
					t.Errorf("%q=%q: %q", p.Name, text, each)
				}
			}
		}
	}
	if got := NewProblem("a\xff", "b\x80", "%s", "ü\xc3 \x01é").Message; got != `ü\xc3 \x01é` {
		t.Errorf("escaped: %q", got)
	}
}

// field returns the value at a path like workload.cpuLimit. Numbers are JSON numbers, an absent field is nil.
func field(t *testing.T, config Config, path string) any {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			t.Fatalf("%s: %s is no object", path, strconv.Quote(name))
		}
		at = object[name]
	}
	return at
}

// Too many names give one problem. Problems of known parameters are still reported.
func TestACrowdedTreeIsOneProblem(t *testing.T) {
	in := Input{Rack: "demo", Params: map[string]string{"node_disk": "x"}}
	for i := range MostNames - 1 {
		in.Params[fmt.Sprintf("p%03d", i)] = "x"
	}
	if r := Parse(in); len(r.Problems) != MostNames {
		t.Errorf("%d problems with %d names", len(r.Problems), len(in.Params))
	}
	in.Params["one_more"] = "x"
	r := Parse(in)
	if len(r.Problems) != 2 || r.Problems[0].Parameter != "node_disk" || r.Problems[1].Parameter != "rack" ||
		!strings.Contains(r.Problems[1].Message, "more than 200 names") {
		t.Errorf("%v", r.Problems)
	}
}

// A NUL character is refused in a key as in a text: AWS takes it nowhere, and it separates the parts of a path.
func TestNULInJSON(t *testing.T) {
	for json, path := range map[string]string{
		`{"ec2NodeClass":{"tags":{"team":"a\u0000b"}}}`: `ec2NodeClass.tags.team`,
		`{"ec2NodeClass":{"tags":{"a\u0000b":"web"}}}`:  `ec2NodeClass.tags["a\x00b"]`,
	} {
		got := Parse(Input{Rack: "demo", Params: map[string]string{ParamOverride: json}}).Problems
		if want := path + " has a NUL character; leave it out"; len(got) != 1 || got[0].Path != path || got[0].Message != want {
			t.Errorf("%s: %v, want %s", json, got, want)
		}
	}
}
