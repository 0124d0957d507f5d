package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// Runs cdk-nag's AwsSolutions on both stacks.
func TestNagFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it")
	}
	for _, stack := range stacks {
		found := assertions.Annotations_FromStack(stack)
		errors := *found.FindError(jsii.String("*"), assertions.Match_AnyValue())
		warnings := *found.FindWarning(jsii.String("*"), assertions.Match_AnyValue())
		for _, m := range slices.Concat(errors, warnings) {
			t.Error(text(m))
		}
	}
}

// A reason that matches nothing could hide a finding later.
func TestEveryAcceptedWildcardExists(t *testing.T) {
	var have []string
	for _, g := range production.grants() {
		for _, r := range g.resources {
			// In the form of cdk-nag, which concatenates the parts of a join.
			joined := strings.NewReplacer(`{"Fn::GetAtt":["`, "<", `","Arn"]}`, ".Arn>", `"`, "", "]]}", "", ",", "")
			have = append(have, "Resource::"+joined.Replace(text(r)))
		}
		for _, a := range g.actions {
			have = append(have, "Action::"+a.(string))
		}
	}
	for _, w := range wildcards {
		if !slices.ContainsFunc(have, func(h string) bool { return strings.HasSuffix(h, w.ends) }) {
			t.Errorf("%s is in no statement", w.ends)
		}
	}
}

// cfn-lint checks the schemas of CloudFormation's resources, and the language of the state machine. It checks the state
// machine in a second copy of each template, with the substitutions applied and without suppressions.
func TestLintFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it")
	}
	lint, err := filepath.Abs("../.cache/venv/bin/cfn-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lint); err != nil {
		t.Fatalf("no cfn-lint: make parts installs it (%v)", err)
	}
	dir := t.TempDir()
	var files []string
	for name, of := range map[string]template{"production": production, "custom": custom} {
		for what, made := range map[string]any{"": of.whole, "-machine": filled(t, of)} {
			file := filepath.Join(dir, name+what+".json")
			if err := os.WriteFile(file, []byte(text(made)), 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	out, err := exec.Command(lint, append([]string{"--format", "parseable", "--"}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// filled returns a template with the state machine as CloudFormation would create it.
func filled(t *testing.T, of template) map[string]any {
	var whole map[string]any
	if err := json.Unmarshal([]byte(text(of.whole)), &whole); err != nil {
		t.Fatal(err)
	}
	for _, r := range whole["Resources"].(map[string]any) {
		if r := r.(map[string]any); r["Type"] == "AWS::StepFunctions::StateMachine" {
			delete(r, "Metadata")
			properties := r["Properties"].(map[string]any)
			delete(properties, "DefinitionSubstitutions")
			properties["DefinitionString"] = strings.NewReplacer("${Partition}", "aws", "${TableName}", "Table", "${DebounceSeconds}", "5",
				"${Functions}", "{'report': 'arn:aws:lambda:eu-central-1:123456789012:function:Sawhorse-report:1'}",
				"${Parameters}", parameters(),
				"${Alias}", "arn:aws:states:eu-central-1:123456789012:stateMachine:Sawhorse-reconcile:live", "${Prefix}", "/sawhorse",
			).Replace(properties["DefinitionString"].(string))
			return whole
		}
	}
	t.Fatal("no state machine")
	return nil
}
