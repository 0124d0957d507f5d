package register

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// store is a Parameter Store with versions, patterns and a history.
type store struct {
	versions map[string][]types.ParameterHistory
	writes   int
	full     bool
	// meanwhile is called before each write, to simulate a write by someone else.
	meanwhile func(name string)
}

func (s *store) last(name string) *types.ParameterHistory {
	if all := s.versions[name]; len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

func (s *store) add(in *ssm.PutParameterInput) int64 {
	version := int64(len(s.versions[*in.Name]) + 1)
	s.versions[*in.Name] = append(s.versions[*in.Name], types.ParameterHistory{
		Name: in.Name, Value: in.Value, Type: in.Type, Version: version, AllowedPattern: in.AllowedPattern, Description: in.Description,
	})
	return version
}

func (s *store) DescribeParameters(context.Context, *ssm.DescribeParametersInput,
	...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error) {
	out := &ssm.DescribeParametersOutput{}
	for name := range s.versions {
		p := s.last(name)
		out.Parameters = append(out.Parameters, types.ParameterMetadata{
			Name: p.Name, AllowedPattern: p.AllowedPattern, Description: p.Description,
		})
	}
	return out, nil
}

func (s *store) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	p := s.last(*in.Name)
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Name: p.Name, Value: p.Value, Type: p.Type, Version: p.Version}}, nil
}

func (s *store) GetParameterHistory(_ context.Context, in *ssm.GetParameterHistoryInput,
	_ ...func(*ssm.Options)) (*ssm.GetParameterHistoryOutput, error) {
	return &ssm.GetParameterHistoryOutput{Parameters: s.versions[*in.Name]}, nil
}

func (s *store) PutParameter(_ context.Context, in *ssm.PutParameterInput, _ ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	if s.meanwhile != nil {
		s.meanwhile(*in.Name)
	}
	if s.last(*in.Name) != nil && !*in.Overwrite {
		return nil, &types.ParameterAlreadyExists{}
	}
	if s.full {
		return nil, &types.ParameterLimitExceeded{}
	}
	s.writes++
	return &ssm.PutParameterOutput{Version: s.add(in)}, nil
}

const cpu = "/sawhorse/racks/demo/params/karpenter_cpu_limit"

func user(name, value string) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeString}
}

