package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// small is a typical rack, large one with 100 pools. Each index gives other labels, so that no result is remembered
// from an earlier call.
func small(i int) map[string]string {
	return map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_node_labels": fmt.Sprint("team=t", i)}
}

func large(i int) map[string]string {
	var pools []string
	for n := range 100 {
		pools = append(pools, fmt.Sprintf(`{"name":"p%d","instance_families":"c6i,m6i","labels":"team=t%d-%d"}`, n, i, n))
	}
	texts := small(i)
	texts["additional_karpenter_nodepools_config"] = "[" + strings.Join(pools, ",") + "]"
	return texts
}

// used counts the racks of all runs of all benchmarks, so that a second run (-count) does not see those of the first.
var used int

func benchmark(b *testing.B, rack func(int) map[string]string) {
	b.ReportAllocs()
	for b.Loop() {
		used++
		v := Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: rack(used)}), Facts: offline})
		if len(v.Problems) > 0 {
			b.Fatal(v.Problems)
		}
	}
}

func BenchmarkSmallRack(b *testing.B) { benchmark(b, small) }

func BenchmarkHundredPools(b *testing.B) { benchmark(b, large) }
