package validation

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func FuzzConfig(f *testing.F) { fuzz(f, "karpenter_config") }

func FuzzPools(f *testing.F) { fuzz(f, "additional_karpenter_nodepools_config") }

// Run these with -fuzzminimizetime=20x. Without it, go test takes a minute or more to minimize the first interesting
// input.

// fuzz validates any text of a JSON parameter while the others are valid. A refusal must name that parameter. An
// accepted text must give the same manifests each time, and they must fit Karpenter's types.
func fuzz(f *testing.F, parameter string) {
	for _, text := range seeds(f, parameter) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		validate := func() Result {
			return Validate(Input{Facts: offline, Parsed: params.Parse(params.Input{Rack: "demo", Params: map[string]string{
				"karpenter_auth_mode": "true", "karpenter_enabled": "true", parameter: text,
			}})})
		}
		first := validate()
		for _, p := range first.Problems {
			if p.Parameter != parameter {
				t.Errorf("%s is refused because of %s %s: %s", parameter, p.Parameter, p.Path, p.Message)
			}
		}
		for _, p := range append(first.Problems, first.Warnings...) {
			if sentence := p.Path + p.Message; p.Message == "" || !utf8.ValidString(sentence) || strings.ContainsFunc(p.Message, unprintable) {
				t.Errorf("%s %s: %q", p.Parameter, p.Path, p.Message)
			}
		}
		one, two := encoded(t, first), encoded(t, validate())
		if !bytes.Equal(one, two) {
			t.Errorf("not the same twice:\n%s\n%s", one, two)
		}
		if len(first.Problems) == 0 {
			decodes(t, first.Plan.NodePools.Objects)
		}
		off := Validate(Input{Facts: offline, Parsed: params.Parse(params.Input{Rack: "demo", Removing: true, Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "false", parameter: text,
		}})})
		if len(off.Problems) > 0 {
			t.Errorf("turning off is refused: %v", off.Problems)
		}
	})
}

// FuzzChange validates any karpenter_config while any other one is in force, as validate does: with the stored plan and
// known NodeClaims. It must not crash or hang, and the effects must be consistent and the same each time.
func FuzzChange(f *testing.F) {
	texts := seeds(f, "karpenter_config")
	for i, text := range texts {
		if !testing.Short() || i%4 == 0 {
			f.Add(texts[(i+1)%len(texts)], text)
		}
	}
	f.Fuzz(func(t *testing.T, was, is string) {
		facts := plan.Facts{Offline: true, Pools: map[string]plan.PoolFacts{"workload": {Nodes: 2, CPU: "8", Memory: "32Gi"}}}
		validate := func(text string, inForce *plan.Plan) Result {
			return Validate(Input{Facts: facts, Compare: inForce != nil, InForce: inForce, Parsed: params.Parse(params.Input{
				Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_config": text},
			})})
		}
		kept, err := json.Marshal(validate(was, nil).Plan)
		if err != nil {
			t.Fatal(err)
		}
		inForce := new(plan.Plan)
		if err := json.Unmarshal(kept, inForce); err != nil {
			t.Fatal(err)
		}
		amd, arm := claim(map[string]string{"kubernetes.io/arch": "amd64"}, nil), claim(map[string]string{"kubernetes.io/arch": "arm64"}, nil)
		for _, claims := range [][]plan.Object{nil, {amd, arm}} {
			facts.NodeClaims = claims
			first := validate(is, inForce)
			if one, two := encoded(t, first), encoded(t, validate(is, inForce)); !bytes.Equal(one, two) {
				t.Errorf("not the same twice:\n%s\n%s", one, two)
			}
			if len(first.Problems) > 0 && len(first.Plan.Effects) > 0 {
				t.Errorf("refused (%v), and compared: %v", first.Problems, first.Plan.Effects)
			}
			for _, e := range first.Plan.Effects {
				changed := e.Change == events.PoolChanged
				reasoned := (len(e.Reasons) > 0) == (changed && (e.Replaces || e.MayReplace))
				counted := (e.Replaced != nil) == (changed && claims != nil)
				if !reasoned || !counted || e.Replaced != nil && (*e.Replaced > *e.Nodes || (*e.Replaced > 0) != e.Replaces) {
					t.Errorf("%+v: %s", e, e)
				}
			}
		}
	})
}

// unprintable characters corrupt a terminal or a log. A line break makes one problem look like two.
func unprintable(r rune) bool { return unicode.IsControl(r) }

func encoded(t *testing.T, v Result) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decodes requires manifests to decode into Karpenter's own types, without unknown fields.
func decodes(t *testing.T, objects []plan.Object) {
	t.Helper()
	if len(objects) < 2 {
		t.Errorf("%d manifests", len(objects))
	}
	for _, o := range objects {
		var into any = &karpenter.NodePool{}
		if o["kind"] == "EC2NodeClass" {
			into = &ec2.EC2NodeClass{}
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// seeds returns the texts of a parameter in the tables.
func seeds(f *testing.F, parameter string) []string {
	f.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	var texts []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []validated
		if err := json.Unmarshal(content, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			if text, ok := c.texts()[parameter]; ok {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) < 20 {
		f.Fatalf("only %d seeds", len(texts))
	}
	return texts
}
