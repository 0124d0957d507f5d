package awsfake

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSM has parameters by their whole name.
type SSM struct {
	*Calls
	Values map[string]string
	// Secure are the names of the SecureStrings, Lists those of the StringLists.
	Secure, Lists map[string]bool
	// Patterns are the AllowedPatterns by name.
	Patterns map[string]string
}

func newSSM(calls *Calls) *SSM {
	return &SSM{Calls: calls, Values: map[string]string{}, Secure: map[string]bool{}, Lists: map[string]bool{}, Patterns: map[string]string{}}
}

// maxValue is how long the value of a standard parameter may be, maxAdvanced that of an advanced one, in bytes.
const (
	maxValue    = 4096
	maxAdvanced = 8192
)

func (s *SSM) kind(name string) types.ParameterType {
	switch {
	case s.Secure[name]:
		return types.ParameterTypeSecureString
	case s.Lists[name]:
		return types.ParameterTypeStringList
	}
	return types.ParameterTypeString
}

func (s *SSM) below(path string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Values)), func(name string) bool { return !strings.HasPrefix(name, path+"/") })
}

// GetParametersByPath gives what is asked for a page, 10 at most. It decrypts nothing.
func (s *SSM) GetParametersByPath(_ context.Context, in *ssm.GetParametersByPathInput, _ ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error) {
	if err := s.call("SSM.GetParametersByPath", *in.Path); err != nil {
		return nil, err
	}
	page, next := pageOf(s.below(*in.Path), in.NextToken, int(min(10, value(in.MaxResults))))
	out := &ssm.GetParametersByPathOutput{NextToken: next}
	for _, name := range page {
		p := types.Parameter{Name: new(name), Value: new(s.Values[name]), Type: s.kind(name)}
		if s.Secure[name] {
			p.Value = new("AQICAHh…")
		}
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

// DescribeParameters knows the filter Path.
func (s *SSM) DescribeParameters(_ context.Context, in *ssm.DescribeParametersInput, _ ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error) {
	if err := s.call("SSM.DescribeParameters", ""); err != nil {
		return nil, err
	}
	page, next := pageOf(s.below(in.ParameterFilters[0].Values[0]), in.NextToken, int(min(50, value(in.MaxResults))))
	out := &ssm.DescribeParametersOutput{NextToken: next}
	for _, name := range page {
		p := types.ParameterMetadata{Name: new(name), Type: s.kind(name)}
		if pattern := s.Patterns[name]; pattern != "" {
			p.AllowedPattern = &pattern
		}
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

// refuses is what Parameter Store says to a write that it does not take.
func (s *SSM) refuses(in *ssm.PutParameterInput) error {
	most, pattern := maxValue, s.Patterns[*in.Name]
	if in.Tier == types.ParameterTierIntelligentTiering || in.Tier == types.ParameterTierAdvanced {
		most = maxAdvanced
	}
	switch _, exists := s.Values[*in.Name]; {
	case exists && !value(in.Overwrite):
		return &types.ParameterAlreadyExists{}
	case !exists && in.Type == "":
		return refuse("ValidationException", "A parameter type is required when you create a parameter.")
	case exists && in.Type != "" && in.Type != s.kind(*in.Name):
		return &types.HierarchyTypeMismatchException{}
	case *in.Value == "" || len(*in.Value) > most:
		return refuse("ValidationException", "a value has 1 to %d bytes, not %d", most, len(*in.Value))
	case pattern != "" && !regexp.MustCompile(pattern).MatchString(*in.Value):
		return &types.ParameterPatternMismatchException{Message: new("Parameter value, cannot be validated against allowedPattern: " + pattern)}
	}
	return nil
}

func (s *SSM) PutParameter(_ context.Context, in *ssm.PutParameterInput, _ ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	if err := s.call("SSM.PutParameter", *in.Name); err != nil {
		return nil, err
	}
	if err := s.refuses(in); err != nil {
		return nil, err
	}
	if in.Type == types.ParameterTypeStringList {
		s.Lists[*in.Name] = true
	}
	s.Values[*in.Name] = *in.Value
	return &ssm.PutParameterOutput{}, nil
}

func (s *SSM) DeleteParameter(_ context.Context, in *ssm.DeleteParameterInput, _ ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error) {
	if err := s.call("SSM.DeleteParameter", *in.Name); err != nil {
		return nil, err
	}
	if _, ok := s.Values[*in.Name]; !ok {
		return nil, &types.ParameterNotFound{}
	}
	delete(s.Values, *in.Name)
	return &ssm.DeleteParameterOutput{}, nil
}
