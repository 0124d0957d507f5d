package nodes

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func TestReserved(t *testing.T) {
	const own = `{"nodePool":{"template":{"spec":{"requirements":[` +
		`{"key":"karpenter.sh/capacity-type","operator":"In","values":["reserved"]},` +
		`{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]},` +
		`{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["m7i"]}]}}},` +
		`"ec2NodeClass":{"capacityReservationSelectorTerms":[{"id":"cr-1"}]}}`
	const group = `{"ec2NodeClass":{"placementGroupSelector":{"name":"near"}}}`
	fits := plan.Reservation{InstanceType: "m7i.large", Zone: "us-east-1a", State: "active", Total: 4, Free: 1}
	with := func(change func(*plan.Reservation)) map[string]plan.Reservation {
		one := fits
		change(&one)
		return map[string]plan.Reservation{"cr-1": one}
	}
	for _, c := range []struct {
		config       string
		reservations map[string]plan.Reservation
		groups       map[string]string
		problem      string
		warning      string
	}{
		{own, with(func(*plan.Reservation) {}), nil, "", ""},
		{own, nil, nil, "", ""}, // not looked up
		{own, map[string]plan.Reservation{}, nil, "no such capacity reservation", ""},
		{own, with(func(r *plan.Reservation) { r.State = "expired" }), nil, "which is expired", ""},
		{own, with(func(r *plan.Reservation) { r.InstanceType = "p5.48xlarge" }), nil, "which the requirements of NodePool workload", ""},
		{own, with(func(r *plan.Reservation) { r.InstanceType = "m7g.large" }), nil, "which the requirements of NodePool workload", ""},
		{own, with(func(r *plan.Reservation) { r.Zone = "us-east-1f" }), nil, "launches nodes in us-east-1a, us-east-1b only", ""},
		{own, with(func(r *plan.Reservation) { r.Free = 0 }), nil, "", "of whose 4 instances of m7i.large none is free"},
		{own, with(func(r *plan.Reservation) { r.Ends = "2026-12-01T00:00:00Z" }), nil, "", "which ends at 2026-12-01"},
		{own, with(func(r *plan.Reservation) { r.State, r.Free = "scheduled", 0 }), nil, "",
			"which is scheduled: nothing is launched in it before"},
		{group, nil, map[string]string{"near": "available"}, "", ""},
		{group, nil, map[string]string{}, "no such placement group", ""},
		{group, nil, map[string]string{"near": "deleting"}, "which is deleting", ""},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", params.ParamOverride: c.config, "karpenter_version": "1.15.1"}})
		facts := plan.Facts{
			Cluster: &plan.ClusterFacts{Version: "1.35"}, Reservations: c.reservations, PlacementGroups: c.groups,
			Subnets: []plan.Tagged{{ID: "subnet-1", Zone: "us-east-1a"}, {ID: "subnet-2", Zone: "us-east-1b"}},
		}
		compiled := Compile(parsed.Config, facts)
		problems, warnings := compiled.Reserved(facts, nil)
		says := func(what string, got []params.Problem, want string) {
			t.Helper()
			if (want == "") != (len(got) == 0) || want != "" && (len(got) > 1 || !strings.Contains(got[0].Message, want) ||
				got[0].Parameter != params.ParamOverride || !strings.HasPrefix(got[0].Path, "ec2NodeClass.")) {
				t.Errorf("%s %v %v: %s %v, want %q", c.config, c.reservations, c.groups, what, got, want)
			}
		}
		says("problems", problems, c.problem)
		says("warnings", warnings, c.warning)
		// In force already, it is told and refuses nothing.
		problems, warnings = compiled.Reserved(facts, &plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects()}})
		says("problems in force", problems, "")
		says("warnings in force", warnings, c.problem+c.warning)
	}
}

// A change that leaves out the type of a reservation in force is a problem of the change.
func TestReservedUntilNow(t *testing.T) {
	compiled := func(family string, facts plan.Facts) Compiled {
		return Compile(params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": "1.15.1", "karpenter_instance_families": family,
			params.ParamOverride: `{"ec2NodeClass":{"capacityReservationSelectorTerms":[{"id":"cr-1"}]}}`,
		}}).Config, facts)
	}
	facts := plan.Facts{Cluster: &plan.ClusterFacts{Version: "1.35"}, Reservations: map[string]plan.Reservation{
		"cr-1": {InstanceType: "m7i.large", State: "active", Total: 4, Free: 1}}}
	inForce := &plan.Plan{NodePools: plan.NodePools{Objects: compiled("m7i", facts).Objects()}}
	problems, warnings := compiled("c7i", facts).Reserved(facts, inForce)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "for m7i.large, which the requirements of NodePool workload leave out") {
		t.Errorf("problems %v, warnings %v", problems, warnings)
	}
}
