package nodes

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The images of an account: one of Amazon, a backup of a server, one that is meant for nodes, one that another account
// shares, and one that is sold.
var images = map[string]plan.Image{
	"ami-0aaaaaaaaaaaaaaa1":    {ID: "ami-0aaaaaaaaaaaaaaa1", Owner: "602401143452", Alias: "amazon"},
	"ami-0aaaaaaaaaaaaaaa2":    {ID: "ami-0aaaaaaaaaaaaaaa2", Owner: "602401143452", Alias: "amazon", Arch: "arm64"},
	"ami-0aaaaaaaaaaaaaaa3":    {ID: "ami-0aaaaaaaaaaaaaaa3", Owner: "602401143452", Alias: "amazon", Arch: "amd64"},
	"ami-0aaaaaaaaaaaaaaa4":    {ID: "ami-0aaaaaaaaaaaaaaa4", Owner: "602401143452", Alias: "amazon", Arch: "amd64", State: "disabled"},
	"ami-0bbbbbbbbbbbbbbb1":    {ID: "ami-0bbbbbbbbbbbbbbb1", Owner: "123456789012"},
	"ami-0bbbbbbbbbbbbbbb2":    {ID: "ami-0bbbbbbbbbbbbbbb2", Owner: "123456789012", OfNodes: true},
	"ami-0ccccccccccccccc1":    {ID: "ami-0ccccccccccccccc1", Owner: "210987654321"},
	"ami-0ccccccccccccccc2":    {ID: "ami-0ccccccccccccccc2", Owner: "210987654321", OfNodes: true},
	"ami-0ddddddddddddddd1":    {ID: "ami-0ddddddddddddddd1", Owner: "679593333241", Alias: "aws-marketplace"},
	"/aws/service/eks/a":       {ID: "ami-0aaaaaaaaaaaaaaa1", Owner: "602401143452", Alias: "amazon"},
	"/aws/service/canonical/a": {ID: "ami-0ccccccccccccccc3", Owner: "099720109477"},
}

func observed(owners ...string) plan.Facts {
	return plan.Facts{
		Cluster:    &plan.ClusterFacts{Cluster: plan.Cluster{Account: "123456789012", Region: "eu-central-1"}, Version: "1.35"},
		Images:     images,
		Deployment: plan.Deployment{ImageOwners: owners},
	}
}

// judged returns the problems and the warnings of a rack whose workload pool has these terms.
func judged(t *testing.T, terms string, facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	t.Helper()
	config := configOf(t, map[string]string{"karpenter_arch": "amd64",
		"karpenter_config": `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[` + terms + `]}}`})
	return Compile(config, facts).Images(facts, inForce)
}

