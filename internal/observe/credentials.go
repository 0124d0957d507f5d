package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// IAM has the calls of IAM that an observation makes.
type IAM interface {
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	GetOpenIDConnectProvider(context.Context, *iam.GetOpenIDConnectProviderInput, ...func(*iam.Options)) (
		*iam.GetOpenIDConnectProviderOutput, error)
	ListAttachedRolePolicies(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (
		*iam.ListAttachedRolePoliciesOutput, error)
}

// credentials reads the facts that decide between EKS Pod Identity and IRSA. While IRSA is used, they include the OIDC
// provider.
func (o *Observer) credentials(ctx context.Context, config params.Config, cluster plan.Cluster, records plan.Records,
	facts *plan.Facts) (err error) {
	if config.Enabled && records.Credentials == "" {
		agent, err := o.AddOn(ctx, config.ClusterName, ownership.PodIdentityAgent)
		if err != nil {
			return err
		}
		facts.PodIdentity = agent != nil && plan.Installed(string(agent.Status))
	}
	if config.Enabled && records.Credentials != "podidentity" && !facts.PodIdentity {
		facts.OIDCProvider, facts.OIDCWithoutSTS, err = o.OIDCProvider(ctx, cluster)
		return err
	}
	return nil
}

// OIDCProvider reports whether IAM has the cluster's OIDC provider, and whether the provider lacks STS's client ID, so
// that STS refuses its tokens.
func (o *Observer) OIDCProvider(ctx context.Context, c plan.Cluster) (exists, withoutSTS bool, err error) {
	if c.OIDCIssuer == "" {
		return false, false, nil
	}
	provider := plan.OIDCProviderARN(c)
	out, err := o.IAM.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &provider})
	if errors.As(err, new(*iamtypes.NoSuchEntityException)) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("OIDC provider %s: get: %w", provider, err)
	}
	return true, !slices.Contains(out.ClientIDList, ownership.OIDCClient), nil
}

// noSpotRole reports whether the account lacks the role that spot instances need, if a pool may launch some.
func (o *Observer) noSpotRole(ctx context.Context, config params.Config) (bool, error) {
	pools := append([]params.Pool{config.Workload}, config.Additional...)
	if config.BuildNodes {
		pools = append(pools, config.Build)
	}
	asks := slices.ContainsFunc(config.Overrides(), func(o params.Override) bool { return o.NodePool != nil }) // which may require it
	for _, p := range pools {
		asks = asks || slices.Contains(p.CapacityTypes, "spot")
	}
	if !config.Enabled || !asks {
		return false, nil
	}
	role, err := o.Role(ctx, ownership.SpotRole)
	if err != nil {
		return false, fmt.Errorf("role %s: get: %w", ownership.SpotRole, err)
	}
	return role == nil, nil
}

// systemPolicies returns the policies that are attached to the roles of the system node groups.
func (o *Observer) systemPolicies(ctx context.Context, config params.Config, facts plan.Facts) ([]string, error) {
	var roles, policies []string
	for _, g := range facts.OfRole(config, plan.RoleSystem) {
		if g.NodeRole != "" {
			roles = append(roles, g.NodeRole[strings.LastIndex(g.NodeRole, "/")+1:])
		}
	}
	for _, role := range unique(roles) {
		pages := iam.NewListAttachedRolePoliciesPaginator(o.IAM, &iam.ListAttachedRolePoliciesInput{RoleName: &role})
		err := EachPage(ctx, pages, func(page *iam.ListAttachedRolePoliciesOutput) {
			for _, p := range page.AttachedPolicies {
				policies = append(policies, aws.ToString(p.PolicyArn))
			}
		})
		// EKS reports a role that is gone in the node group's health.
		if err != nil && !errors.As(err, new(*iamtypes.NoSuchEntityException)) {
			return nil, fmt.Errorf("role %s: list policies: %w", role, err)
		}
	}
	return unique(policies), nil
}
