package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
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
func (r *reader) caller(ctx context.Context) {
	out, err := r.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return // only a remedy becomes less exact
	}
	r.o.Caller = aws.ToString(out.Arn)
	before, session, isSession := strings.Cut(r.o.Caller, ":assumed-role/")
	if !isSession {
		return
	}
	role, _, _ := strings.Cut(session, "/")
	r.o.Caller = strings.Replace(before, ":sts:", ":iam:", 1) + ":role/" + role
	if found, _ := r.observer().Role(ctx, role); found != nil {
		r.o.Caller = aws.ToString(found.Arn)
	}
}

func (r *reader) quotas(ctx context.Context) error {
	r.o.Quotas = map[doctor.Quota]float64{}
	for _, q := range []doctor.Quota{doctor.OnDemandVCPU, doctor.SpotVCPU, doctor.RulesPerBus} {
		found, err := r.quota(ctx, q)
		if err != nil {
			return err
		}
		if found == nil || found.Value == nil {
			return fmt.Errorf("quota %s of %s: it has no value", q.Code, q.Service)
		}
		r.o.Quotas[q] = *found.Value
	}
	return nil
}

// quota reads a quota of the account, or AWS's default if it was never raised.
func (r *reader) quota(ctx context.Context, q doctor.Quota) (*quotatypes.ServiceQuota, error) {
	out, err := r.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &q.Service, QuotaCode: &q.Code})
	if err == nil {
		return out.Quota, nil
	}
	if !errors.As(err, new(*quotatypes.NoSuchResourceException)) {
		return nil, err
	}
	standing, err := r.Quotas.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{
		ServiceCode: &q.Service, QuotaCode: &q.Code,
	})
	if err != nil {
		return nil, err
	}
	return standing.Quota, nil
}

func (r *reader) account(ctx context.Context) error {
	out, err := r.IAM.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{})
	if err != nil {
		return err
	}
	r.o.Account = map[string]int{}
	for name, n := range out.SummaryMap {
		r.o.Account[name] = int(n)
	}
	return nil
}

// allParameters counts the standard parameters of the account. SSM offers no other way than to list them, 50 per page.
func (r *reader) allParameters(ctx context.Context) error {
	pages := ssm.NewDescribeParametersPaginator(r.Parameters, &ssm.DescribeParametersInput{
		MaxResults:       aws.Int32(50),
		ParameterFilters: []ssmtypes.ParameterStringFilter{{Key: aws.String("Tier"), Values: []string{"Standard"}}},
	})
	return observe.EachPage(ctx, pages, func(page *ssm.DescribeParametersOutput) { r.o.Parameters += len(page.Parameters) })
}

func (r *reader) rules(ctx context.Context) error {
	for next := (*string)(nil); ; {
		out, err := r.Rules.ListRules(ctx, &eventbridge.ListRulesInput{NextToken: next})
		if err != nil {
			return err
		}
		r.o.Rules += len(out.Rules)
		for _, rule := range out.Rules {
			r.o.RuleExists = r.o.RuleExists || aws.ToString(rule.Name) == ownership.Rule(r.o.Rack)
		}
		if next = out.NextToken; next == nil {
			return nil
		}
	}
}

// controllerRole returns the ARN of the rack's controller role; empty if the role does not exist yet.
func (r *reader) controllerRole(ctx context.Context) (string, error) {
	role, err := r.observer().Role(ctx, ownership.ControllerRole(r.o.Rack))
	if role == nil {
		return "", err
	}
	return aws.ToString(role.Arn), nil
}
