package story

import (
	"fmt"
	"strings"
	"time"
)

// Retired takes a pool away whose pods have PodDisruptionBudgets, puts it back half way, and takes it away again. Karpenter moves
// the pods as the pool's budgets allow, and the pool goes with its last node. Another one is deleted by force.
func Retired(s *Script) {
	const (
		pools = "additional_karpenter_nodepools_config"
		entry = `[{"name":"batch","weight":10,"disruption_budget_nodes":"10%","consolidate_after":"1h",` +
			`"cpu_limit":100000,"memory_limit_gb":1000000}]`
		label   = "-l karpenter.sh/nodepool=batch "
		limit   = "kubectl get nodepool batch -o jsonpath='{.spec.limits.cpu} {.spec.template.spec.taints[*].key}'"
		tainted = "kubectl get nodes " + label + "-o jsonpath='{.items[*].spec.taints[?(@.key==\"sawhorse.dev/retiring\")].key}' | wc -w"
		objects = "kubectl get nodepools,ec2nodeclasses -o name | grep batch || true"
	)
	// Karpenter counts each node of a batch as the largest that it might be, so the limits are far above what runs.
	m := twenty(s)
	stuck := app{name: "stuck", replicas: 1, cpu: `"2"`, spec: "nodeSelector: {convox.io/nodepool: batch}"}

	s.Chapter("A pool of twenty nodes and three PodDisruptionBudgets", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1h", "karpenter_cpu_limit": "100000",
			"karpenter_memory_limit_gb": "1000000", pools: entry}))
		m.start()
		s.Equal("its nodes", m.nodes(), 20)
		lookAtNodes(s)
	})

	s.Chapter("Its entry is taken away", func() {
		m.begins()
		s.Change(map[string]string{"paused": "true"}, pools)
		s.Paused()
		s.Says("pool batch is retired: it launches no more nodes, Karpenter empties its 20 nodes (20 pods)")
		s.Unset("paused")
		s.Reconciled()
		s.Check("its limit and its taint", limit, "0 sawhorse.dev/retiring")
		s.Check("nodes with the taint", tainted, "20")
		auditInOrder(s, "No audit finds anything due of a pool that is being emptied.")
		lookAtNodes(s)
		s.Contains("the status", "sawhorse status demo", " retiring since 20")
		s.Equal("outdated nodes", strings.Contains(s.Status().pool("batch"), ", 0 outdated, "), true)
		s.State("Reconciled")
		m.until(10)
	})

	s.Chapter("Put back half way", func() {
		s.Reconciled(s.Put(pools, entry))
		s.Says("pool batch is changed: its ", " nodes stay")
		s.Check("its limit and its taint", limit, "100000")
		s.Check("nodes with the taint", tainted, "0")
		s.Await("drifted nodes", func() string { return driftedOf(s, "batch") }, "", time.Minute)
		s.Until("nodes that Karpenter was ending already", "kubectl get nodes -l karpenter.sh/nodepool=batch "+
			`-o jsonpath='{.items[*].spec.taints[?(@.key=="karpenter.sh/disrupted")].key}'`, "", 3*time.Minute)
		left := m.nodes()
		spared(s)
		s.Equal("its nodes stay", m.nodes(), left)
		lookAtNodes(s)
		s.Equal("the status", s.Status().pool("batch"), fmt.Sprintf("%d nodes, ready true, 0 outdated", left))
	})

	s.Chapter("Taken away for good; a pod that fits nowhere else keeps its node", func() {
		stuck.start(s)
		s.Unset(pools)
		s.Reconciled()
		m.until(1)
		s.Check("the pool of the pod", stuck.where(), "batch")
		s.Await("held", func() string {
			lookAtNodes(s)
			return fmt.Sprint(s.Status().says(`"held":"Not all pods would schedule, shop/stuck-`))
		}, "true", 3*time.Minute)
		s.Type("sawhorse status demo")
	})

	s.Chapter("It goes with its last node", func() {
		stuck.end(s)
		s.Until("its nodes", "kubectl get nodeclaims -o name "+label, "", 2*time.Minute)
		s.Check("its objects", objects, "nodepool.karpenter.sh/batch\nec2nodeclass.karpenter.k8s.aws/batch")
		lookAtNodes(s)
		s.Equal("the status", s.Status().pool("batch"), "")
		s.Until("its objects", objects, "", 2*time.Minute)
		s.Reconciled(s.Request())
	})

	s.Chapter("By force", func() {
		m.end()
		s.Reconciled(s.Put(pools, entry))
		stuck.start(s)
		s.Unset(pools)
		s.Reconciled()
		s.Check("its limit and its taint", limit, "0 sawhorse.dev/retiring")
		s.Reconciled(s.Force("retire:batch"))
		s.Until("its objects", objects, "", 2*time.Minute)
		s.Until("its nodes", "kubectl get nodeclaims -o name "+label, "", 2*time.Minute)
		stuck.end(s)
	})

	m.back("karpenter_consolidate_after", "karpenter_cpu_limit", "karpenter_memory_limit_gb", pools)
}

// driftedOf returns why nodes of a pool are Drifted.
func driftedOf(s *Script, pool string) string {
	all := ""
	for _, claim := range nodeClaims(s, "-l karpenter.sh/nodepool="+pool).Items {
		all += claim.drifted()
	}
	return all
}
