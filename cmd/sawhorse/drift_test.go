package main

import (
	"fmt"
	"strings"
	"testing"
)

// Package validation tests what drifts. This test checks that NodeClaims are read in the form that kubectl prints.
func TestPlanCountsNodeClaims(t *testing.T) {
	t.Parallel()
	claim := func(arch string) string {
		return fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"workload-1","labels":`+
			`{"karpenter.sh/nodepool":"workload","kubernetes.io/arch":%q,"karpenter.sh/capacity-type":"on-demand"}},`+
			`"status":{"conditions":[{"type":"Launched","status":"True"}]}}`, arch)
	}
	claims := strings.Repeat(claim("amd64")+",", 8) + strings.Repeat(claim("arm64")+",", 3) + claim("arm64")
	input := onWith(`"karpenter_arch":"arm64"`, wasOn+`,"observed":{"nodeclaims":[`+claims+`]}`)
	got := decoded[outlook](t, sawhorse(t, input, "plan", "-o", "json", "-").ends(t, 0).stdout)
	const want = "pool workload is changed: Karpenter replaces 8 of its 12 nodes (RequirementsDrifted), as its disruption budget allows"
	if len(got.Pools) != 1 || got.Pools[0].String() != want {
		t.Errorf("%v, want %s", got.Pools, want)
	}
}

// Karpenter's hash function ends the process at an AMI alias that it cannot parse. The command must survive such an
// alias in the requested and in the applied parameters.
func TestPlanOutlivesAnAlias(t *testing.T) {
	t.Parallel()
	const config = `"karpenter_config":"{\"ec2NodeClass\":{\"amiSelectorTerms\":[{\"alias\":\"bottlerocket\"}]}}"`
	got := decoded[outlook](t, sawhorse(t, onWith(config, wasOn), "plan", "-o", "json", "-").ends(t, 1).stdout)
	if len(got.Problems) == 0 || got.Problems[0].Path != "ec2NodeClass.amiSelectorTerms[0].alias" {
		t.Errorf("%v", got.Problems)
	}
	input := onWith("", strings.Replace(wasOn, "{", "{"+config+",", 1))
	got = decoded[outlook](t, sawhorse(t, input, "plan", "-o", "json", "-").ends(t, 0).stdout)
	if len(got.Pools) != 1 || !got.Pools[0].MayReplace {
		t.Errorf("in force: %v", got.Pools)
	}
}
