package awsfake

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSM has parameters by their whole name.
type SSM struct {
	*Calls
	Values map[string]string
	// Secure are the names of the SecureStrings.
	Secure map[string]bool
}

func newSSM(calls *Calls) *SSM {
	return &SSM{Calls: calls, Values: map[string]string{}, Secure: map[string]bool{}}
}

// maxValue is how long the value of a standard parameter may be, in bytes.
const maxValue = 4096

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
		p := types.Parameter{Name: new(name), Value: new(s.Values[name]), Type: types.ParameterTypeString}
		if s.Secure[name] {
			p.Type, p.Value = types.ParameterTypeSecureString, new("AQICAHh…")
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
		out.Parameters = append(out.Parameters, types.ParameterMetadata{Name: new(name)})
	}
	return out, nil
}

func (s *SSM) PutParameter(_ context.Context, in *ssm.PutParameterInput, _ ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	if err := s.call("SSM.PutParameter", *in.Name); err != nil {
		return nil, err
	}
	switch _, exists := s.Values[*in.Name]; {
	case exists && !value(in.Overwrite):
		return nil, &types.ParameterAlreadyExists{}
	case *in.Value == "" || len(*in.Value) > maxValue:
		return nil, refuse("ValidationException", "a value has 1 to %d bytes, not %d", maxValue, len(*in.Value))
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
