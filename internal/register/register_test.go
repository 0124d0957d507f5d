package register

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const (
	folder = "/sawhorse/racks/demo/params/"
	cpu    = folder + "karpenter_cpu_limit"
)

// begin returns an account with the clusters demo and prod, which no rack is let into, and the registration of racks in it.
func begin(tell func(name, action string)) (*awsfake.Cloud, *Register) {
	cloud := awsfake.New()
	cloud.EKS.Cluster.Tags = map[string]string{"team": "a"}
	cloud.EKS.Other("prod", nil)
	return cloud, &Register{SSM: cloud.SSM, EKS: cloud.EKS, Paths: ownership.Paths{Prefix: "/sawhorse"}, Report: tell}
}

func silent(string, string) {}

// run registers everything of the rack demo, and returns what was told and the number of writes.
func run(t *testing.T, cloud *awsfake.Cloud, r *Register) (told map[string]string, writes int) {
	t.Helper()
	told = map[string]string{}
	r.Report = func(name, action string) { told[name] = action }
	cloud.Forget()
	if _, err := r.Run(t.Context(), "demo", Wanted{All: true, Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	return told, len(written(cloud))
}

// written returns the parameters that were written since Forget.
func written(cloud *awsfake.Cloud) (names []string) {
	for _, call := range cloud.Writes() {
		if name, ok := strings.CutPrefix(call, "SSM.PutParameter "+folder); ok {
			names = append(names, name)
		}
	}
	return names
}

func TestCreatesThenDoesNothing(t *testing.T) {
	cloud, r := begin(nil)
	if told, writes := run(t, cloud, r); writes != len(params.Table) || told["karpenter_cpu_limit"] != "created" {
		t.Errorf("%d writes, %v", writes, told)
	}
	for _, p := range params.Table {
		name, want := folder+p.Name, params.Unset
		if p.Name == "cluster_name" {
			want = "prod"
		}
		if live := cloud.SSM; live.Values[name] != want || live.Patterns[name] != p.AllowedPattern() ||
			live.Descriptions[name] != p.Description {
			t.Errorf("%s: %q, %q, %q", p.Name, live.Values[name], live.Patterns[name], live.Descriptions[name])
		}
	}
	if _, writes := run(t, cloud, r); writes != 0 {
		t.Errorf("the second run wrote: %v", cloud.Writes())
	}
}

// A rack name that cannot have Karpenter is refused before anything is written or tagged.
func TestARackNameThatPassesRefuse(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, good := range map[string]bool{long(26): true, long(27): false, long(34): false, "Demo": false} {
		cloud, r := begin(silent)
		_, err := r.Run(t.Context(), name, Wanted{Cluster: "prod"})
		if (err == nil) != good || !good && (len(cloud.Writes()) > 0 || !strings.Contains(err.Error(), "the rack's name")) {
			t.Errorf("%s: %v, %v", name, err, cloud.Writes())
		}
	}
}

// --cluster sets a new cluster_name. It does not change an existing one, and this is reported before anything is
// written.
func TestAnotherCluster(t *testing.T) {
	for value, good := range map[string]bool{"prod": true, "other": false, params.Unset: false} {
		cloud, r := begin(silent)
		cloud.SSM.Values[folder+"cluster_name"] = value
		_, err := r.Run(t.Context(), "demo", Wanted{Cluster: "prod"})
		if (err == nil) != good || !good && (len(cloud.Writes()) > 0 || !strings.Contains(err.Error(), `says "`+value+`", not "prod"`)) {
			t.Errorf("%s: %v, %v", value, err, cloud.Writes())
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
		var told []string
		cloud, r := begin(func(name, _ string) {
			if !strings.HasPrefix(name, "cluster ") { // its tag
				told = append(told, name)
			}
		})
		for _, name := range c.there {
			cloud.SSM.Values[name] = "200"
		}
		if _, err := r.Run(t.Context(), "demo", c.wanted); err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.told)
		if slices.Sort(told); !slices.Equal(told, c.told) || len(written(cloud)) != len(c.told) {
			t.Errorf("%s: %v, wrote %v, want %v", c.what, told, written(cloud), c.told)
		}
	}
}

// If the account has reached its limit of parameters, the error says what to do.
func TestAFullAccount(t *testing.T) {
	cloud, r := begin(silent)
	cloud.Fail("SSM.PutParameter", &types.ParameterLimitExceeded{})
	if _, err := r.Run(t.Context(), "demo", Wanted{}); err == nil || !strings.Contains(err.Error(), "10000 standard parameters") {
		t.Errorf("%v", err)
	}
}

// A user's value is kept, and gets the pattern if it matches.
func TestKeepsValues(t *testing.T) {
	for value, action := range map[string]string{"200": "updated", "many": "left alone"} {
		cloud, r := begin(nil)
		cloud.SSM.Values[cpu] = value
		if told, _ := run(t, cloud, r); !strings.HasPrefix(told["karpenter_cpu_limit"], action) {
			t.Errorf("%s: %s", value, told["karpenter_cpu_limit"])
		}
		if cloud.SSM.Values[cpu] != value || (cloud.SSM.Patterns[cpu] != "") != (action == "updated") {
			t.Errorf("%s: %q, %q", value, cloud.SSM.Values[cpu], cloud.SSM.Patterns[cpu])
		}
	}
}

// A write between reading and writing back is not lost, even if it does not obey the pattern.
func TestAWriteInBetweenIsNotLost(t *testing.T) {
	for value, action := range map[string]string{"300": "updated", "many": "left alone: its value does not obey the pattern"} {
		cloud, r := begin(nil)
		cloud.SSM.Values[cpu] = "200"
		cloud.Before = func(call string) error {
			if call != "SSM.PutParameter "+cpu {
				return nil
			}
			cloud.Before = nil
			_, err := cloud.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{Name: new(cpu), Value: &value, Overwrite: new(true)})
			return err
		}
		told, _ := run(t, cloud, r)
		pattern := regexp.MustCompile(cloud.SSM.Patterns[cpu])
		if cloud.SSM.Values[cpu] != value || !strings.HasPrefix(told["karpenter_cpu_limit"], action) || !pattern.MatchString(value) {
			t.Errorf("%s: %s, %s with the pattern %s", value, told["karpenter_cpu_limit"], cloud.SSM.Values[cpu], pattern)
		}
	}
}
