package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// simulated returns actions without which Karpenter does not work, by a resource of the rack's.
func simulated(rack string, c plan.Cluster, nodeRole string) map[string][]string {
	arn := func(service, rest string) string {
		return fmt.Sprintf("arn:%s:%s:%s:%s:%s", c.Partition, service, c.Region, c.Account, rest)
	}
	return map[string][]string{
		"*":                                {"ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "pricing:GetProducts"},
		arn("ec2", "fleet/fleet-0"):        {"ec2:CreateFleet"},
		arn("ec2", "instance/i-0"):         {"ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances"},
		arn("ec2", "launch-template/lt-0"): {"ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate"},
		arn("eks", "cluster/"+c.Name):      {"eks:DescribeCluster"},
		arn("sqs", ownership.Queue(rack)):  {"sqs:ReceiveMessage", "sqs:DeleteMessage"},
		nodeRole:                           {"iam:PassRole"},
		profile(c, "0"):                    {"iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile"},
		"arn:" + c.Partition + ":ssm:" + c.Region + "::parameter/aws/service/eks/0": {"ssm:GetParameter"},
	}
}

func profile(c plan.Cluster, name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:instance-profile%s%s", c.Partition, c.Account, ownership.ProfilePath(c.Region, c.Name), name)
}

// circumstances are the values of the condition keys that Karpenter's calls have.
func circumstances(rack string, c plan.Cluster) (entries []iamtypes.ContextEntry) {
	values := map[string]string{
		"aws:RequestedRegion": c.Region, "iam:PassedToService": "ec2.amazonaws.com", "ec2:CreateAction": "CreateFleet",
		"aws:PrincipalTag/" + ownership.TagRack: rack,
	}
	for key, value := range map[string]string{
		ownership.LabelPool: "workload", ownership.TagEKSCluster: c.Name, "karpenter.k8s.aws/ec2nodeclass": "workload",
	} {
		values["aws:RequestTag/"+key], values["aws:ResourceTag/"+key] = value, value
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		entries = append(entries, iamtypes.ContextEntry{
			ContextKeyName: aws.String(key), ContextKeyType: iamtypes.ContextKeyTypeEnumString, ContextKeyValues: []string{values[key]},
		})
	}
	return entries
}

// organization finds the actions that the organization's policies deny, and those that the boundary of the rack's controller
// role does not allow. The organization's policies apply to every role of the account. So it simulates the rack's role if
// there is one, and otherwise the caller. IAM reports both decisions separately from that of the role's own policies.
func (r *reader) organization(ctx context.Context) error {
	role, err := r.controllerRole(ctx)
	if err != nil {
		return err
	}
	r.o.ControllerRole = role
	nodes, err := r.observer().Role(ctx, ownership.NodeRole(r.o.Rack))
	if err != nil {
		return err
	}
	c := r.o.Facts.Cluster.Cluster
	nodeRole := fmt.Sprintf("arn:%s:iam::%s:role%s%s", c.Partition, c.Account, ownership.RacksPath(""), ownership.NodeRole(r.o.Rack))
	if nodes != nil {
		nodeRole = aws.ToString(nodes.Arn)
	}
	actions := simulated(r.o.Rack, c, nodeRole)
	for _, resource := range slices.Sorted(maps.Keys(actions)) {
		denied, limited, err := r.simulate(ctx, &iam.SimulatePrincipalPolicyInput{
			PolicySourceArn: aws.String(cmp.Or(role, r.o.Caller)), ActionNames: actions[resource], ResourceArns: []string{resource},
			ContextEntries: circumstances(r.o.Rack, c),
		})
		if err != nil {
			return err
		}
		r.o.Denied = append(r.o.Denied, denied...)
		if role != "" {
			r.o.Limited = append(r.o.Limited, limited...)
		}
	}
	return nil
}

// simulate returns the actions that the organization's policies deny, and those that the role's permissions boundary does
// not allow.
func (r *reader) simulate(ctx context.Context, question *iam.SimulatePrincipalPolicyInput) (denied, limited []string, err error) {
	pages := iam.NewSimulatePrincipalPolicyPaginator(r.IAM, question)
	err = observe.EachPage(ctx, pages, func(page *iam.SimulatePrincipalPolicyOutput) {
		for _, result := range page.EvaluationResults {
			if d := result.OrganizationsDecisionDetail; d != nil && !d.AllowedByOrganizations {
				denied = append(denied, aws.ToString(result.EvalActionName))
			}
			if d := result.PermissionsBoundaryDecisionDetail; d != nil && !d.AllowedByPermissionsBoundary {
				limited = append(limited, aws.ToString(result.EvalActionName))
			}
		}
	})
	return denied, limited, err
}

// bounded finds the uses of a key that the permissions boundary of the controller's role does not allow. Before the
// role exists, there is no boundary to check.
func (r *reader) bounded(ctx context.Context) error {
	role, err := r.controllerRole(ctx)
	if err != nil || role == "" {
		return err
	}
	_, r.o.Bounded, err = r.simulate(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: doctor.KeyActions})
	return err
}