func run(t *testing.T, s *store) map[string]string {
	t.Helper()
	told := map[string]string{}
	r := Register{SSM: s, EKS: clusters{}, Paths: ownership.Paths{Prefix: "/sawhorse"},
		Tell: func(name, action string) { told[name] = action }}
	if _, err := r.Run(t.Context(), "demo", Wanted{All: true, Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	return told
}

func TestCreatesThenDoesNothing(t *testing.T) {
	s := &store{versions: map[string][]types.ParameterHistory{}}
	told := run(t, s)
	if s.writes != len(params.Table) || told["karpenter_cpu_limit"] != "created" {
		t.Errorf("%d writes, %v", s.writes, told)
	}
	for _, p := range params.Table {
		live, want := s.last("/sawhorse/racks/demo/params/"+p.Name), params.Unset
		if p.Name == "cluster_name" {
			want = "prod"
		}
		if *live.Value != want || *live.AllowedPattern != p.AllowedPattern() || *live.Description != p.Description {
			t.Errorf("%s: %+v", p.Name, live)
		}
	}
	if run(t, s); s.writes != len(params.Table) {
		t.Errorf("the second run wrote: %d writes", s.writes)
	}
}

// A rack name that cannot have Karpenter is refused before anything is written or tagged.
func TestARackNameThatPassesRefuse(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, good := range map[string]bool{long(26): true, long(27): false, long(34): false, "Demo": false} {
		s, all := &store{versions: map[string][]types.ParameterHistory{}}, clusters{"prod": {}}
		r := Register{SSM: s, EKS: all, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(string, string) {}}
		_, err := r.Run(t.Context(), name, Wanted{Cluster: "prod"})
		if (err == nil) != good || !good && (s.writes+len(all["prod"]) > 0 || !strings.Contains(err.Error(), "the rack's name")) {
			t.Errorf("%s: %v, %d writes, tags %v", name, err, s.writes, all["prod"])
		}
	}
}

// --cluster sets a new cluster_name. It does not change an existing one, and this is reported before anything is
// written.
func TestAnotherCluster(t *testing.T) {
	for value, good := range map[string]bool{"prod": true, "other": false, params.Unset: false} {
		s := &store{versions: map[string][]types.ParameterHistory{}}
		s.add(user("/sawhorse/racks/demo/params/cluster_name", value))
		r := Register{SSM: s, EKS: clusters{}, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(string, string) {}}
		_, err := r.Run(t.Context(), "demo", Wanted{Cluster: "prod"})
		if (err == nil) != good || !good && (s.writes > 0 || !strings.Contains(err.Error(), `says "`+value+`", not "prod"`)) {
			t.Errorf("%s: %v, %d writes", value, err, s.writes)
		}
	}
}

// A parameter that is neither named nor set is not created, because SSM allows 10,000 parameters in an account.
func TestRegistersWhatIsNamedOrSet(t *testing.T) {
	enabling := []string{"karpenter_auth_mode", "karpenter_enabled"}
	for _, c := range []struct {
		what   string
		wanted Wanted
		there  []string
		told   []string
	}{
		{"a new rack", Wanted{}, nil, enabling},
		{"a new rack of another cluster", Wanted{Cluster: "prod"}, nil, append([]string{"cluster_name"}, enabling...)},
		{"what is set", Wanted{}, []string{cpu}, append([]string{"karpenter_cpu_limit"}, enabling...)},
		{"what is named", Wanted{Names: []string{"karpenter_arch", "node_disk"}}, []string{cpu}, []string{"karpenter_arch", "node_disk"}},
	} {
		s, told := &store{versions: map[string][]types.ParameterHistory{}}, []string{}
		for _, name := range c.there {
			s.add(user(name, "200"))
		}
		r := Register{SSM: s, EKS: clusters{}, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(name, _ string) {
			told = append(told, name)
		}}
		if _, err := r.Run(t.Context(), "demo", c.wanted); err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.told)
		if slices.Sort(told); !slices.Equal(told, c.told) || s.writes != len(c.told) {
			t.Errorf("%s: %v in %d writes, want %v", c.what, told, s.writes, c.told)
		}
	}
}

// If the account has reached its limit of parameters, the error says what to do.
func TestAFullAccount(t *testing.T) {
	s := &store{versions: map[string][]types.ParameterHistory{}, full: true}
	r := Register{SSM: s, EKS: clusters{}, Paths: ownership.Paths{Prefix: "/sawhorse"}, Tell: func(string, string) {}}
	if _, err := r.Run(t.Context(), "demo", Wanted{}); err == nil || !strings.Contains(err.Error(), "10000 standard parameters") {
		t.Errorf("%v", err)
	}
}

// A user's value is kept, and gets the pattern if it matches.
func TestKeepsValues(t *testing.T) {
	for value, action := range map[string]string{"200": "updated", "many": "left alone"} {
		s := &store{versions: map[string][]types.ParameterHistory{}}
		s.add(user(cpu, value))
		if told := run(t, s); !strings.HasPrefix(told["karpenter_cpu_limit"], action) {
			t.Errorf("%s: %s", value, told["karpenter_cpu_limit"])
		}
		if live := s.last(cpu); *live.Value != value || (live.AllowedPattern != nil) != (action == "updated") {
			t.Errorf("%s: %+v", value, live)
		}
	}
}

// A write between reading and writing back is not lost, even if it does not obey the pattern.
func TestAWriteInBetweenIsNotLost(t *testing.T) {
	for value, action := range map[string]string{"300": "updated", "many": "left alone: its value does not obey the pattern"} {
		s := &store{versions: map[string][]types.ParameterHistory{}}
		s.add(user(cpu, "200"))
		s.meanwhile = func(name string) {
			if name == cpu && len(s.versions[cpu]) == 1 {
				s.add(user(cpu, value))
			}
		}
		told := run(t, s)["karpenter_cpu_limit"]
		live := s.last(cpu)
		if *live.Value != value || !strings.HasPrefix(told, action) || !regexp.MustCompile(*live.AllowedPattern).MatchString(value) {
			t.Errorf("%s: %s, %s with the pattern %s", value, told, *live.Value, *live.AllowedPattern)
		}
	}
}
