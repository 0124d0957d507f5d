package observe

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// An image is found by what the user wrote: its ID, or the name or the ARN of a public parameter. What is not there is
// left out, and private parameters are not read.
func TestImages(t *testing.T) {
	s := begin(t)
	s.cloud.EC2.Images = []types.Image{
		{ImageId: new("ami-1"), OwnerId: new("602401143452"), ImageOwnerAlias: new("amazon"), Architecture: types.ArchitectureValuesArm64,
			State: types.ImageStateAvailable},
		{ImageId: new("ami-2"), OwnerId: new("123456789012"), State: types.ImageStateDisabled,
			Tags: []types.Tag{{Key: new("sawhorse.dev/nodes"), Value: new("")}}},
		{ImageId: new("ami-3"), OwnerId: new("123456789012"), Tags: []types.Tag{{Key: new("Name"), Value: new("sawhorse.dev/nodes")}}},
	}
	s.cloud.SSM.Values["/aws/service/eks/a"], s.cloud.SSM.Values["/aws/service/eks/gone"] = "ami-1", "ami-4"
	s.cloud.SSM.Values["/own/image"] = "ami-3"
	const byARN = "arn:aws:ssm:eu-central-1::parameter/aws/service/eks/a"
	config := enabled
	var terms []any
	for _, id := range []string{"ami-2", "ami-3", "ami-5"} {
		terms = append(terms, map[string]any{"id": id})
	}
	for _, name := range []string{"/aws/service/eks/a", byARN, "/aws/service/eks/gone", "/aws/service/eks/none", "/own/image"} {
		terms = append(terms, map[string]any{"ssmParameter": name})
	}
	terms = append(terms, map[string]any{"alias": "al2023@latest"}, "x")
	config.Workload.Override = params.Override{EC2NodeClass: map[string]any{"amiSelectorTerms": terms}}
	amazon := plan.Image{ID: "ami-1", Owner: "602401143452", Alias: "amazon", Arch: "arm64"}
	want := map[string]plan.Image{
		"/aws/service/eks/a": amazon, byARN: amazon,
		"ami-2": {ID: "ami-2", Owner: "123456789012", OfNodes: true, State: "disabled"}, "ami-3": {ID: "ami-3", Owner: "123456789012"},
	}
	if got := s.observed(config, plan.Records{}).Images; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if slices.Contains(s.cloud.Made(), "SSM.GetParameter /own/image") {
		t.Error("a private parameter was read")
	}
	before := len(s.cloud.Made())
	s.observed(enabled, plan.Records{})
	if made := s.cloud.Made()[before:]; slices.ContainsFunc(made, func(call string) bool { return call[:4] == "SSM." }) {
		t.Errorf("without images, %v", made)
	}
}

// What EC2 would read as any image, and more terms than Karpenter takes, are not asked about: the schema refuses them.
func TestImagesThatNoTermMayName(t *testing.T) {
	s := begin(t)
	alias := map[string]any{"alias": "al2023@latest"}
	for _, terms := range [][]any{
		{map[string]any{"id": "ami-*"}}, {map[string]any{"id": "ami-0bbb?"}}, {map[string]any{"id": "*"}},
		append(slices.Repeat([]any{alias}, 30), map[string]any{"id": "ami-1"}, map[string]any{"ssmParameter": "/aws/service/eks/a"}),
	} {
		config := enabled
		config.Workload.Override = params.Override{EC2NodeClass: map[string]any{"amiSelectorTerms": terms}}
		before := len(s.cloud.Made())
		s.observed(config, plan.Records{})
		for _, call := range s.cloud.Made()[before:] {
			if strings.HasPrefix(call, "EC2.DescribeImages") || strings.HasPrefix(call, "SSM.GetParameter ") {
				t.Errorf("%v: %s", terms, call)
			}
		}
	}
}

// The AMIs behind an alias that is written are looked up for the cluster's version of Kubernetes and the one of an upgrade, ten a call.
// Without an alias nobody is asked.
func TestAliasImages(t *testing.T) {
	s := begin(t)
	const there = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/" +
		"amazon-eks-node-al2023-x86_64-standard-1.35-v20260828/image_id"
	s.cloud.SSM.Values[there] = "ami-1"
	config := enabled
	config.AMIAliases = map[string]string{"al2023": "al2023@v20260828", "bottlerocket": "bottlerocket@v1.44.0"}
	config.Defaults = params.Override{EC2NodeClass: map[string]any{"amiSelectorTerms": []any{
		map[string]any{"alias": "al2023@a b"}, map[string]any{"alias": "bottlerocket"}, map[string]any{"alias": "bottlerocket@v"},
	}}}
	calls := func() (all []string) {
		for _, call := range s.cloud.Made() {
			if strings.HasPrefix(call, "SSM.GetParameters ") {
				all = append(all, call)
			}
		}
		return all
	}
	got := s.observed(config, plan.Records{}).AliasImages
	id, seen := got["/aws/service/bottlerocket/aws-k8s-1.35-nvidia/arm64/1.44.0/image_id"]
	if len(got) != 9 || got[there] != "ami-1" || !seen || id != "" || len(calls()) != 1 {
		t.Errorf("%v, by %v", got, calls())
	}
	s.observer.Kubernetes = "1.36"
	if got := s.observed(config, plan.Records{}).AliasImages; len(got) != 18 || len(calls()) != 3 {
		t.Errorf("%d for two versions, by %v", len(got), calls())
	}
	if got := s.observed(enabled, plan.Records{}).AliasImages; got != nil || len(calls()) != 3 {
		t.Errorf("without an alias %v, by %v", got, calls())
	}
}
