package observe

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The zones of instance families are looked up where a pool names some, and only then.
func TestOffered(t *testing.T) {
	s := begin(t)
	s.cloud.EC2.Offered = map[string][]string{"c6i": {"eu-central-1a", "eu-central-1b"}, "p5": nil, "g5": {"eu-central-1a"}}
	config := enabled
	config.Workload.Families = []string{"p5", "c6i"}
	config.Additional = []params.Pool{{Override: params.Override{NodePool: map[string]any{"template": map[string]any{"spec": map[string]any{
		"requirements": []any{
			map[string]any{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": []any{"g5", "c6i"}},
			map[string]any{"key": "karpenter.k8s.aws/instance-family", "operator": "NotIn", "values": []any{"m1"}},
		}}}}}}}
	want := map[string][]string{"c6i": {"eu-central-1a", "eu-central-1b"}, "g5": {"eu-central-1a"}, "p5": {}}
	if got := s.observed(config, plan.Records{}).Offered; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.ContainsFunc(s.cloud.Made(), func(call string) bool {
		return strings.HasPrefix(call, "EC2.DescribeInstanceTypeOfferings") && strings.HasSuffix(call, "c6i.*,g5.*,p5.*")
	}) {
		t.Errorf("%v", s.cloud.Made())
	}
	before := len(s.cloud.Made())
	s.observed(enabled, plan.Records{})
	if slices.ContainsFunc(s.cloud.Made()[before:], func(call string) bool { return strings.Contains(call, "Offerings") }) {
		t.Errorf("%v", s.cloud.Made()[before:])
	}
}

// Reservations and placement groups are looked up where a pool names one, and only then.
func TestReserved(t *testing.T) {
	s := begin(t)
	reservation := func(id string, ends time.Duration) types.CapacityReservation {
		return types.CapacityReservation{
			CapacityReservationId: &id, InstanceType: new("p5.48xlarge"), AvailabilityZone: new("us-east-1a"), State: "active",
			TotalInstanceCount: new(int32(4)), AvailableInstanceCount: new(int32(3)), EndDate: new(s.cloud.Now().Add(ends)),
		}
	}
	s.cloud.EC2.Reservations = []types.CapacityReservation{
		reservation("cr-other", 0), reservation("cr-1", 30*24*time.Hour), reservation("cr-2", 24*time.Hour),
	}
	s.cloud.EC2.PlacementGroups = []types.PlacementGroup{
		{GroupId: new("pg-1"), GroupName: new("near"), State: "available"}, {GroupId: new("pg-2"), GroupName: new("far"), State: "available"},
	}
	config := enabled
	config.Workload.Override = params.Override{EC2NodeClass: map[string]any{
		"capacityReservationSelectorTerms": []any{map[string]any{"id": "cr-1"}, map[string]any{"id": "cr-2"}, map[string]any{"id": "cr-3"},
			map[string]any{"tags": map[string]any{"a": "b"}}, "x"},
		"placementGroupSelector": map[string]any{"name": "near"},
	}}
	facts := s.observed(config, plan.Records{})
	one := plan.Reservation{InstanceType: "p5.48xlarge", Zone: "us-east-1a", State: "active", Total: 4, Free: 3}
	ending := one
	ending.Ends = s.cloud.EC2.Reservations[2].EndDate.UTC().Format(time.RFC3339)
	if want := map[string]plan.Reservation{"cr-1": one, "cr-2": ending}; !reflect.DeepEqual(facts.Reservations, want) {
		t.Errorf("%v, want %v", facts.Reservations, want)
	}
	if want := map[string]string{"near": "available"}; !reflect.DeepEqual(facts.PlacementGroups, want) {
		t.Errorf("%v, want %v", facts.PlacementGroups, want)
	}
	before := len(s.cloud.Made())
	s.observed(enabled, plan.Records{})
	if slices.ContainsFunc(s.cloud.Made()[before:], func(call string) bool {
		return strings.Contains(call, "Reservations") || strings.Contains(call, "PlacementGroups")
	}) {
		t.Errorf("without any, %v", s.cloud.Made()[before:])
	}
}
