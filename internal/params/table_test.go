package params

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTableIsInOrderAndComplete(t *testing.T) {
	types := []string{"bool", "integer", "list", "duration", "schedule", "text", "labels", "taints", "tags", "json", "version"}
	for i, p := range Table {
		if i > 0 && Table[i-1].Name >= p.Name {
			t.Errorf("%s stands behind %s", p.Name, Table[i-1].Name)
		}
		if !slices.Contains(types, p.Type) || !slices.Contains(Sections, p.Section) {
			t.Errorf("%s: type %q, section %q", p.Name, p.Type, p.Section)
		}
		if (p.Default == "") == (p.Absent == "") {
			t.Errorf("%s: it needs either a Default or an Absent", p.Name)
		}
		for _, word := range []string{p.Allowed, p.Example, p.Description, string(p.Pattern)} {
			if word == "" {
				t.Errorf("%s: Allowed, Example, Description or Pattern is empty", p.Name)
			}
		}
		for _, value := range []string{p.Default, p.Example} {
			if value != "" && (!p.matches(value) || p.Type != "json" && p.set(&Config{}, value) != nil) {
				t.Errorf("%s: its own default or example %q is refused", p.Name, value)
			}
		}
		// SSM's limits for a description and for an allowed pattern.
		if len(p.Description) > 1024 || len(p.AllowedPattern()) > 1024 {
			t.Errorf("%s: SSM takes 1024 characters", p.Name)
		}
	}
}

// What a pattern lets through and is refused all the same stands in the words, and so in the document: labels that Sawhorse
// sets itself, and names of its own pools.
func TestTheWordsNameWhatIsReserved(t *testing.T) {
	check := func(name string, v Value, word string, refused bool) {
		if named := strings.Contains(v.Allowed, word); named != refused {
			t.Errorf("%s: %s is refused %v, and named %v: %s", name, word, refused, named, v.Allowed)
		}
	}
	tried := 0
	for _, label := range []string{"convox.io/nodepool", "convox.io/system-node", "convox-build", "convox.io/label"} {
		for _, p := range Table {
			if p.Type == "labels" {
				check(p.Name, p.Value, label, p.set(&Config{}, label+"=x") != nil)
				tried++
			}
		}
		for _, f := range poolFields {
			if f.Type == "labels" {
				check("pools' "+f.Name, f.Value, label, f.set(&Pool{}, label+"=x") != nil)
				tried++
			}
		}
	}
	if tried != 4*3 {
		t.Errorf("%d values of labels were tried", tried)
	}
	for _, pool := range []string{"workload", "build", "default", "system", "batch"} {
		parsed := Parse(Input{Rack: "demo", Params: map[string]string{authMode: on, ParamAdditional: `[{"name":"` + pool + `"}]`}})
		for _, f := range poolFields {
			if f.Name == "name" {
				check("pools' name", f.Value, pool, len(parsed.Problems) > 0)
			}
		}
	}
}

func TestAllowedPatternIsTheWholeValueOrUnset(t *testing.T) {
	for _, p := range Table {
		allowed := regexp.MustCompile(p.AllowedPattern())
		// Only labels, taints and JSON accept white space at the ends. Base64 may have white space inside.
		spaced := p.Type == "labels" || p.Type == "taints" || p.Type == "json"
		for value, want := range map[string]bool{
			Unset: true, p.Example: true, "": false, "!" + Unset: false, Unset + "\n": p.Type == "json",
			p.Example + "\n": spaced, p.Example + " ": spaced, p.Example + "\n" + p.Example: p.Type == "json", "!" + p.Example: false,
		} {
			if allowed.MatchString(value) != want {
				t.Errorf("%s: %q: allowed %v, want %v", p.Name, value, !want, want)
			}
		}
	}
}

// SSM checks the pattern, and the passes call Parse. The pattern must accept everything that Parse accepts. Where only
// Parse refuses a value, the reason must be one that no pattern can express.
func TestPatternAgreesWithParser(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, p := range Table {
		allowed := regexp.MustCompile(p.AllowedPattern())
		taken := 0
		for range 1500 {
			value := mutate(random, p.Example)
			if value == "" || value == Unset {
				continue
			}
			message := ""
			texts := map[string]string{authMode: on} // otherwise karpenter_enabled=true is refused for another reason
			if p.Section == SectionAll {             // one without the other is refused for another reason
				texts[ParamBlockSchedule], texts[ParamBlockDuration] = "@yearly", "1m"
			}
			if p.Name == ParamWindow {
				texts = map[string]string{}
			}
			texts[p.Name] = value
			for _, problem := range Parse(Input{Rack: "demo", Params: texts}).Problems {
				if problem.Parameter == p.Name {
					message = problem.Message
				}
			}
			switch ok := allowed.MatchString(value); {
			case message == "" && !ok:
				t.Errorf("%s: %q is taken, but its pattern refuses it", p.Name, value)
			case message != "" && ok && p.Type != "json" && !strings.Contains(message, "which ") && !strings.Contains(message, ", but "):
				t.Errorf("%s: %q obeys the pattern and is refused without a reason: %s", p.Name, value, message)
			case message == "":
				taken++
			}
		}
		if taken == 0 {
			t.Errorf("%s: no value was taken: the test tests nothing", p.Name)
		}
	}
}

// mutate changes a valid value slightly, so that about half of the results stay valid.
func mutate(random *rand.Rand, value string) string {
	pieces := []string{
		"0", "1", "9", "99999", "%", ",", "h", "m", "s", "d", " ", "\n", "-", "_", ".", "a", "Z", "٣", "true", "Never", "spot",
		"arm64", "unset",
	}
	text := []byte(value)
	for range random.IntN(3) {
		at := random.IntN(len(text) + 1)
		switch piece := pieces[random.IntN(len(pieces))]; random.IntN(4) {
		case 0:
			text = []byte(piece)
		case 1:
			text = slices.Insert(text, at, []byte(piece)...)
		case 2:
			text = slices.Delete(text, min(at, len(text)), min(at+1, len(text)))
		case 3:
			text = append(append(text, ','), text...)
		}
	}
	return string(text)
}

// FuzzParse looks for texts that crash the parser, or that it accepts although the pattern refuses them. Run it with:
// go test -fuzz FuzzParse ./internal/params
func FuzzParse(f *testing.F) {
	for _, p := range Table {
		f.Add(p.Name, p.Example)
	}
	f.Add("karpenter_cpu_limt", "1")
	f.Fuzz(func(t *testing.T, name, value string) {
		r := Parse(Input{Rack: "demo", Params: map[string]string{name: value}})
		p, known := Lookup(name)
		if !known {
			if len(r.Problems) != 1 || r.Problems[0].Parameter != NewProblem(name, "", "").Parameter {
				t.Fatalf("the unknown name %q: %v", name, r.Problems)
			}
			return
		}
		if value != "" && value != Unset && len(r.Problems) == 0 && !regexp.MustCompile(p.AllowedPattern()).MatchString(value) {
			t.Fatalf("%s: %q is taken", name, value)
		}
	})
}
