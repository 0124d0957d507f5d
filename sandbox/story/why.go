package story

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Why brings a node into one situation after the other in which it stays, and has the command say why. Kept has three more, which keep the
// nodes of pools that are taken away.
func Why(s *Script) {
	const static = `[{"name":"fixed","nodePool":{"replicas":1}}]`
	says := func(name, what, wanted string) {
		s.Await("sawhorse why: "+what, func() string {
			return fmt.Sprint(strings.Contains(s.Output("sawhorse why "+name), wanted))
		}, "true", 2*time.Minute)
	}
	began := time.Now().UTC()
	s.Chapter("A node for which nothing is due", func() {
		s.Until("the first nodes have gone", nodes, "", 3*time.Minute)
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1h", "karpenter_ami_alias": "al2023@v20260801"}))
		single.start(s)
		says("workload", "nothing is due", "made from the pool's present template")
		says("workload", "its image is pinned", "its image is pinned: al2023@v20260801")
		says("workload", "expiry", "it expires in 29d")
	})

	s.Chapter("It is drifted, and may not go", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_disruption_budget_nodes": "0", "karpenter_node_labels": "team=web"}))
		s.Await("Karpenter finds the node drifted", func() string { return drifted(s) }, "true", time.Minute)
		says("workload", "it is drifted", "drifted since 20")
		says("workload", "a budget of none", "kept      budget nodes: 0 lets no node go")
		s.Reconciled(s.Change(map[string]string{"karpenter_freeze": "true"}, "karpenter_disruption_budget_nodes"))
		says("workload", "the freeze", "kept      the freeze (karpenter_freeze) lets no node go")
		s.Reconciled(s.Change(map[string]string{
			"karpenter_disruption_block_schedule": fmt.Sprintf("%d %d * * *", began.Minute(), began.Hour()),
			"karpenter_disruption_block_duration": "23h",
		}, "karpenter_freeze"))
		says("workload", "a window", "kept      the disruption window is closed until 20")
		lookAtNodes(s)
		s.Equal("held, in the status", s.Status().says("the disruption window is closed until 20"), true)
	})

	s.Chapter("Its replacement does not come", func() {
		refuseLaunches(s, "InsufficientInstanceCapacity")
		s.Reconciled(s.Change(nil, "karpenter_disruption_block_schedule", "karpenter_disruption_block_duration"))
		says("workload", "no capacity", "kept      launches of the pool fail: karpenter: InsufficientCapacityError")
		s.Await("held, in the status", func() string {
			lookAtNodes(s)
			return fmt.Sprint(s.Status().says("launches of the pool fail: "))
		}, "true", time.Minute)
		s.inject()
		s.Await("drifted nodes, with launches and a budget", func() string { return drifted(s) }, "false", 5*time.Minute)
	})

	s.Chapter("It is due for rotation, it expires soon, and it is empty", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_disruption_budget_nodes": "0", "karpenter_rotate_after": "2h"}))
		s.sandbox(http.MethodPost, "age?by=3h", nil, nil)
		s.Reconciled(s.Request("full"))
		says("workload", "rotation", "due for rotation")
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1s"}, "karpenter_rotate_after"))
		s.sandbox(http.MethodPost, "age?by=712h", nil, nil)
		says("workload", "expiry", "it expires in 4h")
		single.end(s)
		says("workload", "it is empty", "Karpenter removes it, because no pod needs it, as soon as nothing keeps it")
		s.Reconciled(s.Change(nil, "karpenter_disruption_budget_nodes", "karpenter_node_labels", "karpenter_ami_alias"))
		s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	})

	s.Chapter("It is one of a static pool, which goes by force only", func() {
		s.Reconciled(s.Change(map[string]string{"additional_karpenter_nodepools_config": static,
			"karpenter_controller_config": `{"settings":{"featureGates":{"staticCapacity":true}}}`}))
		says("fixed", "a static pool", "kept      the pool is static: it has 1 nodes, whatever pods need")
		s.Put("additional_karpenter_nodepools_config", "unset")
		s.Rejected("additional_karpenter_nodepools_config")
		s.Says("pool fixed is not there any more, and it is static")
		s.Reconciled(s.Force("retire:fixed"))
	})

	s.Reconciled(s.Change(nil, "karpenter_controller_config", "karpenter_consolidate_after"))
	onlyDefaults(s)
}
