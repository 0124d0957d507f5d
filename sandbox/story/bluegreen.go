package story

import (
	"fmt"
	"time"
)

// BlueGreen moves the pods of a pool to one of other instance families that is written beside it, and back, as the recipe does.
func BlueGreen(s *Script) {
	const (
		pools = "additional_karpenter_nodepools_config"
		// Karpenter counts each node of a batch as the largest that it might be, so the limits are far above what runs. And it
		// does not move pods on its own account.
		far   = `"cpu_limit":100000,"memory_limit_gb":1000000,"consolidate_after":"1h"`
		blue  = `{"name":"blue","instance_families":"c6i,m6i","labels":"team=web","disruption_budget_nodes":"2",` + far + `,"weight":%d}`
		green = `{"name":"green","instance_families":"c7i,m7i","labels":"team=web","disruption_budget_nodes":"2",` + far + `,"weight":%d}`
	)
	writes := func(entries string, weights ...any) {
		s.Reconciled(s.Put(pools, fmt.Sprintf("["+entries+"]", weights...)))
	}
	m := moving{Script: s, pool: "blue", apps: []app{oneEach("web", 6, "team: web"), oneEach("api", 4, "team: web")}}
	moved := func(from, to, entry string, weight int) {
		m.pool = from
		m.begins()
		writes(entry, weight)
		s.Says("pool "+from+" is retired: it launches no more nodes, Karpenter empties its ", " nodes (10 pods)")
		m.until(0)
		for _, a := range m.apps {
			s.Until("pods of "+a.name+" that run", a.runs(), fmt.Sprint(a.replicas), time.Minute)
			s.Check("the pool of their nodes", a.where(), to)
		}
	}
	s.Chapter("Blue", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1h", pools: fmt.Sprintf("["+blue+"]", 10)}))
		m.start()
		s.Equal("a node for each pod, at least", m.nodes() >= 10, true) // while pods come, Karpenter may launch one more
	})
	s.Chapter("Green beside it: blue keeps its nodes, until its entry is taken away", func() {
		before := m.nodes()
		writes(blue+","+green, 10, 20)
		spared(s)
		s.Equal("nodes of blue", m.nodes(), before)
		moved("blue", "green", green, 20)
	})
	s.Chapter("Back", func() {
		writes(blue+","+green, 20, 10)
		moved("green", "blue", blue, 20)
	})
	s.Chapter("Back to the defaults", func() {
		m.end()
		m.back("karpenter_consolidate_after", pools)
	})
}
