package examples

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rhysd/actionlint"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// arguments are those of aws_ssm_parameter that can be set, with whether they are required.
// https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/ssm_parameter
var arguments = map[string]bool{
	"name": true, "type": true, "allowed_pattern": false, "data_type": false, "description": false, "key_id": false,
	"overwrite": false, "region": false, "tags": false, "tier": false, "value": false, "value_wo": false, "insecure_value": false,
}

// Each folder's resources are parameters of a rack whose values a pass accepts.
func TestTerraform(t *testing.T) {
	for folder, want := range map[string]map[string]string{
		"terraform/settings": {
			"/sawhorse/racks/demo/params/additional_karpenter_nodepools_config": `[{"capacity_types":"spot","dedicated":true,"name":"batch"}]`,
			"/sawhorse/racks/demo/params/karpenter_cpu_limit":                   "120",
			"/sawhorse/racks/demo/params/karpenter_node_labels":                 "team=core",
		},
		"terraform/change": {
			"/sawhorse/racks/demo/change": `{"note":"the data team moves in","set":{"karpenter_cpu_limit":"140",` +
				`"karpenter_node_labels":"team=data"},"unset":["additional_karpenter_nodepools_config"]}`,
		},
	} {
		got := applied(t, folder)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", folder, name, got[name], value)
			}
			accepted(t, name, value)
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d parameters, want %d", folder, len(got), len(want))
		}
	}
}

// applied returns the parameters that Terraform would make of a folder: their names and values.
func applied(t *testing.T, folder string) map[string]string {
	t.Helper()
	file, problems := hclparse.NewParser().ParseHCLFile(filepath.Join(folder, "main.tf"))
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	body := file.Body.(*hclsyntax.Body)
	scope := &hcl.EvalContext{
		Variables: map[string]cty.Value{},
		Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc},
	}
	for _, block := range body.Blocks {
		if block.Type == "locals" {
			locals := map[string]cty.Value{}
			for name, attribute := range block.Body.Attributes {
				locals[name] = evaluated(t, attribute.Expr, scope)
			}
			scope.Variables["local"] = cty.ObjectVal(locals)
		}
	}
	all := map[string]string{}
	for _, block := range body.Blocks {
		if block.Type == "resource" {
			resource(t, block, scope, all)
		}
	}
	return all
}

// resource adds the parameters of a block: one, or one for each element of for_each.
func resource(t *testing.T, block *hclsyntax.Block, scope *hcl.EvalContext, all map[string]string) {
	t.Helper()
	if block.Labels[0] != "aws_ssm_parameter" {
		t.Fatalf("resource %s: it is none of aws_ssm_parameter", block.Labels)
	}
	for name := range block.Body.Attributes {
		if _, known := arguments[name]; !known && name != "for_each" {
			t.Errorf("aws_ssm_parameter has no argument %s", name)
		}
	}
	for name, required := range arguments {
		if required && block.Body.Attributes[name] == nil {
			t.Errorf("aws_ssm_parameter wants %s", name)
		}
	}
	one := func(scope *hcl.EvalContext) {
		text := func(name string) string { return evaluated(t, block.Body.Attributes[name].Expr, scope).AsString() }
		if kind := text("type"); kind != "String" {
			t.Errorf("the type is %s", kind)
		}
		all[text("name")] = text("value")
	}
	each := block.Body.Attributes["for_each"]
	if each == nil {
		one(scope)
		return
	}
	for key, value := range evaluated(t, each.Expr, scope).AsValueMap() {
		inner := scope.NewChild()
		inner.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(key), "value": value})}
		one(inner)
	}
}

func evaluated(t *testing.T, expression hcl.Expression, scope *hcl.EvalContext) cty.Value {
	t.Helper()
	value, problems := expression.Value(scope)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

// accepted tells that `sawhorse check` takes a parameter, or the parameters of a change.
func accepted(t *testing.T, name, value string) {
	t.Helper()
	set := map[string]string{filepath.Base(name): value}
	if strings.HasSuffix(name, "/change") {
		var change struct{ Set map[string]string }
		if err := json.Unmarshal([]byte(value), &change); err != nil {
			t.Fatal(err)
		}
		set = change.Set
	}
	input, err := json.Marshal(map[string]any{"rack": "demo", "params": set})
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("../.cache/bin/sawhorse", "check", "-")
	check.Stdin = bytes.NewReader(input)
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", name, err, said)
	}
}

// The workflow is one that GitHub accepts: keys, events, expressions, and the inputs of the actions that it uses.
func TestWorkflow(t *testing.T) {
	const path = "github-actions/.github/workflows/racks.yaml"
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.LintFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}
