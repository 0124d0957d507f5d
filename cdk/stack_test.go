package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// template is a synthesized stack as plain data.
type template struct {
	Resources map[string]resource
	Outputs   map[string]any
	// whole is the complete template.
	whole any
}

type resource struct {
	Type                                string
	Properties                          map[string]any
	DependsOn                           []string
	DeletionPolicy, UpdateReplacePolicy string
}

// production is the stack without context values, and custom the one with another value for every setting. again uses
// the table of an earlier stack, has the policies of many racks, and is in an organization that demands a path and a boundary.
// moved is the production stack with another path of its roles.
var production, custom, again, moved template

// stacks are the stacks of the templates production and custom.
var stacks []awscdk.Stack

// All tests share one jsii process and one app, because starting them takes longer than all the tests.
func TestMain(m *testing.M) {
	if os.Getenv("CDK_VALIDATION") == "" {
		os.Exit(withoutValidation())
	}
	dir, err := os.MkdirTemp("", "sawhorse-cdk-")
	if err != nil {
		panic(err)
	}
	if err := stubZips(dir); err != nil {
		panic(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false), Outdir: jsii.String(filepath.Join(dir, "out")),
		Context: projectContext()})
	if flag.Parse(); !testing.Short() {
		awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true), Reports: jsii.Bool(false)}), nil)
	}
	one := stackOf(app, "Production", map[string]any{"dist": dir, "nodeRoles": "eks-nodes"})
	other := stackOf(app, "Custom", map[string]any{
		"dist": dir, "stackName": "Other", "architecture": "x86_64", "prefix": "/tools/sawhorse", "busName": "racks", "debounceSeconds": "1",
		"resyncMinutes": 30.0, "resyncSlots": "3", "rolloutMinutes": 15.0,
		"drainSeconds": "20", "proofSeconds": "60", "alarmTopicArn": "arn:aws:sns:eu-central-1:123456789012:alarms",
		"subnetIds": []any{"subnet-11111111", "subnet-22222222"}, "securityGroupIds": "sg-11111111", "removal": "destroy", "synthesizer": "cli",
		"vpcEndpoints":  []any{"com.amazonaws.eu-central-1.ssm", "com.amazonaws.iam", "com.amazonaws.eu-central-1.dynamodb"},
		"vpcId":         "vpc-11111111",
		"routeTableIds": "rtb-11111111", "reservedConcurrency": "5", "validateConcurrency": "20", "dryRunConcurrency": "3",
		"logRetentionDays": 365.0, "logRemoval": "retain", "operatorRacks": "prod,team-a-*",
		"nodeActions": "s3:Get*,kms:Decrypt", "nodeRoles": "eks-nodes,team/*-nodes",
		"objectPrefixes": "s3://config/racks/{rack}/", "sharedObjectPrefixes": "s3://config/shared", "objectAccounts": "210987654321",
		"requireClusterTag": false, "imageRepositories": "example.com/karpenter/*,example.com/controller", "systemNamespaces": []any{"ingress"},
		"proxies":     []any{"http://proxy.example.com:3128", ".svc"},
		"imageOwners": "099720109477",
	})
	third := stackOf(app, "Again", map[string]any{"dist": dir, "table": "Sawhorse-Table-Earlier", "dryRunConcurrency": 0,
		"rolePath": "/team/", "boundaryArn": operatorsBoundary,
		"nodePolicyArns": "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy", "fips": true, "dualStack": true,
		"operatorRacks": strings.Join(manyRacks(50), ",")})
	fourth := stackOf(app, "Moved", map[string]any{"dist": dir, "nodeRoles": "eks-nodes", "rolePath": "/team/"})
	stacks = []awscdk.Stack{one, other, third}
	production, custom, again, moved = templateOf(one), templateOf(other), templateOf(third), templateOf(fourth)
	code := m.Run()
	jsii.Close()
	os.RemoveAll(dir)
	os.Exit(code)
}

// manyRacks returns n names of racks.
func manyRacks(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("a-rack-of-twenty-six-%03d", i))
	}
	return all
}

// TestMain reads cdk.json before tests run, which is too early for Go's cache of test results to know of the file.
func TestGoRunsTheTestsAgainWhenTheContextHasChanged(t *testing.T) {
	if _, err := os.Stat("../cdk.json"); err != nil {
		t.Error(err)
	}
}

// withoutValidation runs the tests in a process without the CDK's own check of the templates, which takes longer than
// everything else; `make synth` includes it. The variable must be set before any package that uses jsii is initialized.
func withoutValidation() int {
	jsii.Close()
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), "CDK_VALIDATION=false")
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		return 1
	}
	return 0
}

// projectContext returns the context that cdk.json gives every deployment: the CDK's feature flags. Findings of cdk-nag
// must not end the synthesis; a test reports them.
func projectContext() *map[string]any {
	file, err := os.ReadFile("../cdk.json")
	if err != nil {
		panic(err)
	}
	var project struct{ Context map[string]any }
	if err := json.Unmarshal(file, &project); err != nil {
		panic(err)
	}
	project.Context["@aws-cdk/core:annotationsInValidationReport"] = false
	return &project.Context
}

// stubZips creates placeholders for the functions' code.
func stubZips(dir string) error {
	for _, architecture := range []string{"arm64", "x86_64"} {
		if err := os.MkdirAll(filepath.Join(dir, architecture), 0o755); err != nil {
			return err
		}
		for _, f := range withRoles() {
			if err := os.WriteFile(filepath.Join(dir, architecture, f.name+".zip"), []byte(f.name), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func stackOf(app awscdk.App, id string, context map[string]any) awscdk.Stack {
	settings, err := readSettings(func(key string) any { return context[key] })
	if err != nil {
		panic(err)
	}
	return newStack(app, id, settings)
}

// templateOf synthesizes the whole app at its first call. No stack may be added after that.
func templateOf(stack awscdk.Stack) (t template) {
	text, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		panic(err)
	}
	if err := errors.Join(json.Unmarshal(text, &t), json.Unmarshal(text, &t.whole)); err != nil {
		panic(err)
	}
	return t
}

// all returns the resources of a type, by logical id.
func (t template) all(kind string) map[string]resource {
	found := map[string]resource{}
	for id, r := range t.Resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	return found
}

// one returns the only resource of a type.
func (t template) one(test *testing.T, kind string) resource {
	test.Helper()
	found := t.all(kind)
	if len(found) != 1 {
		test.Fatalf("%d of %s, want one", len(found), kind)
	}
	for _, r := range found {
		return r
	}
	panic("unreachable")
}

// boundaries returns the permissions boundaries, with the names ControllerBoundary and NodeBoundary.
func (t template) boundaries(test *testing.T) map[string]resource {
	test.Helper()
	found := map[string]resource{}
	for id, r := range t.all("AWS::IAM::ManagedPolicy") {
		if name, _, is := strings.Cut(id, "Boundary"); is {
			found[name+"Boundary"] = r
		}
	}
	if len(found) != 2 || found["ControllerBoundary"].Type == "" || found["NodeBoundary"].Type == "" {
		test.Fatalf("boundaries: %v", found)
	}
	return found
}

// at follows a path of keys (string) and indexes (int) into plain data. It returns nil if the path does not exist.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

// text returns a value as compact JSON, for comparison and search.
func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// list returns a property as a list: CloudFormation writes a list of one value as that value.
func list(value any) []any {
	if several, ok := value.([]any); ok {
		return several
	}
	return []any{value}
}
