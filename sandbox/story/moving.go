package story

import (
	"fmt"
	"strings"
	"time"
)

// moving watches pods move to other nodes while Karpenter empties those of a pool.
type moving struct {
	*Script
	pool string
	apps []app
	// available has what start has recorded of them since.
	available availability
	// look is called at each look, if it is set.
	look func()
	// were and ran are the nodes of the pool, by name, and the pods, by UID, that were there when it began. twice are pods made since that
	// are on one of these nodes.
	were, ran map[string]bool
	twice     []string
}

type movingPod struct {
	Metadata struct{ Name, UID string }
	Spec     struct{ NodeName string }
}

type movingNode struct {
	Metadata struct{ Name, DeletionTimestamp string }
	Spec     struct{ Taints []struct{ Key string } }
}

// karpenters selects nodes of Karpenter's.
const karpenters = "karpenter.sh/capacity-type: on-demand"

// oneEach has pods that each want a node for themselves, one that a selector (YAML) matches.
func oneEach(name string, replicas int, selector string) app {
	return app{name: name, replicas: replicas, cpu: `"2"`, spec: `nodeSelector: {` + selector + `}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: app, operator: In, values: [web, api, mail]}]}}`}
}

// left is how many of the nodes that were there when it began are there.
func (m *moving) left() (n int) {
	for _, node := range m.list() {
		if m.were[node.Metadata.Name] {
			n++
		}
	}
	return n
}

// twenty has three apps, whose pods get twenty nodes of the pool batch.
func twenty(s *Script) moving {
	return moving{Script: s, pool: "batch",
		apps: []app{oneEach("web", 9, karpenters), oneEach("api", 6, karpenters), oneEach("mail", 5, karpenters)}}
}

// start creates the apps, each with a PodDisruptionBudget that lets one pod go at a time.
func (m *moving) start() {
	for _, a := range m.apps {
		a.start(m.Script)
		m.Type("kubectl -n shop create pdb " + a.name + " --selector app=" + a.name + " --max-unavailable 1")
	}
	m.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=" + m.pool + " --for=condition=Initialized --timeout=2m")
	m.available = m.recordAvailable(m.apps...)
}

func (m *moving) end() {
	m.available.stop()
	for _, a := range m.apps {
		m.Type("kubectl -n shop delete pdb " + a.name)
		a.end(m.Script)
	}
}

// back unsets parameters, and waits until no pool but the defaults is there.
func (m *moving) back(parameters ...string) {
	m.Reconciled(m.Change(nil, parameters...))
	m.Type("kubectl delete nodeclaims --all --timeout=3m")
	onlyDefaults(m.Script)
}

// onlyDefaults waits until no node, and no pool but the defaults, is there: a pool that was taken away goes after its last node.
func onlyDefaults(s *Script) {
	s.Until("nodes of NodePools", nodes, "", 5*time.Minute)
	s.Await("pools", func() string {
		lookAtNodes(s)
		return s.Output(poolsReady)
	}, "build=True workload=True", 3*time.Minute)
}

func (m *moving) pods() []movingPod {
	return JSON[list[movingPod]](m.Script, "kubectl -n shop get pods -l 'app in (web,api,mail)' -o json").Items
}

func (m *moving) list() []movingNode {
	return JSON[list[movingNode]](m.Script, "kubectl get nodes -l karpenter.sh/nodepool="+m.pool+" -o json").Items
}

func (m *moving) nodes() int { return len(m.list()) }

func (m *moving) begins() {
	m.ran, m.were = map[string]bool{}, map[string]bool{}
	for _, pod := range m.pods() {
		m.ran[pod.Metadata.UID] = true
	}
	for _, node := range m.list() {
		m.were[node.Metadata.Name] = true
	}
}

// until waits until the pool has so many left of the nodes that were there. Meanwhile, no more than two nodes are being replaced at once,
// no drain begins before another node is there, all pods but one of each PodDisruptionBudget are available, and no new pod comes to one
// of the nodes.
func (m *moving) until(left int) {
	s, most, pods := m.Script, 0, 0
	for _, a := range m.apps {
		pods += a.replicas
	}
	fewest := pods
	s.Await(fmt.Sprintf("nodes of %s that were there, down to %d", m.pool, left), func() string {
		here, going, usable, counts := 0, 0, 0, map[string]bool{}
		nodes := m.list() // first: a claim that is counted was there when its node was
		for _, claim := range nodeClaims(s).Items {
			// If its pods are gone and its instance is being terminated, Karpenter's budgets do not count it.
			counts[claim.Status.NodeName] = !claim.is("InstanceTerminating")
			if claim.is("Initialized") && claim.Metadata.DeletionTimestamp == "" {
				usable++
			}
		}
		for _, node := range nodes {
			if m.were[node.Metadata.Name] {
				here++
			}
			disrupted := strings.Contains(fmt.Sprint(node.Spec.Taints), "karpenter.sh/disrupted") || node.Metadata.DeletionTimestamp != ""
			if disrupted && counts[node.Metadata.Name] {
				going++
			}
		}
		for _, pod := range m.pods() {
			if m.were[pod.Spec.NodeName] && !m.ran[pod.Metadata.UID] {
				m.twice = append(m.twice, pod.Metadata.Name)
			}
		}
		most, fewest = max(most, going), min(fewest, usable)
		if m.look != nil {
			m.look()
		}
		return fmt.Sprint(here <= left)
	}, "true", 15*time.Minute)
	s.Equal("nodes at once, at most", max(most, 2), 2)
	s.Equal("nodes that are not to go, at least", fewest, pods)
	s.Equal("pods of an app that are missing, at most", max(m.available.missing(), 1), 1)
	s.Equal("pods that moved twice", strings.Join(m.twice, " "), "")
}

// number is a number that a command printed, or 0.
func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}
