package main

import (
	"bytes"
	"testing"
)

// FuzzPlan parses any input and plans it, as the command does. No input may end or block the process, and the answer
// must be the same each time.
func FuzzPlan(f *testing.F) {
	const enabled = `"previous":{"karpenter_auth_mode":"true","karpenter_enabled":"true",`
	for _, input := range []string{
		`{"rack":"demo"}`, on(""), onWith("", wasOn), onWith(`"karpenter_arch":"arm64","paused":"true"`, wasOn),
		onWith(`"karpenter_config":"{\"ec2NodeClass\":{\"amiSelectorTerms\":[{\"alias\":\"al2023@latest\"}]}}"`, wasOn),
		onWith(`"karpenter_config":"{\"nodePool\":{\"limits\":{\"cpu\":\"1e3\"}}}"`, wasOn),
		onWith("", enabled+`"karpenter_config":"{\"ec2NodeClass\":{\"userData\":\"x\"}}"}`),
		onWith("", enabled+`"karpenter_config":"{\"ec2NodeClass\":{\"amiSelectorTerms\":[{\"alias\":\"bottlerocket\"}]}}"}`),
		onWith(`"additional_karpenter_nodepools_config":"[{\"name\":\"a\"},{\"name\":\"c\"}]","karpenter_node_labels":"a=b"`, wasOn),
		onWith(`"karpenter_enabled":"false","subnet_ids":"subnet-01234567"`, wasOn+`,"observed":{`+
			`"pools":{"workload":{"nodes":3,"cpu":"8","memory":"1Gi"}},`+
			`"nodeclaims":[{"metadata":{"labels":{"karpenter.sh/nodepool":"workload"},"annotations":{"karpenter.sh/nodepool-hash":"1"}},`+
			`"status":{"imageID":"ami-1","conditions":[{"type":"Launched","status":"True"}]}}],`+
			`"nodegroups":[{"nodegroupName":"system","capacityType":"SPOT","instanceTypes":["m6i.large"],"labels":{"a":"b"}}],`+
			`"cluster":{"version":"1.33"}}`),
	} {
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := readInput([]byte(text))
		if err != nil {
			return
		}
		planned := func() []byte {
			outlook, _ := in.outlook()
			seen, err := encode(outlook, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, effect := range outlook.Pools {
				seen = append(seen, effect.String()...)
			}
			return seen
		}
		if one, two := planned(), planned(); !bytes.Equal(one, two) {
			t.Errorf("not the same twice:\n%s\n%s", one, two)
		}
	})
}
