package plan_test

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The controller's policy names subnets and groups of other accounts, and allows those of its own account by tag.
func TestNetworksOfOtherAccountsAreNamed(t *testing.T) {
	f := facts()
	f.Subnets[0].Owner, f.Subnets[1].Owner, f.SecurityGroups[0].Owner = "210987654321", "123456789012", "210987654321"
	shared := plan.Tagged{ID: "subnet-of-another", Owner: "210987654321", Tags: map[string]string{ownership.TagDiscovery: "other"}}
	f.Subnets = append(f.Subnets, shared) // a rack with Karpenter on continues without it
	got := build(t, on, f)
	want := `{"Statement":[{"Action":["ec2:RunInstances","ec2:CreateFleet"],"Effect":"Allow","Resource":[` +
		`"arn:aws:ec2:eu-central-1:210987654321:security-group/` + f.SecurityGroups[0].ID + `",` +
		`"arn:aws:ec2:eu-central-1:210987654321:subnet/` + f.Subnets[0].ID + `"],` +
		`"Sid":"AllowSharedNetworkAccessActions"}],"Version":"2012-10-17"}`
	if document := got.Plan.Infrastructure.Controller.Policies["shared-networks"]; document.JSON() != want {
		t.Errorf("got\n%s\nwant\n%s", document.JSON(), want)
	}
	if document := outcome(t, "enable").Plan.Infrastructure.Controller.Policies["shared-networks"]; document != "" {
		t.Errorf("without shared networks: %v", document)
	}
}
