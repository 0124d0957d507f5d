package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const threePools = `"build_node_enabled":"true","tags":"team=web,cost=1","karpenter_node_labels":"b=2,a=1",` +
	`"additional_karpenter_nodepools_config":"[{\"name\":\"zoo\"},{\"name\":\"gpu\",\"dedicated\":true}]"`

// kinds returns the objects by kind and name.
func kinds(objects []plan.Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, fmt.Sprint(o["kind"], "/", o["metadata"].(map[string]any)["name"]))
	}
	return all
}

// Compares the complete manifests.
func TestRenderYAML(t *testing.T) {
	t.Parallel()
	golden(t, "render.yaml", sawhorse(t, on(threePools), "render", "-o", "yaml", "-").ends(t, 0).stdout)
}

func TestRenderYAMLSaysWhatJSONSays(t *testing.T) {
	t.Parallel()
	objects := decoded[[]plan.Object](t, sawhorse(t, on(threePools), "render", "-o", "json", "-").ends(t, 0).stdout)
	documents := strings.Split(sawhorse(t, on(threePools), "render", "-o", "yaml", "-").ends(t, 0).stdout, "---\n")
	if len(documents) != len(objects) {
		t.Fatalf("%d documents, %d objects", len(documents), len(objects))
	}
	for i, document := range documents {
		var object plan.Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || fmt.Sprint(object) != fmt.Sprint(objects[i]) {
			t.Errorf("%v: %v\nwant %v", err, object, objects[i])
		}
	}
}

func TestRenderNoneWhereKarpenterIsOff(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"rack":"demo"}`,
		`{"rack":"demo","params":{"karpenter_auth_mode":"true","additional_karpenter_nodepools_config":"[{\"name\":\"gpu\"}]"}}`,
		`{"rack":"demo","params":{"karpenter_auth_mode":"true","karpenter_enabled":"false"},` +
			`"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true"}}`,
	} {
		if got := sawhorse(t, input, "render", "-").ends(t, 0).stdout; got != "[]\n" {
			t.Errorf("%s: %q", input, got)
		}
		if got := sawhorse(t, input, "render", "-o", "yaml", "-").ends(t, 0).stdout; got != "" {
			t.Errorf("%s: %q", input, got)
		}
		if got := sawhorse(t, input, "render", "--batch", "-").ends(t, 0).stdout; got != "[]\n" {
			t.Errorf("%s: %q", input, got)
		}
	}
}

func TestRenderGivesTheSameBytesEachTime(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		first := sawhorse(t, on(threePools), "render", "-o", format, "-").stdout
		for range 5 {
			if again := sawhorse(t, on(threePools), "render", "-o", format, "-").stdout; again != first {
				t.Fatalf("%s\n%s", first, again)
			}
		}
	}
}

// The output that a script pipes into kubectl is empty if the input is rejected.
func TestRenderRefused(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		got := sawhorse(t, on(`"karpenter_arch":"x86","karpenter_config":"{\"nodePool\":{\"weight\":300}}"`), "render", "-o", format, "-")
		want := "problem  karpenter_arch: karpenter_arch is \"x86\"; allowed is amd64, arm64, or both with a comma; did you mean amd64?\n" +
			"problem  karpenter_config nodePool.weight: "
		if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestRenderBatch(t *testing.T) {
	t.Parallel()
	input := strings.Join([]string{on(""), `{"rack":"demo"}`, on(`"paused":"maybe"`), `{`, on(threePools)}, "\n")
	lines := strings.Split(strings.TrimSuffix(sawhorse(t, input, "render", "--batch", "-").ends(t, 1).stdout, "\n"), "\n")
	if len(lines) != 5 || lines[1] != "[]" {
		t.Fatalf("%q", lines)
	}
	if got := kinds(decoded[[]plan.Object](t, lines[0])); !slices.Equal(got, []string{"EC2NodeClass/workload", "NodePool/workload"}) {
		t.Errorf("%v", got)
	}
	if got := decoded[answer](t, lines[2]); got.Accepted || len(got.Problems) != 1 || got.Problems[0].Parameter != "paused" {
		t.Errorf("%+v", got)
	}
	if got := decoded[answer](t, lines[3]); got.Accepted || len(got.Problems) != 1 || got.Problems[0].Parameter != "input" {
		t.Errorf("%+v", got)
	}
	alone := decoded[[]plan.Object](t, sawhorse(t, on(threePools), "render", "-").stdout)
	if got := decoded[[]plan.Object](t, lines[4]); fmt.Sprint(got) != fmt.Sprint(alone) {
		t.Errorf("in a batch %v\nalone %v", got, alone)
	}
}