// A term may select images of Amazon, of the context's owners, and the account's own with the tag of images for nodes,
// and no others, now or later.
func TestImagesOfNodes(t *testing.T) {
	const tag = `"tags":{"sawhorse.dev/nodes":"*"}`
	for _, c := range []struct {
		terms, owners string // imageOwners, comma-separated
		refused       string // a part of the problem
	}{
		{terms: `{"alias":"al2023@latest"}`},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa1"}`},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa3"}`},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa2"}`,
			refused: "an image for arm64, and pool workload launches amd64 only; write one for amd64, or requirements that allow arm64"},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa2"},{"id":"ami-0aaaaaaaaaaaaaaa3"}`},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa4"}`, refused: "an image that is disabled"},
		{terms: `{"id":"ami-0bbbbbbbbbbbbbbb2"}`},
		{terms: `{"id":"ami-0ccccccccccccccc1"}`, owners: "210987654321"},
		{terms: `{"id":"ami-0ddddddddddddddd1"}`, owners: "aws-marketplace"},
		{terms: `{"id":"ami-0bbbbbbbbbbbbbbb1"}`, owners: "123456789012"},
		{terms: `{"ssmParameter":"/aws/service/eks/a"}`},
		{terms: `{"ssmParameter":"/aws/service/canonical/a"}`, owners: "099720109477"},
		{terms: `{"name":"amazon-eks-node-*","owner":"amazon"}`},
		{terms: `{"name":"ours-*","owner":"210987654321"}`, owners: "099720109477,210987654321"},
		{terms: `{"owner":"self",` + tag + `}`},
		{terms: `{"name":"ours-*","owner":"123456789012",` + tag + `}`},
		{terms: `{"name":"ours-*","owner":"self"}`, owners: "123456789012"},

		{terms: `{"id":"ami-0bbbbbbbbbbbbbbb1"}`, refused: "ami-0bbbbbbbbbbbbbbb1, an image of the account without the tag sawhorse.dev/nodes"},
		{terms: `{"id":"ami-0aaaaaaaaaaaaaaa1"},{"id":"ami-0bbbbbbbbbbbbbbb1"}`, refused: "[1].id is ami-0bbbbbbbbbbbbbbb1"},
		{terms: `{"id":"ami-0ccccccccccccccc1"}`, refused: "an image of 210987654321; allowed are images of amazon, and self"},
		{terms: `{"id":"ami-0ccccccccccccccc2"}`, refused: "an image of 210987654321"}, // with a tag of this account's
		{terms: `{"id":"ami-0ddddddddddddddd1"}`, refused: "679593333241 added"},
		{terms: `{"id":"ami-0123456789abcdef0"}`, refused: "EC2 shows account 123456789012 no such image in eu-central-1"},
		{terms: `{"ssmParameter":"/aws/service/canonical/a"}`, refused: "which has ami-0ccccccccccccccc3, an image of 099720109477"},
		{terms: `{"ssmParameter":"/aws/service/eks/b"}`, refused: "no such parameter"},
		{terms: `{"name":"db-backup"}`, refused: "has no owner"},
		{terms: `{"tags":{"Name":"db-backup"}}`, refused: "has no owner"},
		{terms: `{` + tag + `}`, refused: "has no owner"}, // images that others share may have this account's tags
		{terms: `{"name":"db-backup","owner":"self"}`, refused: "images of the account that are not meant for nodes"},
		{terms: `{"owner":"self","tags":{"Name":"db-backup"}}`, refused: "images of the account that are not meant for nodes"},
		{terms: `{"owner":"self","tags":{"sawhorse.dev/*":"*"}}`, refused: "images of the account that are not meant for nodes"},
		{terms: `{"name":"db-backup","owner":"123456789012"}`, refused: "images of the account that are not meant for nodes"},
		{terms: `{"name":"x","owner":"210987654321"}`, owners: "099720109477", refused: "allowed are amazon, 099720109477, and self"},
		{terms: `{"owner":"210987654321",` + tag + `}`, refused: "have 210987654321 added"},
		{terms: `{"name":"x","owner":"aws-marketplace"}`, refused: "have aws-marketplace added"},
		// Karpenter reads the parameter and no owner beside it.
		{terms: `{"ssmParameter":"/aws/service/canonical/a","owner":"amazon"}`, refused: "an image of 099720109477"},
	} {
		var owners []string
		if c.owners != "" {
			owners = strings.Split(c.owners, ",")
		}
		problems, warnings := judged(t, c.terms, observed(owners...), nil)
		if c.refused == "" && len(problems)+len(warnings) > 0 || c.refused != "" && (len(problems) != 1 || len(warnings) > 0 ||
			problems[0].Parameter != "karpenter_config" || !strings.Contains(problems[0].Message, c.refused) ||
			!strings.HasPrefix(problems[0].Path, "ec2NodeClass.amiSelectorTerms[")) {
			t.Errorf("%s (owners %s): problems %v, warnings %v", c.terms, c.owners, problems, warnings)
		}
	}
}

// A term that the plan in force has is a warning, so that the rack's other parameters go on. Another term of the same
// parameter is still a problem.
func TestAnImageInForce(t *testing.T) {
	const backup = `{"id":"ami-0bbbbbbbbbbbbbbb1"}`
	inForce := &plan.Plan{NodePools: plan.NodePools{Objects: []plan.Object{
		{"kind": "EC2NodeClass", "metadata": map[string]any{"name": "workload"}, "spec": map[string]any{
			"amiSelectorTerms": []any{map[string]any{"id": "ami-0bbbbbbbbbbbbbbb1"}}}},
		{"kind": "EC2NodeClass", "metadata": map[string]any{"name": "other"}, "spec": map[string]any{
			"amiSelectorTerms": []any{map[string]any{"id": "ami-0ccccccccccccccc1"}}}},
	}}}
	problems, warnings := judged(t, backup, observed(), inForce)
	if len(problems) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "no node is launched from it until then") {
		t.Errorf("problems %v, warnings %v", problems, warnings)
	}
	problems, warnings = judged(t, backup+`,{"id":"ami-0ccccccccccccccc1"}`, observed(), inForce)
	if len(problems) != 1 || len(warnings) != 1 {
		t.Errorf("problems %v, warnings %v", problems, warnings)
	}
	t.Log("in force by karpenter_defaults_config, which no class is of alone")
	config := configOf(t, map[string]string{"karpenter_arch": "amd64",
		"karpenter_defaults_config": `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[` + backup + `]}}`})
	if problems, warnings = Compile(config, observed()).Images(observed(), inForce); len(problems) != 0 || len(warnings) != 1 {
		t.Errorf("problems %v, warnings %v", problems, warnings)
	}
}

// Without a cloud, only what no deployment allows is a problem.
func TestImagesWithoutACloud(t *testing.T) {
	for terms, want := range map[string][2]int{ // number of problems, number of warnings
		`{"id":"ami-0bbbbbbbbbbbbbbb1"}`:           {0, 0},
		`{"ssmParameter":"/aws/service/eks/b"}`:    {0, 0},
		`{"name":"db-backup"}`:                     {1, 0},
		`{"name":"db-backup","owner":"self"}`:      {0, 1},
		`{"name":"a","owner":"210987654321"}`:      {0, 1},
		`{"name":"a","owner":"somebody"}`:          {0, 0}, // refused by other checks
		`{"name":"amazon-eks-*","owner":"amazon"}`: {0, 0},
	} {
		problems, warnings := judged(t, terms, plan.Facts{Offline: true, Deployment: plan.Deployment{Unknown: true}}, nil)
		if len(problems) != want[0] || len(warnings) != want[1] {
			t.Errorf("%s: problems %v, warnings %v", terms, problems, warnings)
		}
	}
}
