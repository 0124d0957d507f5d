package story

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Rotation replaces the twenty nodes of a pool two at a time: because of a change, which the status follows to its end, then because of
// their age, with a pause half way. Beside it they expire, which knows no budget and waits for no other node.
func Rotation(s *Script) {
	const (
		pools = "additional_karpenter_nodepools_config"
		entry = `[{"name":"batch","weight":10,"disruption_budget_nodes":"2","consolidate_after":"1h",` +
			`"cpu_limit":100000,"memory_limit_gb":1000000%s}]`
		rotating = "kubectl get nodeclaims -l sawhorse.dev/rotating -o name | wc -l"
	)
	m := twenty(s)
	rollouts := subscribe(s, "rollouts", []string{"Rack Rolled Out"})
	defer rollouts.end(s)
	s.Chapter("Twenty nodes", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1h", "karpenter_cpu_limit": "100000",
			"karpenter_memory_limit_gb": "1000000", pools: fmt.Sprintf(entry, "")}))
		m.start()
		s.Equal("its nodes", m.nodes(), 20)
	})

	s.Chapter("A change replaces them, and the status counts down", func() {
		s.Await("the rollout of earlier changes has ended", func() string {
			lookAtNodes(s)
			return fmt.Sprint(s.Status().Rollout.Ended != "")
		}, "true", 3*time.Minute)
		for found := true; found; {
			_, found = rollouts.poll(s, 0)
		}
		m.begins()
		s.Reconciled(s.Put(pools, fmt.Sprintf(entry, `,"labels":"team=web"`)))
		before, held, more := 20, "", ""
		m.look = func() {
			lookAtNodes(s)
			for _, p := range s.Status().Pools {
				if p.Pool != m.pool {
					continue
				}
				if p.Outdated > before {
					more += fmt.Sprintf("%d after %d; ", p.Outdated, before)
				}
				before = p.Outdated
				if p.Held != "" {
					held = p.Held
				}
			}
		}
		m.until(0)
		m.look = nil
		s.Equal("outdated nodes that became more", more, "")
		s.Equal("held was told", held != "", true)
		s.Say("held: %s", held)
		s.Await("the rollout has ended", func() string {
			lookAtNodes(s)
			status := s.Status()
			return fmt.Sprint(status.Rollout.Ended != "", " ", status.pool(m.pool))
		}, "true 20 nodes, ready true, 0 outdated", 3*time.Minute)
		rollouts.next(s)
		lookAtNodes(s)
		_, again := rollouts.poll(s, 0)
		s.Equal("a second event", again, false)
	})

	s.Chapter("Their age replaces them in the same way, and not while the setting is away", func() {
		s.sandbox(http.MethodPost, "age?by=2h", nil, nil)
		m.begins()
		s.Reconciled(s.Put("karpenter_rotate_after", "1h"))
		lookAtNodes(s)
		s.Equal("the status counts them as rotating only", strings.Contains(s.Status().pool(m.pool), " 0 outdated, "), true)
		m.until(10)
		s.Unset("karpenter_rotate_after")
		s.Reconciled()
		s.Await("drifted nodes", func() string { return driftedOf(s, m.pool) }, "", time.Minute)
		s.Until("nodes that Karpenter was ending already", "kubectl get nodes -l karpenter.sh/nodepool=batch "+
			`-o jsonpath='{.items[*].spec.taints[?(@.key=="karpenter.sh/disrupted")].key}'`, "", 3*time.Minute)
		s.Check("nodes that rotate", rotating, "0")
		left := m.left()
		spared(s)
		s.Equal("nodes that were there stay", m.left(), left)
		s.Reconciled(s.Put("karpenter_rotate_after", "1h"))
		m.until(0)
		s.Until("nodes that rotate", rotating, "0", time.Minute)
		s.Reconciled(s.Request("full"))
		s.Check("nodes that rotate, of the young ones", rotating, "0")
	})

	s.Chapter("Expiry knows no budget, and waits for no other node", func() {
		s.Unset("karpenter_rotate_after")
		s.Reconciled()
		s.sandbox(http.MethodPost, "age?by=721h", nil, nil)
		m.begins()
		most, fewest := 0, 20
		s.Await("nodes that were there", func() string {
			ending, usable := 0, 0
			for _, claim := range nodeClaims(s, "-l karpenter.sh/nodepool=batch").Items {
				if claim.Metadata.DeletionTimestamp != "" {
					ending++
				} else if claim.is("Initialized") {
					usable++
				}
			}
			most, fewest = max(most, ending), min(fewest, usable)
			return fmt.Sprint(m.left())
		}, "0", 5*time.Minute)
		s.Say("%d nodes ended at once, and %d were there that were not to end", most, fewest)
		s.Equal("more ended at once than the budget allows", most > 2, true)
		s.Equal("nodes ended before others were there", fewest < 20, true)
	})

	s.Chapter("Back to the defaults", func() {
		m.end()
		m.back("karpenter_consolidate_after", "karpenter_cpu_limit", "karpenter_memory_limit_gb", pools)
	})
}

// RotationNewest is the same under the newest Karpenter. The default version comes back after it.
func RotationNewest(s *Script) {
	s.Chapter("Up to 1.15.1", func() { changed(s, "1.15.1") })
	Rotation(s)
	s.Chapter("Down to 1.10.0", func() { changed(s, "1.10.0") })
}
