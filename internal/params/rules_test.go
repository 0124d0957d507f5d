package params

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const on, off = "true", "false"

func TestRules(t *testing.T) {
	type texts = map[string]string
	name26, name27 := "a"+strings.Repeat("b", 25), "a"+strings.Repeat("b", 26)
	for _, c := range []struct {
		what     string
		in       Input
		problems []string // the parameter and a part of the message, in order
		warnings []string
		auth, on bool // the values in force
	}{
		{what: "both at once", in: Input{Rack: "demo", Params: texts{authMode: on, enabled: on}}, auth: true, on: true},
		{what: "access alone", in: Input{Rack: "demo", Params: texts{authMode: on}}, auth: true},
		{what: "Karpenter without access", in: Input{Rack: "demo", Params: texts{enabled: on}}, on: true,
			problems: []string{"karpenter_enabled: set karpenter_auth_mode to true too"}},
		{what: "Karpenter with access off", in: Input{Rack: "demo", Params: texts{enabled: on, authMode: off}}, on: true,
			problems: []string{"karpenter_enabled: set karpenter_auth_mode to true too"}},

		{what: "access is one-way", in: Input{Rack: "demo", Params: texts{authMode: off}, Previous: texts{authMode: on}},
			problems: []string{"karpenter_auth_mode: write true"}},
		{what: "access never applied may be false", in: Input{Rack: "demo", Params: texts{authMode: off}, Previous: texts{authMode: off}}},
		{what: "access deleted counts as true", in: Input{Rack: "demo", Previous: texts{authMode: on}}, auth: true,
			warnings: []string{"karpenter_auth_mode: one-way"}},
		{what: "access unset counts as true",
			in: Input{Rack: "demo", Params: texts{authMode: Unset}, Previous: texts{authMode: on}}, auth: true,
			warnings: []string{"karpenter_auth_mode: set it to true"}},

		{what: "deleting both turns nothing off",
			in: Input{Rack: "demo", Params: texts{"node_disk": "20"}, Previous: texts{authMode: on, enabled: on}}, auth: true, on: true,
			warnings: []string{"karpenter_auth_mode: counts as true", "karpenter_enabled: or to false to turn Karpenter off"}},
		{what: "deleting the whole tree changes nothing",
			in: Input{Rack: "demo", Previous: texts{authMode: on, enabled: on, clusterName: "prod"}}, auth: true, on: true,
			warnings: []string{"rack: write karpenter_enabled=false (and cluster_name=prod)"}},
		{what: "deleting the whole tree while Karpenter goes",
			in: Input{Rack: "demo", Removing: true, Previous: texts{authMode: on, enabled: off, clusterName: "prod"}}, auth: true,
			warnings: []string{"rack: has no parameters any more"}},
		{what: "unset turns nothing off",
			in:   Input{Rack: "demo", Params: texts{authMode: on, enabled: Unset}, Previous: texts{authMode: on, enabled: on}},
			auth: true, on: true,
			warnings: []string{"karpenter_enabled: counts as true"}},
		{what: "default turns nothing off",
			in:   Input{Rack: "demo", Params: texts{authMode: Default, enabled: Default}, Previous: texts{authMode: on, enabled: on}},
			auth: true, on: true,
			warnings: []string{"karpenter_auth_mode: counts as true", "karpenter_enabled: counts as true"}},
		{what: "only false turns it off",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: off}, Previous: texts{authMode: on, enabled: on}}, auth: true},
		{what: "a typo turns nothing off",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: "flase"}, Previous: texts{authMode: on, enabled: on}}, auth: true,
			problems: []string{"karpenter_enabled: allowed is true or false"}},

		{what: "turning off with a bad pool",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: off, "karpenter_cpu_limit": "0", "karpenter_node_expiry": "30d"},
				Previous: texts{authMode: on, enabled: on}}, auth: true,
			warnings: []string{"karpenter_cpu_limit: allowed is", "karpenter_node_expiry: write 720h"}},
		{what: "turning off is held up by the rack's own",
			in: Input{
				Rack: "demo", Params: texts{authMode: on, enabled: off, "high_availability": "x"}, Previous: texts{authMode: on, enabled: on},
			}, auth: true,
			problems: []string{"high_availability: allowed is"}},
		{what: "turning off with what only nodes of Karpenter's need",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: off, "node_disk": "60000", "node_type": "M5", "karpenter_cpu_limt": "5"},
				Previous: texts{authMode: on, enabled: on}}, auth: true,
			warnings: []string{"karpenter_cpu_limt: did you mean", "node_disk: write 59000 or less", "node_type: write"}},
		{what: "nothing follows from a refused disk",
			in: Input{Rack: "demo", Params: texts{"node_disk": "x", "karpenter_node_volume_iops": "20000",
				ParamAdditional: `[{"name":"a","volume_iops":70000},{"name":"b","disk":-1,"volume_iops":70000}]`}},
			problems: []string{"additional_karpenter_nodepools_config: [1].disk is", "node_disk: allowed is"}},
		{what: "nothing follows from refused IOPS",
			in: Input{Rack: "demo", Params: texts{"karpenter_node_volume_iops": "1", "karpenter_node_volume_throughput": "2000",
				ParamAdditional: `[{"name":"a","volume_throughput":2000},{"name":"b","volume_iops":1,"volume_throughput":2000}]`}},
			problems: []string{"additional_karpenter_nodepools_config: [1].volume_iops is", "karpenter_node_volume_iops: allowed is"}},
		{what: "nothing follows from a refused volume type",
			in: Input{Rack: "demo", Params: texts{"karpenter_node_volume_type": "x", "karpenter_node_volume_iops": "6000",
				ParamAdditional: `[{"name":"a","disk":5},{"name":"b","volume_type":"y","volume_iops":70000}]`}},
			problems: []string{"additional_karpenter_nodepools_config: [1].volume_type is", "karpenter_node_volume_type: allowed is"}},
		{what: "what a pool inherits and its disk does not allow",
			in: Input{Rack: "demo", Params: texts{"karpenter_node_volume_iops": "6000", ParamAdditional: `[{"name":"a","disk":10}]`}},
			problems: []string{"additional_karpenter_nodepools_config: [0].volume_iops is 6000, as karpenter_node_volume_iops says, but EBS " +
				"provisions at most 500 IOPS for each GiB of a gp3 volume, and the pool's disk has 10 GiB: allowed are 5000; write 5000 or less, " +
				"or [0].disk of 12"}},
		{what: "the throughput that a pool inherits and its IOPS do not allow",
			in: Input{Rack: "demo", Params: texts{"karpenter_node_volume_iops": "6000", "karpenter_node_volume_throughput": "1000",
				ParamAdditional: `[{"name":"a","volume_iops":3000}]`}},
			problems: []string{"additional_karpenter_nodepools_config: [0].volume_throughput is 1000 MiB/s, as karpenter_node_volume_throughput " +
				"says, but EBS provisions at most 0.25 MiB/s for each of the volume's IOPS, which are 3000: allowed are 750; write 750 or less, or " +
				"[0].volume_iops of 4000"}},
		{what: "a bad pool while off",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: off, "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: off}}, auth: true,
			problems: []string{"karpenter_cpu_limit: allowed is"}},
		{what: "a bad pool while on",
			in: Input{Rack: "demo", Params: texts{authMode: on, enabled: on, "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: on}}, auth: true, on: true,
			problems: []string{"karpenter_cpu_limit: allowed is"}},
		{what: "a bad pool while on, and a word that is not the one for off",
			in: Input{Rack: "demo", Removing: true, Params: texts{authMode: on, enabled: "False", "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: on}}, auth: true,
			problems: []string{"karpenter_cpu_limit: allowed is", "karpenter_enabled: allowed is"}},
		{what: "a bad pool, the second round of turning off",
			in: Input{Rack: "demo", Removing: true, Params: texts{authMode: on, enabled: off, "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: off}}, auth: true,
			warnings: []string{"karpenter_cpu_limit: allowed is"}},
		{what: "a bad pool, the second round of turning off, the word deleted meanwhile",
			in: Input{Rack: "demo", Removing: true, Params: texts{authMode: on, "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: off}}, auth: true,
			warnings: []string{"karpenter_cpu_limit: allowed is"}},
		{what: "a bad pool, turned on again while it was being removed",
			in: Input{Rack: "demo", Removing: true, Params: texts{authMode: on, enabled: on, "karpenter_cpu_limit": "0"},
				Previous: texts{authMode: on, enabled: off}}, auth: true, on: true,
			problems: []string{"karpenter_cpu_limit: allowed is"}},

		{what: "another cluster before access", in: Input{
			Rack: "demo", Params: texts{clusterName: "new"}, Previous: texts{clusterName: "old"},
		}},
		{what: "another cluster after access",
			in: Input{
				Rack: "demo", Params: texts{authMode: on, clusterName: "new"}, Previous: texts{authMode: on, clusterName: "old"},
			},
			auth:     true,
			problems: []string{"cluster_name: write old"}},
		{what: "the cluster's name deleted after access",
			in: Input{Rack: "demo", Params: texts{authMode: on}, Previous: texts{authMode: on, clusterName: "old"}}, auth: true,
			problems: []string{"cluster_name: write old"}},
		{what: "a bad cluster name is told once",
			in:       Input{Rack: "demo", Params: texts{authMode: on, clusterName: "-"}, Previous: texts{authMode: on, clusterName: "old"}},
			auth:     true,
			problems: []string{"cluster_name: allowed is the name of an EKS cluster"}},

		{what: "26 characters", in: Input{Rack: name26, Params: texts{authMode: on, enabled: on}}, auth: true, on: true},
		{what: "27 characters", in: Input{Rack: name27, Params: texts{authMode: on, enabled: on}}, auth: true, on: true,
			problems: []string{"rack: has 27 characters"}},
		{what: "27 characters without Karpenter", in: Input{Rack: name27, Params: texts{authMode: on}}, auth: true},
		{what: "a dash at the end", in: Input{Rack: "demo-"}, problems: []string{"rack: no dash at the end"}},
		{what: "a digit in front", in: Input{Rack: "1demo"}, problems: []string{"rack: a-z first"}},

		{what: "the largest disk", in: Input{Rack: "demo", Params: texts{"karpenter_node_disk": "59000"}}},
		{what: "a disk that the CRD refuses", in: Input{Rack: "demo", Params: texts{"karpenter_node_disk": "59001"}},
			problems: []string{"karpenter_node_disk: write 59000 or less"}},
		{what: "an inherited disk that the CRD refuses", in: Input{Rack: "demo", Params: texts{"node_disk": "59001"}},
			problems: []string{"node_disk: write 59000 or less"}},
		{what: "a rack's disk that nobody inherits", in: Input{
			Rack: "demo", Params: texts{"node_disk": "59001", "karpenter_node_disk": "50"},
		}},

		{what: "policies within IAM's usual quota", in: Input{Rack: "demo", Params: texts{nodePolicies: policies(6)}}},
		{what: "policies beyond IAM's usual quota", in: Input{Rack: "demo", Params: texts{nodePolicies: policies(7)}},
			warnings: []string{"node_policy_arns: has 7 policies"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := Parse(c.in)
			same(t, "problems", r.Problems, c.problems)
			same(t, "warnings", r.Warnings, c.warnings)
			if r.Config.AuthMode != c.auth || r.Config.Enabled != c.on {
				t.Errorf("auth mode %v, enabled %v; want %v, %v", r.Config.AuthMode, r.Config.Enabled, c.auth, c.on)
			}
		})
	}
}

func policies(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("arn:aws:iam::aws:policy/P", i))
	}
	return strings.Join(all, ",")
}

func same(t *testing.T, what string, got []Problem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s %v, want %q", what, got, want)
		return
	}
	for i, w := range want {
		parameter, part, _ := strings.Cut(w, ": ")
		if got[i].Parameter != parameter || !strings.Contains(got[i].Message, part) {
			t.Errorf("%s %v, want %q", what, got[i], w)
		}
	}
}

// The kept values must also be the next pass's previous values, so that deleting twice changes nothing either.
func TestWhatCountsIsWhatIsRemembered(t *testing.T) {
	previous := map[string]string{authMode: on, enabled: on, clusterName: "demo", "karpenter_cpu_limit": "7"}
	for range 3 {
		r := Parse(Input{Rack: "demo", Previous: previous})
		if len(r.Problems) > 0 || !r.Config.Enabled || !r.Config.AuthMode || r.Config.Workload.CPULimit != 7 {
			t.Fatalf("%+v", r)
		}
		previous = r.Effective
	}
}

// Of the previous texts, only karpenter_auth_mode and karpenter_enabled are kept; other parameters that are no longer
// set get their default.
func TestOnlySwitchesAreKept(t *testing.T) {
	r := Parse(Input{Rack: "demo", Previous: map[string]string{"karpenter_cpu_limit": "7", "paused": on}})
	if r.Config.Workload.CPULimit != 100 || r.Config.Paused {
		t.Errorf("%+v", r.Config)
	}
	if got := slices.Sorted(func(yield func(string) bool) {
		for name := range r.Effective {
			if !yield(name) {
				return
			}
		}
	}); !slices.Equal(got, []string{clusterName}) {
		t.Errorf("in force: %v", got)
	}
}
