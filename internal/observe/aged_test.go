package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// publishes gives AWS a release of AL2023 for Kubernetes 1.35, that came out some days ago, without images of some kinds.
func (s *scene) publishes(release string, days int, without ...string) {
	s.Helper()
	for _, image := range plan.BehindAlias("al2023@"+release, "1.35") {
		kind := strings.NewReplacer("amd64", "x86_64").Replace(image.Arch) + "-" + image.Variant
		id := fmt.Sprintf("ami-%s-%s", kind, release)
		if strings.Contains(strings.Join(without, " "), kind) {
			continue
		}
		s.cloud.SSM.Values[image.Parameter] = id
		s.cloud.EC2.Images = append(s.cloud.EC2.Images, types.Image{
			ImageId: new(id), Name: new("amazon-eks-node-al2023-" + kind + "-1.35-" + release), ImageOwnerAlias: new("amazon"),
			CreationDate: new(s.cloud.Now().Add(-time.Duration(days) * 24 * time.Hour).Format(time.RFC3339)),
		})
	}
}

// recommends makes a release the one that @latest names.
func (s *scene) recommends(release string) {
	named := plan.BehindAlias("al2023@"+release, "1.35")
	for i, image := range plan.BehindAlias("al2023@latest", "1.35") {
		s.cloud.SSM.Values[image.Parameter] = s.cloud.SSM.Values[named[i].Parameter]
	}
}

func TestAged(t *testing.T) {
	for _, c := range []struct {
		what, alias string
		given       func(s *scene)
		inForce     string
		want        string
	}{
		{"out for a week", "al2023@latest-7d", func(*scene) {}, "", "al2023@v20260821"},
		{"out for a day", "al2023@latest-1d", func(*scene) {}, "", "al2023@v20260828"},
		{"not newer than what @latest names", "al2023@latest-1d", func(s *scene) { s.recommends("v20260814") }, "", "al2023@v20260814"},
		{"it never goes back", "al2023@latest-7d", func(*scene) {}, "al2023@v20260828", "al2023@v20260828"},
		{"it goes on", "al2023@latest-7d", func(*scene) {}, "al2023@v20260814", "al2023@v20260821"},
		{"nor for a kind that @latest has only now", "al2023@latest-7d", func(s *scene) {
			delete(s.cloud.SSM.Values, plan.BehindAlias("al2023@v20260821", "1.35")[4].Parameter)
		}, "al2023@v20260821", "al2023@v20260821"},
		{"what was withdrawn does not stay", "al2023@latest-7d", func(*scene) {}, "al2023@v20260901", "al2023@v20260821"},
		{"all images are there", "al2023@latest-5d", func(s *scene) { s.publishes("v20260825", 6, "arm64-nvidia") }, "", "al2023@v20260821"},
		{"none has all images", "al2023@latest-7d", func(s *scene) {
			for _, release := range []string{"v20260814", "v20260821"} {
				delete(s.cloud.SSM.Values, plan.BehindAlias("al2023@"+release, "1.35")[4].Parameter)
			}
		}, "", "al2023@v20260821"},
		{"none has all images, and an old one is in force", "al2023@latest-7d", func(s *scene) {
			for _, release := range []string{"v20260824", "v20260823", "v20260822"} {
				s.publishes(release, 8, "arm64-nvidia")
			}
		}, "al2023@v20260814", "al2023@v20260814"},
		{"none is so old", "al2023@latest-90d", func(*scene) {}, "", "al2023@v20260814"},
		{"of another owner", "al2023@latest-7d", func(s *scene) {
			for i := range s.cloud.EC2.Images {
				s.cloud.EC2.Images[i].ImageOwnerAlias = nil
			}
		}, "", ""},
		{"none at all", "bottlerocket@latest-7d", func(*scene) {}, "", ""},
	} {
		s := begin(t)
		s.publishes("v20260814", 16)
		s.publishes("v20260821", 9)
		s.publishes("v20260828", 2)
		s.recommends("v20260828")
		c.given(s)
		config := enabled
		config.AMIAliases = map[string]string{"x": c.alias}
		if c.inForce != "" {
			s.runs(c.inForce)
		}
		facts := s.observed(config, plan.Records{})
		if got, found := facts.Aged[c.alias]; got != c.want || !found {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		for _, image := range plan.BehindAlias(c.want, "1.35") {
			if got, seen := facts.AliasImages[image.Parameter]; !seen || got != s.cloud.SSM.Values[image.Parameter] {
				t.Errorf("%s: %s is %q", c.what, image.Parameter, got)
			}
		}
	}
}

// runs makes a plan the one in force whose pools, build and workload, have the aliases.
func (s *scene) runs(aliases ...string) {
	p := &plan.Plan{Format: plan.Format, Rack: "demo"}
	for i, alias := range aliases {
		class := plan.Object{"kind": "EC2NodeClass", "metadata": map[string]any{"name": []string{"build", "workload"}[i]},
			"spec": map[string]any{"amiSelectorTerms": []any{map[string]any{"alias": alias}}}}
		p.NodePools.Objects = append(p.NodePools.Objects, class)
	}
	s.must(s.store.SavePlan(s.Context(), p))
}

// A pool with a newer release of its own, which tries it out, does not bring it to the others.
func TestAgedBesideAPool(t *testing.T) {
	s := begin(t)
	s.publishes("v20260821", 9)
	s.publishes("v20260828", 2)
	s.recommends("v20260828")
	s.runs("al2023@v20260821", "al2023@v20260828")
	config := enabled
	config.AMIAliases = map[string]string{"al2023": "al2023@latest-7d"}
	config.Workload.Override.EC2NodeClass = map[string]any{"amiSelectorTerms": []any{map[string]any{"alias": "al2023@v20260828"}}}
	if got := s.observed(config, plan.Records{}).Aged["al2023@latest-7d"]; got != "al2023@v20260821" {
		t.Errorf("%q", got)
	}
	s.runs("al2023@v20260828", "al2023@v20260828")
	if got := s.observed(config, plan.Records{}).Aged["al2023@latest-7d"]; got != "al2023@v20260828" {
		t.Errorf("one selects what the others have: %q", got)
	}
}

// While turning Karpenter off is refused, pools run what the plan before has.
func TestAgedWhileKarpenterIsTurnedOff(t *testing.T) {
	s := begin(t)
	s.publishes("v20260821", 9)
	s.publishes("v20260828", 2)
	s.recommends("v20260828")
	s.runs("al2023@v20260828")
	last, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Last: last}))
	config := enabled
	config.AMIAliases = map[string]string{"al2023": "al2023@latest-7d"}
	if got := s.observed(config, plan.Records{}).Aged["al2023@latest-7d"]; got != "al2023@v20260828" {
		t.Errorf("%q", got)
	}
}
