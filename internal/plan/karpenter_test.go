package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Another version of Karpenter, whose controller needs more rights: the steps whose sections have it are due, and the
// precheck for one of them.
func TestAnotherVersionOfKarpenter(t *testing.T) {
	config := params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true}
	facts := Facts{
		Cluster:     &ClusterFacts{Cluster: Cluster{Name: "demo", Partition: "aws"}, Status: "ACTIVE"},
		PodIdentity: true, Subnets: []Tagged{{ID: "subnet-a"}}, NodeGroups: []NodeGroup{{Name: "system"}},
	}
	before := Build(config, facts, nil)
	if len(before.Problems) > 0 {
		t.Fatal(before.Problems)
	}
	was := catalogue.Default()
	next, err := catalogue.Find("1.12.1")
	if err != nil {
		t.Fatal(err)
	}
	config.KarpenterVersion = next.Version
	facts.Records = Records{Goal: GoalKarpenter, WasOn: true, Credentials: "podidentity", Karpenter: KarpenterRecord{Version: was.Version}}
	after := Build(config, facts, nil)
	before.Plan.SetFingerprints()
	after.Plan.SetFingerprints()

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
	if want := []string{"infrastructure", "controller/crds", "controller/release"}; !slices.Equal(differ, want) {
		t.Errorf("sections that differ: %q, want %q", differ, want)
	}
	want := []string{"access/conflicts", "infrastructure", "controller/crds", "controller/release"}
	if !slices.Equal(due, want) || len(prechecks) != 1 {
		t.Errorf("due %q, of which %q are prechecks, want %q", due, prechecks, want)
	}
	changedTo := func(path, from, to string) string {
		return fmt.Sprintf("%s: \"%.59s… → \"%.59s…\n", path, from, to)
	}
	for step, want := range map[string]string{
		"controller/crds": changedTo("chart", was.ChartDigests[ownership.ReleaseCRD], next.ChartDigests[ownership.ReleaseCRD]) +
			`version: "1.10.0" → "1.12.1"`,
		"infrastructure": `controller.policies.node-lifecycle.Statement[AllowScopedEC2InstanceAccessActions].Resource: ` +
			`added "arn:aws:ec2::*:placement-group/*"` + "\n" +
			`controller.policies.resource-discovery.Statement[AllowRegionalReadActions].Action: added "ec2:DescribeInstanceStatus"` + "\n" +
			`controller.policies.resource-discovery.Statement[AllowRegionalReadActions].Action: added "ec2:DescribePlacementGroups"` + "\n" +
			`controller.policies.zonal-shift: added {"Statement":[{"Action":["arc-zonal-shift:GetManagedResource…`,
		"controller/release": changedTo("values.controller.image.digest", was.Digest, next.Digest) +
			`values.controller.image.tag: "1.10.0" → "1.12.1"` + "\n" + `version: "1.10.0" → "1.12.1"`,
	} {
		if lines[step] != want {
			t.Errorf("%s:\n%s\nwant\n%s", step, lines[step], want)
		}
	}
}
