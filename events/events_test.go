package events

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contracts lists every event: the name of its files, its detail-type, its Go type.
var contracts = []struct {
	file   string
	detail Detail
}{
	{"reconcile-requested", ReconcileRequested{}},
	{"reconcile-started", ReconcileStarted{}},
	{"reconciled", Reconciled{}},
	{"rejected", Rejected{}},
	{"reconcile-failed", ReconcileFailed{}},
	{"rolled-out", RolledOut{}},
	{"degraded", Degraded{}},
	{"recovered", Recovered{}},
}

// schema compiles NAME.schema.json. References to other schemas are resolved in this directory.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	files, err := filepath.Glob("*.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var url string
	for _, file := range files {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, file)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		id := document.(map[string]any)["$id"].(string)
		if err := compiler.AddResource(id, document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if file == name+".schema.json" {
			url = id
		}
	}
	compiled, err := compiler.Compile(url)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return compiled
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestSamplesKeepTheirContracts(t *testing.T) {
	for _, c := range contracts {
		t.Run(c.file, func(t *testing.T) {
			sample := decode(t, read(t, c.file+".sample.json"))
			if err := schema(t, c.file).Validate(sample); err != nil {
				t.Errorf("the sample breaks its schema: %v", err)
			}
			if got := sample["detail-type"]; got != c.detail.DetailType() {
				t.Errorf("detail-type %q, the type says %q", got, c.detail.DetailType())
			}
			if got := sample["source"]; !strings.HasSuffix(c.file, "-requested") && got != Source {
				t.Errorf("source %q, want %q", got, Source)
			}
			text, err := json.Marshal(sample["detail"])
			if err != nil {
				t.Fatal(err)
			}
			value := reflect.New(reflect.TypeOf(c.detail)).Interface()
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(value); err != nil {
				t.Fatalf("the type does not take the sample: %v", err)
			}
			again, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if got := decode(t, again); !reflect.DeepEqual(got, sample["detail"]) {
				t.Errorf("re-encoded\n got %s\nwant %s", again, text)
			}
		})
	}
}

// An event without optional fields is valid too: lists marshal to [], not null.
func TestEmptyListsAreLists(t *testing.T) {
	pass := Pass{Rack: "demo", Execution: "arn:aws:states:eu-central-1:123456789012:execution:Sawhorse-reconcile:x"}
	text, err := json.Marshal(map[string]any{"detail-type": TypeReconciled, "source": Source, "detail": Reconciled{pass}})
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t, "reconciled").Validate(decode(t, text)); err != nil {
		t.Error(err)
	}
}

// The schema has the causes that the node check finds.
func TestTheSchemaHasEveryCause(t *testing.T) {
	for _, c := range Causes {
		sample := decode(t, read(t, "degraded.sample.json"))
		sample["detail"].(map[string]any)["waiting"].([]any)[0].(map[string]any)["cause"] = string(c.Cause)
		if err := schema(t, "degraded").Validate(sample); err != nil {
			t.Errorf("%s: %v", c.Cause, err)
		}
	}
}

// An event that is too long loses pools, and says how many.
func TestARolloutOfManyPoolsIsShortened(t *testing.T) {
	event := RolledOut{Rack: "demo", Pools: List[RolledOutPool]{{"a", 1}, {"b", 2}, {"c", 3}}}
	if event.Shorten(30); len(event.Pools) != 1 || event.Omitted != 2 {
		t.Errorf("%+v", event)
	}
	degraded := Degraded{Pools: List[DegradedPool]{{"a", "r"}, {"b", "r"}, {"c", "r"}}}
	if degraded.Shorten(40); len(degraded.Pools) != 1 || degraded.Omitted != 2 {
		t.Errorf("%+v", degraded)
	}
}

