package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDifferencesOfValues(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{`{"a":1,"b":"x"}`, `{"a":2,"b":"x"}`, `a: 1 → 2`},
		{`{"a":{"b":1}}`, `{"a":{"c":1}}`, "a.b: removed 1\na.c: added 1"},
		{`{"a":null}`, `{"a":["x"]}`, `a: null → ["x"]`},
		{`{"karpenter.sh/x":"1"}`, `{"karpenter.sh/x":"2"}`, `["karpenter.sh/x"]: "1" → "2"`},
		{`{"a":["x","y"]}`, `{"a":["y","z"]}`, "a: removed \"x\"\na: added \"z\""},
		{`{"a":["x","y"]}`, `{"a":["y","x"]}`, `a: ["x","y"] → ["y","x"]`},
		{`{"a":["x","x"]}`, `{"a":["x"]}`, `a: ["x","x"] → ["x"]`},
		{`{"a":[{"name":"x","v":1},{"name":"y"}]}`, `{"a":[{"name":"z"},{"name":"x","v":2}]}`,
			"a[x].v: 1 → 2\na[y]: removed {\"name\":\"y\"}\na[z]: added {\"name\":\"z\"}"},
		{`{"o":[{"kind":"NodePool","metadata":{"name":"a"},"spec":{"n":1}}]}`,
			`{"o":[{"kind":"NodePool","metadata":{"name":"a"},"spec":{"n":2}}]}`,
			"o[NodePool/a].spec.n: 1 → 2"},
		{`{"r":[{"key":"k","v":1},{"key":"k","v":2}]}`, `{"r":[{"key":"k","v":3}]}`,
			`r: [{"key":"k","v":1},{"key":"k","v":2}] → [{"key":"k","v":3}]`},
		{`{"n":[{"kind":"EC2NodeClass","metadata":{"name":"a"},"spec":{"userData":"TOKEN=1"}}]}`,
			`{"n":[{"kind":"EC2NodeClass","metadata":{"name":"a"},"spec":{"userData":"TOKEN=2"}}]}`,
			"n[EC2NodeClass/a].spec.userData: changed"},
		{`{"spec":{}}`, `{"spec":{"userData":"TOKEN=2"}}`, "spec.userData: changed"},
		{`{"a":"<"}`, `{"a":"` + strings.Repeat("ü", 70) + `"}`, `a: "<" → "` + strings.Repeat("ü", 59) + "…"},
	} {
		var old, new any
		if err := json.Unmarshal([]byte(c.old), &old); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.new), &new); err != nil {
			t.Fatal(err)
		}
		var lines comparison
		if lines.compare("", old, new); strings.Join(lines, "\n") != c.want {
			t.Errorf("%s and %s:\n%s\nwant\n%s", c.old, c.new, strings.Join(lines, "\n"), c.want)
		}
	}
}

// A section differs if and only if its fingerprint does.
func TestDifferencesAreThoseOfTheFingerprints(t *testing.T) {
	plans := []*Plan{
		{},
		{Access: Access{Mode: "API"}, Controller: Controller{CRDs: CRDs{Present: true}}},
		{Access: Access{Mode: "API"}, Nodegroups: Nodegroups{BuildMin: new(1)}, Autoscaler: Autoscaler{Managed: []string{"a"}}},
		{Nodegroups: Nodegroups{BuildMin: new(2), BuildEmpty: true}, NodePools: NodePools{Objects: []Object{{"kind": "NodePool"}}}},
	}
	for _, later := range plans {
		for _, r := range table {
			later.Steps = append(later.Steps, Step{Name: r.name})
		}
		for _, earlier := range plans {
			differ := map[string]bool{}
			for _, d := range Differences(earlier, later) {
				differ[d.Step] = true
			}
			for _, r := range table {
				if want := fingerprint(r.section(earlier)) != fingerprint(r.section(later)); differ[r.name] != want {
					t.Errorf("%s: differs %v, its fingerprint %v", r.name, differ[r.name], want)
				}
			}
		}
	}
	if all := Differences(nil, plans[1]); len(all) == 0 {
		t.Error("nothing is new without an earlier plan")
	}
}
