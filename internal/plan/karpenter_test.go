package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Another version of Karpenter, whose controller needs one more right: the steps whose sections have it are due, and
// the precheck for one of them.
func TestAnotherVersionOfKarpenter(t *testing.T) {
	config := params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true}
	facts := Facts{
		Cluster:     &ClusterFacts{Cluster: Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE"},
		PodIdentity: true, Subnets: []Tagged{{ID: "subnet-a"}}, NodeGroups: []NodeGroup{{Name: "system"}},
	}
	before := build(config, facts, nil, current)
	if len(before.Problems) > 0 {
		t.Fatal(before.Problems)
	}
	next := current
	next.version, next.image, next.policies = "1.11.0", "sha256:next", policyTemplates()
	statement := next.policies["node-lifecycle"]["Statement"].([]any)[0].(map[string]any)
	statement["Action"] = append(statement["Action"].([]any), "ec2:DescribeWhatIsNew")
	after := build(config, facts, nil, next)

	applied := map[string]string{}
	for _, s := range before.Plan.Steps {
		applied[s.Name] = s.Fingerprint
	}
	var due, prechecks []string
	for _, s := range after.Plan.Due(applied) {
		if due = append(due, s.Name); s.PrecheckFor != "" {
			prechecks = append(prechecks, s.Name)
		}
	}
	var differ []string
	lines := map[string]string{}
	for _, d := range Differences(&before.Plan, &after.Plan) {
		differ, lines[d.Step] = append(differ, d.Step), strings.Join(d.Lines, "\n")
	}
	if want := []string{"controller/crds", "infrastructure", "controller/release"}; !slices.Equal(differ, want) {
		t.Errorf("sections that differ: %q, want %q", differ, want)
	}
	want := []string{"access/conflicts", "controller/crds", "infrastructure", "controller/release"}
	if !slices.Equal(due, want) || len(prechecks) != 1 {
		t.Errorf("due %q, of which %q are prechecks, want %q", due, prechecks, want)
	}
	for step, want := range map[string]string{
		"controller/crds": `version: "1.10.0" → "1.11.0"`,
		"infrastructure": "controller.policies.node-lifecycle.Statement[AllowScopedEC2InstanceAccessActions].Action: " +
			`added "ec2:DescribeWhatIsNew"`,
		"controller/release": "values.controller.image.digest: " +
			`"sha256:0c215133a37e0d8bc2515b75120d2fefa14be3f939aebc140208… → "sha256:next"` + "\n" +
			`values.controller.image.tag: "1.10.0" → "1.11.0"` + "\n" + `version: "1.10.0" → "1.11.0"`,
	} {
		if lines[step] != want {
			t.Errorf("%s:\n%s\nwant\n%s", step, lines[step], want)
		}
	}
}
