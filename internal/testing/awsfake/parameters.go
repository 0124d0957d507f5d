package awsfake

import (
	"cmp"
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSM holds parameters by their full name.
type SSM struct {
	*Calls
	// User is the ARN of who writes.
	User   string
	Values map[string]string
	// Secure are the names of the SecureStrings. Lists are those of the StringLists.
	Secure, Lists map[string]bool
	// Patterns are the AllowedPatterns by name, Descriptions the descriptions.
	Patterns, Descriptions map[string]string
	// HistoryLacks is how many of the last versions a history lacks, because it is read from a replica that is behind.
	HistoryLacks int
	// history holds what calls have written, by name.
	history map[string][]types.ParameterHistory
	// Versions are the numbers of writes since the creation. A parameter that is not here has version 1.
	Versions map[string]int64
	// modified holds when a call last wrote a parameter, before the state before the last write.
	modified map[string]time.Time
	before   map[string]version
}

// version is the state of a parameter until a time. there reports whether the parameter existed.
type version struct {
	value    string
	there    bool
	modified time.Time
	number   int64
	until    time.Time
}

func newSSM(calls *Calls) *SSM {
	return &SSM{Calls: calls, Values: map[string]string{}, Secure: map[string]bool{}, Lists: map[string]bool{},
		Patterns: map[string]string{}, Descriptions: map[string]string{}, history: map[string][]types.ParameterHistory{},
		modified: map[string]time.Time{}, Versions: map[string]int64{}, before: map[string]version{}}
}

// maxValue is the maximum length of a standard parameter's value, maxAdvanced that of an advanced one, in bytes.
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

// wrote records the state of a parameter before a write. A parameter that is created again starts at version 1.
func (s *SSM) wrote(name string) {
	value, there := s.Values[name]
	s.before[name], s.modified[name] = version{value, there, s.modified[name], s.number(name), s.Now()}, s.Now()
	if s.Versions[name] = s.number(name) + 1; !there {
		s.Versions[name] = 1
	}
}

func (s *SSM) number(name string) int64 { return max(1, s.Versions[name]) }

// shown returns the parameters below a path as a lagging replica has them.
func (s *SSM) shown(path string) map[string]version {
	all := map[string]version{}
	for _, name := range s.below(path) {
		all[name] = version{value: s.Values[name], there: true, modified: s.modified[name], number: s.number(name)}
	}
	for name, was := range s.before {
		if strings.HasPrefix(name, path+"/") && s.lags(&was.until, s.Lag.Parameters) {
			all[name] = was
		}
	}
	maps.DeleteFunc(all, func(_ string, v version) bool { return !v.there })
	return all
}

// GetParametersByPath returns at most 10 parameters per page. It does not decrypt.
func (s *SSM) GetParametersByPath(_ context.Context, in *ssm.GetParametersByPathInput,
	_ ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error) {
	if err := s.call("SSM.GetParametersByPath", *in.Path); err != nil {
		return nil, err
	}
	shown := s.shown(*in.Path)
	if !value(in.Recursive) {
		maps.DeleteFunc(shown, func(name string, _ version) bool {
			return strings.Contains(strings.TrimPrefix(name, *in.Path+"/"), "/")
		})
	}
	page, next := pageOf(slices.Sorted(maps.Keys(shown)), in.NextToken, int(min(10, value(in.MaxResults))))
	out := &ssm.GetParametersByPathOutput{NextToken: next}
	for _, name := range page {
		p := types.Parameter{
			Name: new(name), Value: new(shown[name].value), Type: s.kind(name), LastModifiedDate: new(shown[name].modified),
			Version: shown[name].number,
		}
		if s.Secure[name] {
			p.Value = new("AQICAHh…")
		}
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

// GetParameter returns one parameter, as a lagging replica has it.
func (s *SSM) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	if err := s.call("SSM.GetParameter", *in.Name); err != nil {
		return nil, err
	}
	shown, there := s.shown(path.Dir(*in.Name))[*in.Name]
	if !there {
		return nil, &types.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{
		Name: in.Name, Value: &shown.value, Type: s.kind(*in.Name), Version: shown.number, LastModifiedDate: new(shown.modified),
	}}, nil
}

// GetParameters returns those of at most 10 parameters that exist.
func (s *SSM) GetParameters(_ context.Context, in *ssm.GetParametersInput, _ ...func(*ssm.Options)) (*ssm.GetParametersOutput, error) {
	if err := s.call("SSM.GetParameters", strings.Join(in.Names, " ")); err != nil {
		return nil, err
	}
	if len(in.Names) > 10 {
		return nil, refuse("ValidationException", "Member must have length less than or equal to 10")
	}
	out := &ssm.GetParametersOutput{}
	for _, name := range in.Names {
		if strings.Contains(name, "//") {
			return nil, refuse("ValidationException", "Parameter name %s has an empty part", name)
		}
		shown, there := s.shown(path.Dir(name))[name]
		if !there {
			out.InvalidParameters = append(out.InvalidParameters, name)
			continue
		}
		out.Parameters = append(out.Parameters, types.Parameter{
			Name: &name, Value: &shown.value, Type: s.kind(name), Version: shown.number, LastModifiedDate: new(shown.modified),
		})
	}
	return out, nil
}

// DescribeParameters supports the filter Path.
func (s *SSM) DescribeParameters(_ context.Context, in *ssm.DescribeParametersInput,
	_ ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error) {
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
		if description := s.Descriptions[name]; description != "" {
			p.Description = &description
		}
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

// GetParameterHistory returns one version that calls have written per page.
func (s *SSM) GetParameterHistory(_ context.Context, in *ssm.GetParameterHistoryInput,
	_ ...func(*ssm.Options)) (*ssm.GetParameterHistoryOutput, error) {
	if err := s.call("SSM.GetParameterHistory", *in.Name); err != nil {
		return nil, err
	}
	has := s.history[*in.Name]
	page, next := pageOf(has[:max(0, len(has)-s.HistoryLacks)], in.NextToken, 1)
	return &ssm.GetParameterHistoryOutput{Parameters: page, NextToken: next}, nil
}

// refuses returns Parameter Store's error for a write that it does not accept. An overwrite without a pattern keeps the
// old one.
func (s *SSM) refuses(in *ssm.PutParameterInput) error {
	most, pattern := maxValue, cmp.Or(value(in.AllowedPattern), s.Patterns[*in.Name])
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
		return &types.ParameterPatternMismatchException{
			Message: new("Parameter value, cannot be validated against allowedPattern: " + pattern),
		}
	}
	return nil
}

// Write writes a parameter as somebody else does, without a call.
func (s *SSM) Write(name, value string) {
	s.wrote(name)
	s.Values[name] = value
	s.history[name] = append(s.history[name], types.ParameterHistory{
		Name: &name, Value: &value, Type: s.kind(name), Version: s.number(name), LastModifiedDate: new(s.modified[name]),
		LastModifiedUser: new(s.User),
	})
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
	if in.AllowedPattern != nil {
		s.Patterns[*in.Name] = *in.AllowedPattern
	}
	if in.Description != nil {
		s.Descriptions[*in.Name] = *in.Description
	}
	s.Write(*in.Name, *in.Value)
	return &ssm.PutParameterOutput{Version: s.number(*in.Name)}, nil
}

func (s *SSM) DeleteParameter(_ context.Context, in *ssm.DeleteParameterInput,
	_ ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error) {
	if err := s.call("SSM.DeleteParameter", *in.Name); err != nil {
		return nil, err
	}
	if _, ok := s.Values[*in.Name]; !ok {
		return nil, &types.ParameterNotFound{}
	}
	s.wrote(*in.Name)
	delete(s.Values, *in.Name)
	delete(s.Patterns, *in.Name)
	delete(s.Descriptions, *in.Name)
	delete(s.history, *in.Name)
	return &ssm.DeleteParameterOutput{}, nil
}
