package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	quotatypes "github.com/aws/aws-sdk-go-v2/service/servicequotas/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// caller finds the principal that an access entry would have to name. The ARN of a role session lacks the role's path,
// so it reads the role from IAM.
func (l *reader) caller(ctx context.Context) {
	out, err := l.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return // only a remedy becomes less exact
	}
	l.o.Caller = aws.ToString(out.Arn)
	before, session, isSession := strings.Cut(l.o.Caller, ":assumed-role/")
	if !isSession {
		return
	}
	role, _, _ := strings.Cut(session, "/")
	l.o.Caller = strings.Replace(before, ":sts:", ":iam:", 1) + ":role/" + role
	if found, _ := l.observer().Role(ctx, role); found != nil {
		l.o.Caller = aws.ToString(found.Arn)
	}
}

func (l *reader) quotas(ctx context.Context) error {
	l.o.Quotas = map[doctor.Quota]float64{}
	for _, q := range []doctor.Quota{doctor.OnDemandVCPU, doctor.SpotVCPU, doctor.RulesPerBus} {
		found, err := l.quota(ctx, q)
		if err != nil {
			return err
		}
		if found == nil || found.Value == nil {
			return fmt.Errorf("quota %s of %s: it has no value", q.Code, q.Service)
		}
		l.o.Quotas[q] = *found.Value
	}
	return nil
}

// quota reads a quota of the account, or AWS's default if it was never raised.
func (l *reader) quota(ctx context.Context, q doctor.Quota) (*quotatypes.ServiceQuota, error) {
	out, err := l.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.Service, QuotaCode: &q.Code})
	if err == nil {
		return out.Quota, nil
	}
	if !errors.As(err, new(*quotatypes.NoSuchResourceException)) {
		return nil, err
	}
	standing, err := l.Quotas.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{
		ServiceCode: &q.Service, QuotaCode: &q.Code,
	})
	if err != nil {
		return nil, err
	}
	return standing.Quota, nil
}

func (l *reader) account(ctx context.Context) error {
	out, err := l.IAM.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{})
	if err != nil {
		return err
	}
	l.o.Account = map[string]int{}
	for name, n := range out.SummaryMap {
		l.o.Account[name] = int(n)
	}
	return nil
}

// allParameters counts the standard parameters of the account. SSM offers no other way than to list them, 50 per page.
func (l *reader) allParameters(ctx context.Context) error {
	pages := ssm.NewDescribeParametersPaginator(l.Parameters, &ssm.DescribeParametersInput{
		MaxResults:       aws.Int32(50),
		ParameterFilters: []ssmtypes.ParameterStringFilter{{Key: aws.String("Tier"), Values: []string{"Standard"}}},
	})
	return observe.EachPage(ctx, pages, func(page *ssm.DescribeParametersOutput) { l.o.Parameters += len(page.Parameters) })
}

func (l *reader) rules(ctx context.Context) error {
	for next := (*string)(nil); ; {
		out, err := l.Rules.ListRules(ctx, &eventbridge.ListRulesInput{NextToken: next})
		if err != nil {
			return err
		}
		l.o.Rules += len(out.Rules)
		for _, r := range out.Rules {
			l.o.RuleExists = l.o.RuleExists || aws.ToString(r.Name) == ownership.Rule(l.o.Rack)
		}
		if next = out.NextToken; next == nil {
			return nil
		}
	}
}

func (l *reader) spotRole(ctx context.Context) error {
	out, err := l.IAM.ListRoles(ctx, &iam.ListRolesInput{PathPrefix: aws.String("/aws-service-role/spot.amazonaws.com/")})
	l.o.SpotRole = err == nil && len(out.Roles) > 0
	return err
}

// simulated are actions without which Karpenter does not work.
var simulated = []string{
	"ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "ec2:TerminateInstances",
	"iam:PassRole", "iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile", "ssm:GetParameter", "sqs:ReceiveMessage",
	"eks:DescribeCluster",
}

// organization finds the actions that the organization's policies deny. These policies apply to every role of the
// account. So it simulates the rack's controller role if there is one, and otherwise the caller. IAM reports their
// decision separately from that of the role's own policies.
func (l *reader) organization(ctx context.Context) error {
	role, err := l.controllerRole(ctx)
	if err != nil {
		return err
	}
	region := iamtypes.ContextEntry{
		ContextKeyName: aws.String("aws:RequestedRegion"), ContextKeyType: iamtypes.ContextKeyTypeEnumString,
		ContextKeyValues: []string{l.o.Facts.Cluster.Region},
	}
	l.o.Denied, err = l.simulate(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: aws.String(cmp.Or(role, l.o.Caller)), ActionNames: simulated, ContextEntries: []iamtypes.ContextEntry{region},
	}, func(r iamtypes.EvaluationResult) bool {
		return r.OrganizationsDecisionDetail != nil && !r.OrganizationsDecisionDetail.AllowedByOrganizations
	})
	return err
}

// controllerRole returns the ARN of the rack's controller role; empty if the role does not exist yet.
func (l *reader) controllerRole(ctx context.Context) (string, error) {
	role, err := l.observer().Role(ctx, ownership.ControllerRole(l.o.Rack))
	if role == nil {
		return "", err
	}
	return aws.ToString(role.Arn), nil
}

// simulate returns the actions for whose simulated result so is true.
func (l *reader) simulate(ctx context.Context, question *iam.SimulatePrincipalPolicyInput,
	so func(iamtypes.EvaluationResult) bool) ([]string, error) {
	var actions []string
	pages := iam.NewSimulatePrincipalPolicyPaginator(l.IAM, question)
	err := observe.EachPage(ctx, pages, func(page *iam.SimulatePrincipalPolicyOutput) {
		for _, r := range page.EvaluationResults {
			if so(r) {
				actions = append(actions, aws.ToString(r.EvalActionName))
			}
		}
	})
	return actions, err
}
