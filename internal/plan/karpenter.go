package plan

import (
	"embed"
	"encoding/json"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// karpenter is one version of Karpenter, with what a plan takes from it.
type karpenter struct {
	version string
	// image is the digest of the controller's image.
	image string
	// charts are the digests of the charts' files, by release. They make the steps due if a chart changes.
	charts map[string]string
	// policies are the policies of the controller's role by name, with ${…} for what differs between clusters.
	policies map[string]Document
}

// current is the version that Sawhorse installs.
var current = karpenter{
	version: ownership.KarpenterVersion, image: ownership.KarpenterDigest, policies: policyTemplates(),
	charts: map[string]string{ // a test of the step controller compares them with the charts that it embeds
		ownership.ReleaseCRD:        "sha256:12ee1a029e0cacc38f095cf896eb56aa5d6cf53da6238e3802530d14e18423d0",
		ownership.ReleaseController: "sha256:465d0b64142473ed2e33c2e53511deba99105118b41e0be7ca9f371da264e875",
	},
}

// policyFiles are the controller's policies from Karpenter 1.10's CloudFormation template, one file for each managed
// policy of the template. They use the same ${…} for what differs between clusters. They differ from Karpenter's in one
// way: of the account's subnets and security groups, they allow only those with the cluster's discovery tag, so that
// the role cannot launch nodes into other networks.
//
//go:embed policies/*.json
var policyFiles embed.FS

// policyTemplates decodes policyFiles.
func policyTemplates() map[string]Document {
	all := map[string]Document{}
	files, err := policyFiles.ReadDir("policies")
	for _, file := range files {
		var text []byte
		if text, err = policyFiles.ReadFile("policies/" + file.Name()); err != nil {
			break
		}
		var template Document
		if err = json.Unmarshal(text, &template); err != nil {
			break
		}
		all[strings.TrimSuffix(file.Name(), ".json")] = template
	}
	if err != nil {
		panic("plan: embedded policies: " + err.Error()) // a broken file would fail every test
	}
	return all
}
