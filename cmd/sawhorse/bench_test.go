package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const benchLines = 10_000

// manyRacks returns the lines of a batch, each for a rack of its own. Half of them are minimal; the others have JSON
// parameters, previous parameters, or mistakes. Each series has other values.
func manyRacks(t testing.TB, count, series int) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for i := series * count; i < (series+1)*count; i++ {
		params := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_cpu_limit": fmt.Sprint(100 + i)}
		line := map[string]any{"rack": fmt.Sprintf("rack-%d", i), "params": params}
		switch i % 10 {
		case 5:
			params["karpenter_config"] = fmt.Sprintf(
				`{"nodePool":{"weight":%d,"template":{"metadata":{"labels":{"team":"t%d"}}}},"ec2NodeClass":{"detailedMonitoring":true}}`, i%100+1, i)
		case 6:
			params["additional_karpenter_nodepools_config"] = fmt.Sprintf(
				`[{"name":"gpu","instance_families":"g5,g6","cpu_limit":%d},{"name":"mem","instance_families":"r6i,r7i","labels":"team=t%d"}]`, i+1, i)
		case 7:
			line["previous"] = map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
		case 8:
			params["build_node_enabled"], params["karpenter_node_labels"] = "true", fmt.Sprintf("team=t%d,cost=c%d", i, i)
		case 9:
			params["karpenter_node_expiry"], params["karpenter_confg"] = "30d", "{}"
		}
		if err := encoder.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// untimed writes the file of a series while the timer is stopped.
func untimed(b *testing.B, series int) string {
	b.StopTimer()
	defer b.StartTimer()
	path := filepath.Join(b.TempDir(), "racks.jsonl")
	if err := os.WriteFile(path, []byte(manyRacks(b, benchLines, series)), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// The benchmarks are meaningful only if their lines are as intended: nine of ten accepted.
func TestManyRacks(t *testing.T) {
	t.Parallel()
	accepted := 0
	for _, a := range answers(t, sawhorse(t, manyRacks(t, 100, 3), "check", "--batch", "-").ends(t, 1)) {
		if a.Accepted {
			accepted++
		}
	}
	if accepted != 90 {
		t.Errorf("%d of 100 accepted", accepted)
	}
}

// BenchmarkBatch measures check --batch without the start of the program, for its memory. Each iteration uses another
// series; otherwise cached manifests of the previous iteration would improve the result.
func BenchmarkBatch(b *testing.B) {
	b.ReportAllocs()
	for series := 0; b.Loop(); series++ {
		if err := each(untimed(b, series), io.Discard, check); !errors.Is(err, refused("")) {
			b.Fatal(err)
		}
	}
	perLine(b)
}

// BenchmarkCommand measures the program from start to exit.
func BenchmarkCommand(b *testing.B) {
	for series := 0; b.Loop(); series++ {
		command := exec.Command(os.Args[0], "check", "--batch", untimed(b, series))
		command.Env = append(os.Environ(), asCommand+"=1")
		if exit := new(exec.ExitError); !errors.As(command.Run(), &exit) || exit.ExitCode() != 1 {
			b.Fatal(command.ProcessState)
		}
	}
	perLine(b)
}

func perLine(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchLines), "ns/line")
}
