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
	m := moving{Script: s, apps: []app{oneEach("web", 9), oneEach("api", 6), oneEach("mail", 5)}}
	stuck := app{name: "stuck", replicas: 1, cpu: `"2"`, spec: "nodeSelector: {convox.io/nodepool: batch}"}

	s.Chapter("A pool of twenty nodes and three PodDisruptionBudgets", func() {
		s.Reconciled(s.Change(map[string]string{"karpenter_consolidate_after": "1h", "karpenter_cpu_limit": "100000",
			"karpenter_memory_limit_gb": "1000000", pools: entry}))
		for _, a := range m.apps {
			a.start(s)
			s.Type("kubectl -n shop create pdb " + a.name + " --selector app=" + a.name + " --max-unavailable 1")
		}
		s.Type("kubectl wait nodeclaims --all --for=condition=Initialized --timeout=2m")
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
		s.wait(20 * time.Second)
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
		s.Equal("pods that moved twice", strings.Join(m.twice, " "), "")
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
		for _, a := range m.apps {
			s.Type("kubectl -n shop delete pdb " + a.name)
			a.end(s)
		}
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

	s.Reconciled(s.Change(nil, "karpenter_consolidate_after", "karpenter_cpu_limit", "karpenter_memory_limit_gb", pools))
	s.Type("kubectl delete nodeclaims --all --timeout=3m")
	s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	s.Check("pools", poolsReady, "build=True workload=True")
}

// oneEach has pods that each want a node of Karpenter's for themselves.
func oneEach(name string, replicas int) app {
	return app{name: name, replicas: replicas, cpu: `"2"`, spec: `nodeSelector: {karpenter.sh/capacity-type: on-demand}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: app, operator: In, values: [web, api, mail]}]}}`}
}

// moving watches pods move from the pool batch to other pools.
type moving struct {
	*Script
	apps []app
	// known are the pods that were there when it began, by UID; twice are those made since that are on a node of the pool.
	known map[string]bool
	twice []string
}

type movingPod struct {
	Metadata struct{ Name, UID string }
	Spec     struct{ NodeName string }
}

type movingNode struct {
	Metadata struct{ Name, DeletionTimestamp string }
	Spec     struct{ Taints []struct{ Key string } }
}

func (m *moving) pods() []movingPod {
	return JSON[list[movingPod]](m.Script, "kubectl -n shop get pods -l 'app in (web,api,mail)' -o json").Items
}

func (m *moving) list() []movingNode {
	return JSON[list[movingNode]](m.Script, "kubectl get nodes -l karpenter.sh/nodepool=batch -o json").Items
}

func (m *moving) nodes() int { return len(m.list()) }

func (m *moving) begins() {
	m.known = map[string]bool{}
	for _, pod := range m.pods() {
		m.known[pod.Metadata.UID] = true
	}
}

// until waits until the pool has so many nodes. Meanwhile, no more than 10% of its nodes are being replaced at once, all pods but
// one of each PodDisruptionBudget are available, and no new pod comes to one of its nodes.
func (m *moving) until(nodes int) {
	s, most, missing := m.Script, 0, 0
	s.Await(fmt.Sprintf("nodes of batch, down to %d", nodes), func() string {
		of, ended, going := map[string]bool{}, m.ended(), 0
		all := m.list()
		for _, node := range all {
			name := node.Metadata.Name
			of[name] = true
			disrupted := strings.Contains(fmt.Sprint(node.Spec.Taints), "karpenter.sh/disrupted") || node.Metadata.DeletionTimestamp != ""
			if disrupted && !ended[name] {
				going++
			}
		}
		for _, pod := range m.pods() {
			if of[pod.Spec.NodeName] && !m.known[pod.Metadata.UID] {
				m.twice = append(m.twice, pod.Metadata.Name)
			}
		}
		for _, a := range m.apps {
			missing = max(missing, a.replicas-number(s.Output(a.runs())))
		}
		most = max(most, going)
		return fmt.Sprint(len(all) <= nodes)
	}, "true", 10*time.Minute)
	s.Equal("nodes at once, at most", max(most, 2), 2)
	s.Equal("pods of an app that are missing, at most", max(missing, 1), 1)
}

// ended returns the nodes whose pods are gone and whose instance is being terminated. Karpenter's budgets do not count them.
func (m *moving) ended() map[string]bool {
	ended := map[string]bool{}
	for _, claim := range nodeClaims(m.Script, "-l karpenter.sh/nodepool=batch").Items {
		for _, condition := range claim.Status.Conditions {
			if condition.Type == "InstanceTerminating" && condition.Status == "True" {
				ended[claim.Status.NodeName] = true
			}
		}
	}
	return ended
}

// number is a number that a command printed, or 0.
func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// driftedOf returns why nodes of a pool are Drifted.
func driftedOf(s *Script, pool string) string {
	all := ""
	for _, claim := range nodeClaims(s, "-l karpenter.sh/nodepool="+pool).Items {
		all += claim.drifted()
	}
	return all
}
