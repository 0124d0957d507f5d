package infrastructure

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// buildOutput is the output with the ARN of the role of build nodes.
const buildOutput = "karpenter_build_node_role_arn"

// buildNodes creates or repairs the role of build nodes and its access entry, or removes what an earlier plan had. It
// returns when the entry was created.
func (i *Step) buildNodes(ctx context.Context, p *plan.Plan, w *resource.Writer) (*time.Time, error) {
	if retired := p.Infrastructure.Retired; retired != "" {
		return nil, i.retire(ctx, p, retired, w)
	}
	if p.Infrastructure.BuildNodes == nil {
		return nil, nil
	}
	role, err := i.role(ctx, p, wantedRole{*p.Infrastructure.BuildNodes, i.NodeBoundary}, w)
	if err != nil {
		return nil, err
	}
	w.Outputs[buildOutput] = *role.Arn
	return i.entry(ctx, p, role, w)
}

// retire removes a role of nodes that the plan does not have any more, with its access entry, once no node has it. Karpenter
// replaces the nodes within their disruption budgets, so no pass waits for that: the first audit afterwards finds that the
// role can go.
func (i *Step) retire(ctx context.Context, p *plan.Plan, role string, w *resource.Writer) error {
	w.Outputs[buildOutput] = ""
	live, owned, err := i.find(ctx, p, role)
	unseen := live == nil && w.Created(aspect(role))
	if err != nil || !owned && !unseen || w.Deleted(aspect(role)) {
		return err
	}
	used, err := i.used(ctx, p, live)
	if err != nil {
		return err
	}
	if !used {
		if err := i.removeEntry(ctx, p, role, w); err != nil {
			return err
		}
		err := i.removeRole(ctx, p, role, w)
		if used = outcome.IsNotYet(err, outcome.Waiting); !used {
			return err
		}
	}
	w.Outputs[buildOutput] = p.Infrastructure.RoleARN(role)
	w.Warn(params.ParamBuildRole, "role %s is kept until no node has it any more: Karpenter replaces its nodes as the "+
		"disruption budget of pool %s allows, and the first audit after that removes the role", role, ownership.BuildPool)
	return nil
}

// used reports whether nodes have a role, or may get it, as a role that IAM does not return yet (nil): it is in an instance
// profile of the cluster. Karpenter deletes a profile that no NodeClaim and no EC2NodeClass names any more, every 30 minutes
// (karpenter-provider-aws 1.10, pkg/controllers/nodeclass/garbagecollection). While a role is new, Karpenter may just have
// made its profile, and a list from one of IAM's replicas may lack it. The policies of a role go before IAM says whether it
// is in a profile, so a role counts as used until a list cannot be that old.
func (i *Step) used(ctx context.Context, p *plan.Plan, role *types.Role) (bool, error) {
	if role == nil || role.CreateDate != nil && i.Now().Sub(*role.CreateDate) < 2*resource.Lag {
		return true, nil
	}
	profiles, err := i.profiles(ctx, ownership.ProfilePath(p.Cluster.Region, p.Cluster.Name))
	return slices.ContainsFunc(profiles, func(profile types.InstanceProfile) bool {
		return slices.ContainsFunc(profile.Roles, func(r types.Role) bool { return *r.RoleName == *role.RoleName })
	}), err
}
