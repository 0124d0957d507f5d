package register

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// EKS is the part of EKS's API that register needs.
type EKS interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	TagResource(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error)
}

// accessDenied is EKS's code for a call that IAM refused.
const accessDenied = "AccessDeniedException"

// cluster is a rack's cluster, and the rack that its owner lets in by a tag.
type cluster struct {
	name, arn string
	// in is the rack in the tag, or empty if there is no tag.
	in string
	// unseen is the reason why the cluster could not be read, or empty.
	unseen string
}

// clusterOf returns the name of the rack's cluster: the one in wanted, else the one in cluster_name, else the rack's
// name.
func (r *Register) clusterOf(ctx context.Context, rack string, wanted Wanted, named bool) (string, error) {
	if !named {
		if wanted.Cluster != "" {
			return wanted.Cluster, nil
		}
		return rack, nil
	}
	name := r.Paths.Params(rack) + "/" + clusterName
	out, err := r.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return "", fmt.Errorf("parameter %s: read: %w", clusterName, err)
	}
	if out.Parameter.Type == types.ParameterTypeSecureString {
		return "", fmt.Errorf("%s is a SecureString, which Sawhorse does not read; nothing was written; "+
			"delete it and write it again with --type String, and run register again", clusterName)
	}
	was := *out.Parameter.Value
	has := was
	if was == params.Unset || was == params.Default {
		has = rack
	}
	if wanted.Cluster != "" && has != wanted.Cluster { // only the user changes an existing cluster_name
		return "", fmt.Errorf("%s is there already and says %q, not %q; nothing was written; "+
			"write it with `aws ssm put-parameter --overwrite --type String --name %s --value %s`, and run register again",
			clusterName, was, wanted.Cluster, name, wanted.Cluster)
	}
	return has, nil
}

// describe reads the cluster's tag. If the tag lets another rack in, it returns an error, because the owner has decided.
func (r *Register) describe(ctx context.Context, rack, name string) (cluster, error) {
	found := cluster{name: name}
	out, err := r.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
	switch {
	case errors.As(err, new(*ekstypes.ResourceNotFoundException)):
		found.unseen = "there is no EKS cluster of that name in this account and region yet"
		return found, nil
	case outcome.Code(err) == accessDenied:
		found.unseen = "these credentials may not look at it (eks:DescribeCluster)"
		return found, nil
	case err != nil:
		return found, fmt.Errorf("cluster %s: describe: %w", name, err)
	}
	found.arn, found.in = aws.ToString(out.Cluster.Arn), out.Cluster.Tags[ownership.TagRack]
	if found.in != "" && found.in != rack {
		return found, fmt.Errorf("cluster %s carries the tag %s=%s, by which its owner lets rack %s in and no other; "+
			"nothing was written; name another cluster with --cluster, "+
			"or, with the owner's rights, write `aws eks tag-resource --resource-arn %s --tags %s=%s`, and run register again", name,
			ownership.TagRack, found.in, found.in, found.arn, ownership.TagRack, rack)
	}
	return found, nil
}

// authorize sets the tag. If these credentials cannot do that, left says what someone else must do.
func (r *Register) authorize(ctx context.Context, rack string, c cluster) (left string, err error) {
	tag := ownership.TagRack + "=" + rack
	if c.unseen != "" {
		return fmt.Sprintf("whether cluster %s lets rack %s in is not known: %s; unless it carries the tag %s already, "+
			"whoever may tag it (eks:TagResource) must write "+
			"`aws eks tag-resource --resource-arn \"$(aws eks describe-cluster --name %s --query cluster.arn --output text)\" "+
			"--tags %s`; until then a pass refuses the cluster", c.name, rack, c.unseen, tag, c.name, tag), nil
	}
	if c.in == rack {
		r.Report("cluster "+c.name, "carries the tag "+tag)
		return "", nil
	}
	_, err = r.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &c.arn, Tags: map[string]string{ownership.TagRack: rack}})
	if outcome.Code(err) == accessDenied {
		return fmt.Sprintf("cluster %s does not let rack %s in yet, and these credentials may not tag it; "+
			"whoever may (eks:TagResource) must write "+
			"`aws eks tag-resource --resource-arn %s --tags %s`; until then a pass refuses the cluster", c.name, rack, c.arn, tag), nil
	}
	if err != nil {
		return "", fmt.Errorf("cluster %s: tag %s: %w", c.name, tag, err)
	}
	r.Report("cluster "+c.name, "tagged "+tag)
	return "", nil
}
