package plan_test

import (
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The controller's policy names subnets and groups of other accounts, and allows those of its own account by tag.
func TestNetworksOfOtherAccountsAreNamed(t *testing.T) {
	f := facts()
	f.Subnets[0].Owner, f.Subnets[1].Owner, f.SecurityGroups[0].Owner = "210987654321", "123456789012", "210987654321"
	foreign := plan.Tagged{ID: "subnet-of-another", Owner: "210987654321", Tags: map[string]string{names.TagDiscovery: "other"}}
	f.Subnets = append(f.Subnets, foreign) // a rack with Karpenter on continues without it
	got := build(t, on, f)
	want := []string{
		"arn:aws:ec2:eu-central-1:210987654321:security-group/" + f.SecurityGroups[0].ID,
		"arn:aws:ec2:eu-central-1:210987654321:subnet/" + f.Subnets[0].ID,
	}
	if !slices.Equal(got.Plan.Infrastructure.SharedNetworks, want) {
		t.Errorf("named %v, want %v", got.Plan.Infrastructure.SharedNetworks, want)
	}
}
