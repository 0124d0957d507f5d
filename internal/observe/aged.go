package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// namesOf are the names of a family's images for a version of Kubernetes, for EC2's filter.
var namesOf = map[string]string{"al2023": "amazon-eks-node-al2023-*-%s-v*", "bottlerocket": "bottlerocket-aws-k8s-%s-*"}

// mostReleases is how many releases are looked at for one that has all images. AWS publishes those of one within a day.
const mostReleases = 3

// aged finds the releases that aliases by age name. Where none is written, nothing is read.
func (o *Observer) aged(ctx context.Context, config params.Config, kubernetes string, facts *plan.Facts) error {
	for _, alias := range config.AMIAliases {
		family, age, is := plan.AgedAlias(alias)
		if !is {
			continue
		}
		inForce, err := o.Records.Plan(ctx, config.Rack)
		if err != nil {
			return err
		}
		if inForce != nil && inForce.Goal != plan.GoalKarpenter && inForce.Last != nil {
			inForce = inForce.Last // turning Karpenter off may be refused
		}
		release, err := o.releaseOf(ctx, family, kubernetes, age, inherited(inForce, config))
		if err != nil {
			return err
		}
		if facts.Aged == nil {
			facts.Aged = map[string]string{}
		}
		if facts.Aged[alias] = ""; release != "" {
			facts.Aged[alias] = family + "@" + release
		}
	}
	return nil
}

// inherited returns the aliases of the pools of a plan, without those of pools that select their own: a newer release that one of them
// tries out is not for the others.
func inherited(p *plan.Plan, config params.Config) (all []string) {
	if p == nil {
		return nil
	}
	for _, object := range p.NodePools.Objects {
		metadata, _ := object["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); config.SelectsImages(name) {
			continue
		}
		spec, _ := object["spec"].(map[string]any)
		terms, _ := spec["amiSelectorTerms"].([]any)
		for _, entry := range terms {
			term, _ := entry.(map[string]any)
			alias, _ := term["alias"].(string)
			all = append(all, alias)
		}
	}
	return all
}

// releaseOf returns the newest release of a family that has been out for some time, is not newer than what @latest names, and has all
// images that @latest has, or else the newest without; "" if there is none. It is never older than what pools have already, unless AWS
// has withdrawn that: it stays though @latest has a kind of image since that it lacks. If none has been out so long, as when a version of
// Kubernetes is new, it is the oldest.
func (o *Observer) releaseOf(ctx context.Context, family, kubernetes string, age time.Duration, has []string) (string, error) {
	released, of, err := o.releases(ctx, fmt.Sprintf(namesOf[family], kubernetes))
	if err != nil {
		return "", err
	}
	latest, err := o.aliasImages(ctx, []string{family + "@latest"}, kubernetes)
	if err != nil {
		return "", err
	}
	ceiling := ""
	for _, id := range latest {
		if release := of[id]; release != "" && (ceiling == "" || plan.NewerRelease(ceiling, release)) {
			ceiling = release
		}
	}
	var all []string // the newest first
	for release := range released {
		if ceiling != "" && !plan.NewerRelease(release, ceiling) {
			all = append(all, release)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		if plan.NewerRelease(a, b) {
			return -1
		}
		return 1
	})
	if len(all) == 0 {
		return "", nil
	}
	old := slices.IndexFunc(all, func(release string) bool {
		return o.Now().Sub(released[release]) >= age || slices.Contains(has, family+"@"+release)
	})
	if old < 0 {
		old = len(all) - 1
	}
	for _, release := range all[old:min(old+mostReleases, len(all))] {
		images, err := o.aliasImages(ctx, []string{family + "@" + release}, kubernetes)
		if err != nil {
			return "", err
		}
		if slices.Contains(has, family+"@"+release) || len(lacks(latest, images, family, release, kubernetes)) == 0 {
			return release, nil
		}
	}
	// None of them has all: the judgement knows which images the pools need.
	for _, release := range all[old:] {
		if slices.Contains(has, family+"@"+release) {
			return release, nil
		}
	}
	return all[old], nil
}

// lacks returns the kinds of images that @latest has and a release has not.
func lacks(latest, images map[string]string, family, release, kubernetes string) (kinds []string) {
	has := map[string]bool{}
	for _, image := range plan.BehindAlias(family+"@"+release, kubernetes) {
		has[image.Arch+image.Variant] = images[image.Parameter] != ""
	}
	for _, image := range plan.BehindAlias(family+"@latest", kubernetes) {
		if kind := image.Arch + image.Variant; latest[image.Parameter] != "" && !has[kind] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// releases returns when each release of Amazon's images of a name was complete, and the images' releases by ID.
func (o *Observer) releases(ctx context.Context, name string) (released map[string]time.Time, of map[string]string, err error) {
	released, of = map[string]time.Time{}, map[string]string{}
	pages := ec2.NewDescribeImagesPaginator(o.EC2, &ec2.DescribeImagesInput{
		Owners:  []string{"amazon"},
		Filters: []ec2types.Filter{{Name: new("name"), Values: []string{name}}, {Name: new("state"), Values: []string{"available"}}},
	})
	err = EachPage(ctx, pages, func(page *ec2.DescribeImagesOutput) {
		for _, image := range page.Images {
			made, err := time.Parse(time.RFC3339, aws.ToString(image.CreationDate))
			release := plan.ReleaseIn(aws.ToString(image.Name))
			if release == "" || err != nil {
				continue
			}
			of[aws.ToString(image.ImageId)] = release
			if made.After(released[release]) {
				released[release] = made
			}
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("images %s: describe: %w", name, err)
	}
	return released, of, nil
}
