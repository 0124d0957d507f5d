package validate

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// What the node groups run is recorded before Karpenter takes over, and stays as it was when they shrink. When Karpenter is turned on
// again, it is recorded anew.
func TestTheBaselineIsWhatRanBeforeKarpenter(t *testing.T) {
	s := begin(t, auth)
	size := s.cloud.EKS.Groups["system"].ScalingConfig
	baseline := func(nodes int32, wanted string) {
		t.Helper()
		*size.DesiredSize = nodes
		s.pass(true)
		outputs, err := s.store.Outputs(t.Context(), "demo")
		if got := outputs[plan.OutputBaseline]; err != nil || got != wanted {
			t.Errorf("with %d nodes: baseline %q, %v; want %q", nodes, got, err, wanted)
		}
	}
	baseline(3, "")
	s.write(on)
	baseline(3, "m6i.large=3")
	s.write("karpenter_cpu_limit=50")
	baseline(2, "m6i.large=3")

	records := s.records()
	records.WasOn = false // as the report records the end of the removal
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	baseline(4, "m6i.large=4")
}
