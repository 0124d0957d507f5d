// Package register creates a rack's parameters in Parameter Store, so that SSM refuses invalid values at the write, and
// lets the rack into its cluster.
package register

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	smithytime "github.com/aws/smithy-go/time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// SSM is the part of SSM's API that register needs.
type SSM interface {
	DescribeParameters(context.Context, *ssm.DescribeParametersInput, ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error)
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
	GetParameterHistory(context.Context, *ssm.GetParameterHistoryInput, ...func(*ssm.Options)) (*ssm.GetParameterHistoryOutput, error)
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

// Register waits for Interval after each write, because SSM allows 3 PutParameter calls a second in an account by
// default.
type Register struct {
	SSM      SSM
	EKS      EKS
	Paths    ownership.Paths
	Interval time.Duration
	// Report is called with the name of each parameter and of the cluster, and what was done: created, updated,
	// unchanged, or why it was left alone.
	Report func(name, action string)
}

// Wanted says what to register for a rack.
type Wanted struct {
	// Names are the parameters to create or update. Without Names and All, these are the parameters that turn Karpenter
	// on and every existing one.
	Names []string
	// All creates every missing parameter. A rack then uses some 65 of the 10,000 parameters that SSM allows.
	All bool
	// Cluster, if not empty, is the value for a new cluster_name. If cluster_name exists with another value, Run
	// returns an error.
	Cluster string
}

// wants reports whether to register a parameter. exists says whether it exists in Parameter Store.
func (w Wanted) wants(p params.Param, exists bool) bool {
	switch {
	case w.All, p.Name == clusterName && w.Cluster != "", slices.Contains(w.Names, p.Name):
		return true
	case len(w.Names) > 0:
		return false
	}
	return exists || p.Section == params.SectionEnabling
}

// Run lets the rack into its cluster, creates missing parameters, and updates description and pattern of existing ones.
// It can be stopped anywhere and run again. Work that others must do is not an error: left describes it.
func (r *Register) Run(ctx context.Context, rack string, wanted Wanted) (left string, err error) {
	if wrong := params.RackName(rack, true); wrong != nil { // a rack is registered to turn Karpenter on
		return "", errors.New(wrong.Message)
	}
	live, err := r.live(ctx, rack)
	if err != nil {
		return "", err
	}
	_, named := live[clusterName]
	name, err := r.clusterOf(ctx, rack, wanted, named)
	if err != nil {
		return "", err
	}
	found, err := r.describe(ctx, rack, name)
	if err != nil {
		return "", err
	}
	// The tag is set before the parameters are written, because the writes start passes that look for the tag.
	if left, err = r.authorize(ctx, rack, found); err != nil {
		return "", err
	}
	return left, r.parameters(ctx, rack, wanted, live)
}

func (r *Register) parameters(ctx context.Context, rack string, wanted Wanted, live map[string]types.ParameterMetadata) (err error) {
	for _, p := range params.Table {
		have, exists := live[p.Name]
		if !wanted.wants(p, exists) {
			continue
		}
		value := params.Unset
		if p.Name == clusterName && wanted.Cluster != "" {
			value = wanted.Cluster
		}
		action := "unchanged"
		switch {
		case !exists:
			action, err = r.create(ctx, rack, p, value)
		case aws.ToString(have.AllowedPattern) != p.AllowedPattern() || aws.ToString(have.Description) != p.Description:
			action, err = r.update(ctx, rack, p)
		}
		if err != nil {
			return err
		}
		r.Report(p.Name, action)
		if action == "created" || action == "updated" {
			if err := smithytime.SleepWithContext(ctx, r.Interval); err != nil {
				return err
			}
		}
	}
	return nil
}

const clusterName = "cluster_name"

// live returns what SSM has about the rack's parameters, without their values.
func (r *Register) live(ctx context.Context, rack string) (map[string]types.ParameterMetadata, error) {
	folder := r.Paths.Params(rack)
	found := map[string]types.ParameterMetadata{}
	pages := ssm.NewDescribeParametersPaginator(r.SSM, &ssm.DescribeParametersInput{
		MaxResults:       new(int32(50)),
		ParameterFilters: []types.ParameterStringFilter{{Key: new("Path"), Option: new("OneLevel"), Values: []string{folder}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("parameters below %s: list: %w", folder, err)
		}
		for _, p := range page.Parameters {
			found[(*p.Name)[len(folder)+1:]] = p
		}
	}
	return found, nil
}

func (r *Register) create(ctx context.Context, rack string, p params.Param, value string) (string, error) {
	_, err := r.SSM.PutParameter(ctx, r.input(rack, p, value, false))
	if errors.As(err, new(*types.ParameterAlreadyExists)) {
		return "written by somebody else in this moment; run register again", nil
	}
	if errors.As(err, new(*types.ParameterLimitExceeded)) {
		return "", fmt.Errorf("parameter %s: create: Parameter Store holds %d standard parameters in an account and region, and there are as "+
			"many; delete those that nobody needs: of a rack's, the ones that say %s only keep a pattern, and a value may be written without one",
			p.Name, ownership.MostParameters, params.Unset)
	}
	if err != nil {
		return "", fmt.Errorf("parameter %s: create: %w", p.Name, err)
	}
	return "created", nil
}

// attempts is how often update repeats its write because of another write in between.
const attempts = 5

// update writes the current value again, with description and pattern. SSM has no conditional put. If the version shows
// that someone else wrote in between, update reads their value from the history and writes it back.
func (r *Register) update(ctx context.Context, rack string, p params.Param) (string, error) {
	name := r.Paths.Params(rack) + "/" + p.Name
	out, err := r.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return "", fmt.Errorf("parameter %s: read: %w", p.Name, err)
	}
	if out.Parameter.Type == types.ParameterTypeSecureString {
		return "left alone: a SecureString", nil
	}
	value, version := *out.Parameter.Value, out.Parameter.Version
	obeys := regexp.MustCompile(p.AllowedPattern())
	for range attempts {
		input, action := r.input(rack, p, value, true), "updated"
		input.Type = out.Parameter.Type
		if !obeys.MatchString(value) {
			action = "left alone: its value does not obey the pattern " + p.AllowedPattern()
			if version == out.Parameter.Version {
				return action, nil
			}
			input.AllowedPattern = new(`[\s\S]*`) // the last write replaced this value of somebody else, which comes back
		}
		put, err := r.SSM.PutParameter(ctx, input)
		if err != nil {
			return "", fmt.Errorf("parameter %s: update: %w", p.Name, err)
		}
		if put.Version == version+1 {
			return action, nil
		}
		if value, err = r.at(ctx, name, put.Version-1); err != nil {
			return "", err
		}
		version = put.Version
	}
	return "", fmt.Errorf("parameter %s: somebody keeps writing it; run register again when that has ended", p.Name)
}

// at returns the value of one version.
func (r *Register) at(ctx context.Context, name string, version int64) (string, error) {
	pages := ssm.NewGetParameterHistoryPaginator(r.SSM, &ssm.GetParameterHistoryInput{Name: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("parameter %s: read history: %w", name, err)
		}
		for _, p := range page.Parameters {
			if p.Version == version {
				return *p.Value, nil
			}
		}
	}
	return "", fmt.Errorf("parameter %s: version %d is not in its history", name, version)
}

func (r *Register) input(rack string, p params.Param, value string, overwrite bool) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{
		Name: new(r.Paths.Params(rack) + "/" + p.Name), Value: &value, Type: types.ParameterTypeString,
		Description: new(p.Description), AllowedPattern: new(p.AllowedPattern()), Overwrite: &overwrite,
	}
}