func TestSchemasRefuse(t *testing.T) {
	for name, breakIt := range map[string]func(detail map[string]any){
		"no rack":            func(d map[string]any) { delete(d, "rack") },
		"a bad rack":         func(d map[string]any) { d["rack"] = "demo-" },
		"an unknown field":   func(d map[string]any) { d["surprise"] = true },
		"null for a list":    func(d map[string]any) { d["changed"] = nil },
		"an unnamed problem": func(d map[string]any) { d["problems"] = []any{map[string]any{"message": "no"}} },
		"no problem":         func(d map[string]any) { d["problems"] = []any{} },
		"a nameless change":  func(d map[string]any) { d["change"] = "" },
	} {
		t.Run(name, func(t *testing.T) {
			sample := decode(t, read(t, "rejected.sample.json"))
			breakIt(sample["detail"].(map[string]any))
			if schema(t, "rejected").Validate(sample) == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestSchemaOfARequestRefuses(t *testing.T) {
	for name, breakIt := range map[string]func(detail map[string]any){
		"no rack":          func(d map[string]any) { delete(d, "rack") },
		"an unknown field": func(d map[string]any) { d["forced"] = true },
		"force as a flag":  func(d map[string]any) { d["force"] = true },
		"an unknown word":  func(d map[string]any) { d["force"] = []any{"rooms"} },
		"a flag as a text": func(d map[string]any) { d["full"] = "true" },
		"a change":         func(d map[string]any) { d["dryRun"], d["set"] = false, map[string]any{"node_disk": "30"} },
		"a number in set":  func(d map[string]any) { d["set"] = map[string]any{"karpenter_cpu_limit": 200.0} },
		"unset as a text":  func(d map[string]any) { d["unset"] = "karpenter_cpu_limit" },
		"a long request":   func(d map[string]any) { d["request"] = strings.Repeat("r", MaxRequest+1) },
	} {
		t.Run(name, func(t *testing.T) {
			sample := decode(t, read(t, "reconcile-requested.sample.json"))
			sample["detail"].(map[string]any)["request"] = strings.Repeat("é", MaxRequest)
			if err := schema(t, "reconcile-requested").Validate(sample); err != nil {
				t.Fatal(err)
			}
			breakIt(sample["detail"].(map[string]any))
			if schema(t, "reconcile-requested").Validate(sample) == nil {
				t.Error("accepted")
			}
		})
	}
}

// The answer to an event that names no rack, or no valid one, has an empty name.
func TestAnAnswerWithoutARack(t *testing.T) {
	sample := decode(t, read(t, "rejected.sample.json"))
	sample["detail"].(map[string]any)["rack"], sample["detail"].(map[string]any)["request"] = "", "build-1742"
	if err := schema(t, "rejected").Validate(sample); err != nil {
		t.Error(err)
	}
}

// The sample need not have every optional field, so the schema and the type are compared too.
func TestTheFieldsOfASchemaAreThoseOfItsType(t *testing.T) {
	pass := decode(t, read(t, "pass.schema.json"))
	definitions := pass["$defs"].(map[string]any)
	same := func(what string, schema map[string]any, message any) {
		var want []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(message)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				want = append(want, name)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		got := maps.Clone(properties)
		if schema["$ref"] == "pass.schema.json" {
			got = maps.Clone(pass["properties"].(map[string]any))
			maps.Copy(got, properties)
		}
		slices.Sort(want)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%s: the schema has %q, the type %q", what, names, want)
		}
	}
	for _, c := range contracts {
		event := decode(t, read(t, c.file+".schema.json"))["properties"].(map[string]any)
		same(c.file, event["detail"].(map[string]any), c.detail)
	}
	same("pass", pass, Pass{})
	for name, message := range map[string]any{
		"poolEffect": PoolEffect{}, "difference": Difference{}, "change": Change{}, "problem": Problem{},
	} {
		same(name, definitions[name].(map[string]any), message)
	}
}

func TestEveryFileBelongsToAnEvent(t *testing.T) {
	known := map[string]bool{"pass.schema.json": true}
	for _, c := range contracts {
		known[c.file+".schema.json"], known[c.file+".sample.json"] = true, true
	}
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s belongs to no event", file)
		}
		delete(known, file)
	}
	if len(known) > 0 {
		t.Errorf("missing: %s", strings.Join(keys(known), ", "))
	}
}

func keys(m map[string]bool) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

// The schemas must accept the events in docs/events.md.
func TestTheDocumentedEventsAreTaken(t *testing.T) {
	text := read(t, "../docs/events.md")
	entries := regexp.MustCompile(`--entries '(.*)'`).FindAllSubmatch(text, -1)
	if len(entries) != 2 {
		t.Fatalf("%d commands that put events", len(entries))
	}
	for _, entry := range entries {
		var all []struct{ EventBusName, Source, DetailType, Detail string }
		if err := json.Unmarshal(entry[1], &all); err != nil || len(all) != 1 {
			t.Fatalf("%s: %v", entry[1], err)
		}
		if err := schema(t, "reconcile-requested").Validate(map[string]any{
			"detail-type": all[0].DetailType, "source": all[0].Source, "detail": decode(t, []byte(all[0].Detail)),
		}); err != nil {
			t.Errorf("%s: %v", entry[1], err)
		}
	}
}
