package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// SSM has the calls of Parameter Store that an observation makes.
type SSM interface {
	GetParameters(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// public matches the names and ARNs of AWS's public parameters. No function may read others here.
var public = regexp.MustCompile(`^(?:arn:[^:]+:ssm:[^:]+::parameter)?(/aws/service/.+)$`)

// imageID matches what Karpenter's CRD takes as the ID of an image. In the filter of a call, EC2 reads * and ? as any text,
// so that other values could ask for all public images.
var imageID = regexp.MustCompile(`^ami-[0-9a-z]+$`)

// images returns the images that the pools' configs and fields name, by their IDs or by the public parameters that have them.
func (o *Observer) images(ctx context.Context, config params.Config) (map[string]plan.Image, error) {
	ids, parameters := config.Images()
	named := map[string]string{} // IDs by what the user wrote
	for _, id := range ids {
		if imageID.MatchString(id) {
			named[id] = id
		}
	}
	for _, written := range parameters {
		name := public.FindStringSubmatch(written)
		if name == nil {
			continue
		}
		id, err := o.imageOf(ctx, name[1])
		if err != nil {
			return nil, err
		}
		if id != "" {
			named[written] = id
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	images, err := o.described(ctx, unique(slices.Collect(maps.Values(named))))
	if err != nil {
		return nil, err
	}
	found := map[string]plan.Image{}
	for written, id := range named {
		if image, known := images[id]; known {
			found[written] = image
		}
	}
	return found, nil
}

// imageOf returns the value of a public parameter, or "" if there is no such parameter.
func (o *Observer) imageOf(ctx context.Context, name string) (string, error) {
	out, err := o.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	var refused smithy.APIError
	if errors.As(err, &refused) &&
		slices.Contains([]string{"ParameterNotFound", "ParameterVersionNotFound", "ValidationException"}, refused.ErrorCode()) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("public parameter %s: get: %w", name, err)
	}
	return aws.ToString(out.Parameter.Value), nil
}

// architectures are EC2's as Kubernetes names them.
var architectures = map[ec2types.ArchitectureValues]string{
	ec2types.ArchitectureValuesX8664: "amd64", ec2types.ArchitectureValuesArm64: "arm64",
}

// described returns images by ID. It filters by ID, because EC2 refuses a call that names an ID which does not exist.
func (o *Observer) described(ctx context.Context, ids []string) (map[string]plan.Image, error) {
	images := map[string]plan.Image{}
	const most = 200 // values of a filter
	for some := range slices.Chunk(ids, most) {
		pages := ec2.NewDescribeImagesPaginator(o.EC2, &ec2.DescribeImagesInput{
			Filters: []ec2types.Filter{{Name: new("image-id"), Values: some}}, IncludeDeprecated: new(true), // Karpenter takes them too
		})
		err := EachPage(ctx, pages, func(page *ec2.DescribeImagesOutput) {
			for _, i := range page.Images {
				_, ofNodes := Tags(i.Tags)[ownership.TagNodes]
				image := plan.Image{
					ID: aws.ToString(i.ImageId), Owner: aws.ToString(i.OwnerId), Alias: aws.ToString(i.ImageOwnerAlias), OfNodes: ofNodes,
					Arch: architectures[i.Architecture],
				}
				if i.State != ec2types.ImageStateAvailable {
					image.State = string(i.State)
				}
				images[image.ID] = image
			}
		})
		if err != nil {
			return nil, fmt.Errorf("images %s: describe: %w", strings.Join(some, ", "), err)
		}
	}
	return images, nil
}

// aliasName matches the names of public parameters. A name with another character, or with an empty part, as an alias without its
// version has, makes SSM refuse the whole call.
var aliasName = regexp.MustCompile(`^(/[a-zA-Z0-9_.-]+)+$`)

// aliasImages looks up the AMIs behind aliases, for versions of Kubernetes: one call for an alias of each family.
func (o *Observer) aliasImages(ctx context.Context, aliases []string, versions ...string) (map[string]string, error) {
	var names []string
	for _, alias := range aliases {
		for _, kubernetes := range versions {
			for _, image := range plan.BehindAlias(alias, kubernetes) {
				if kubernetes != "" && aliasName.MatchString(image.Parameter) {
					names = append(names, image.Parameter)
				}
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	found := map[string]string{}
	const most = 10 // that a call takes
	for some := range slices.Chunk(unique(names), most) {
		out, err := o.SSM.GetParameters(ctx, &ssm.GetParametersInput{Names: some})
		if err != nil {
			return nil, fmt.Errorf("public parameters %s: get: %w", strings.Join(some, ", "), err)
		}
		for _, name := range out.InvalidParameters {
			found[name] = ""
		}
		for _, p := range out.Parameters {
			found[aws.ToString(p.Name)] = aws.ToString(p.Value)
		}
	}
	return found, nil
}
