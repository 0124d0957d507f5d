package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// fields are a part of an object of the cluster.
type fields = map[string]any

// clusterOfOne is a cluster with one node of one pool, and a pod. A test changes what it is about.
type clusterOfOne struct {
	claim, pool, class, node, pod, pdb, event fields // pdb and event are not there if they are nil
	others                                    []fields
}

func one() *clusterOfOne {
	meta := func(name string) fields { return fields{"name": name, "labels": fields{}, "annotations": fields{}} }
	claim, pool := meta("workload-a"), meta("workload")
	claim["creationTimestamp"] = "2026-11-21T08:00:00Z"
	claim["labels"] = fields{"karpenter.sh/nodepool": "workload", "karpenter.sh/capacity-type": "on-demand",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "eu-central-1a"}
	claim["annotations"], pool["annotations"] = fields{ownership.NodePoolHash: "1"}, fields{ownership.NodePoolHash: "1"}
	pod := meta("shop-1")
	pod["namespace"], pod["labels"] = "shop", fields{"app": "shop"}
	return &clusterOfOne{
		claim: fields{"metadata": claim, "spec": fields{
			"expireAfter": "720h", "resources": fields{"requests": fields{"cpu": "1", "memory": "2Gi"}},
			"requirements": []any{fields{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []any{"m5.large", "c5.large"}}}},
			"status": fields{"nodeName": "node-a", "conditions": []any{
				condition("Launched", "True", ""), condition("Registered", "True", ""), condition("Initialized", "True", "")}}},
		pool: fields{"metadata": pool, "spec": fields{"disruption": fields{"budgets": []any{fields{"nodes": "10%"}}},
			"template": fields{"spec": fields{"nodeClassRef": fields{"name": "workload"}}}}},
		class: fields{"metadata": meta("workload"), "spec": fields{"amiSelectorTerms": []any{fields{"alias": "al2023@latest"}}}},
		node: fields{"metadata": meta("node-a"), "spec": fields{},
			"status": fields{"conditions": []any{fields{"type": "Ready", "status": "True"}}}},
		pod: fields{"metadata": pod, "spec": fields{"nodeName": "node-a"}, "status": fields{"phase": "Running"}},
	}
}

func condition(kind, status, message string) fields {
	return fields{"type": kind, "status": status, "reason": kind, "message": message, "lastTransitionTime": "2026-11-21T09:00:00Z"}
}

// with adds conditions to the NodeClaim.
func (c *clusterOfOne) with(conditions ...fields) {
	status := c.claim["status"].(fields)
	for _, one := range conditions {
		status["conditions"] = append(status["conditions"].([]any), one)
	}
}

func (c *clusterOfOne) spec(of fields, key string, value any) { of["spec"].(fields)[key] = value }

// read puts the objects into a cluster and reads them as the command does, at noon.
func (c *clusterOfOne) read(t *testing.T) *seen {
	t.Helper()
	server := k8sfake.New(t)
	server.Put("/apis/karpenter.sh/v1/nodeclaims/workload-a", "karpenter.sh/v1", "NodeClaim", c.claim)
	for _, other := range c.others {
		name := other["metadata"].(fields)["name"].(string)
		server.Put("/apis/karpenter.sh/v1/nodeclaims/"+name, "karpenter.sh/v1", "NodeClaim", other)
	}
	server.Put("/apis/karpenter.sh/v1/nodepools/workload", "karpenter.sh/v1", "NodePool", c.pool)
	server.Put("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/workload", "karpenter.k8s.aws/v1", "EC2NodeClass", c.class)
	server.Put("/api/v1/nodes/node-a", "v1", "Node", c.node)
	if c.pod != nil {
		server.Put("/api/v1/namespaces/shop/pods/shop-1", "v1", "Pod", c.pod)
	}
	if c.pdb != nil {
		server.Put("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/shop", "policy/v1", "PodDisruptionBudget", c.pdb)
	}
	if c.event != nil {
		server.Put("/api/v1/namespaces/default/events/e", "v1", "Event", c.event)
	}
	client, err := server.Dial(t.Context(), plan.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := survey(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	s.now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return s
}

// Each situation in which a node stays is told by its own line, and a node that nothing keeps has none.
func TestWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*clusterOfOne)
		want   string
	}{
		"nothing is due": {func(*clusterOfOne) {}, "state     made from the pool's present template\nnext      it expires in 29d20h"},
		"drifted, with a budget of 0": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "0"}}})
		}, "drifted since 2026-11-21T09:00:00Z (Drifted)\nkept      budget nodes: 0 lets no node go\n"},
		"drifted": {func(c *clusterOfOne) { c.with(condition("Drifted", "True", "")) }, "(Drifted)\nnext      Karpenter replaces it\n"},
		"a PodDisruptionBudget": {func(c *clusterOfOne) {
			c.pdb = fields{"metadata": fields{"name": "shop", "namespace": "shop"}, "status": fields{"disruptionsAllowed": 0},
				"spec": fields{"selector": fields{"matchLabels": fields{"app": "shop"}}}}
		}, "kept      PodDisruptionBudget shop/shop allows no eviction of pod shop-1 now\n"},
		"a pod not to be disrupted": {func(c *clusterOfOne) {
			c.pod["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "true"}
		}, "kept      pod shop/shop-1 has the annotation karpenter.sh/do-not-disrupt\n"},
		"a pod not to be disrupted for a while": {func(c *clusterOfOne) {
			c.pod["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "2h"}
			c.pod["status"] = fields{"startTime": "2026-11-21T10:30:00Z"}
		}, "annotation karpenter.sh/do-not-disrupt=2h until 2026-11-21T12:30:00Z, which Karpenter reads from 1.12 on\n"},
		"a pod that was not to be disrupted": {func(c *clusterOfOne) {
			c.pod["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "1h"}
			c.pod["status"] = fields{"startTime": "2026-11-21T10:30:00Z"}
		}, "state     made from the pool's present template\nnext      it expires in 29d20h"},
		"a DaemonSet's pod not to be disrupted": {func(c *clusterOfOne) {
			meta := c.pod["metadata"].(fields)
			meta["annotations"], meta["ownerReferences"] = fields{ownership.DoNotDisrupt: "true"}, []any{fields{"kind": "DaemonSet", "name": "shop"}}
		}, "kept      pod shop/shop-1 has the annotation karpenter.sh/do-not-disrupt\n"},
		"a pod that may hold up a drifted node for an hour only": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.claim, "terminationGracePeriod", "1h")
			c.pod["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "true"}
		}, "(Drifted)\nnext      Karpenter replaces it\n"},
		"one that it keeps from being consolidated": {func(c *clusterOfOne) {
			c.with(condition("Consolidatable", "True", ""))
			c.spec(c.claim, "terminationGracePeriod", "1h")
			c.pod["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "true"}
		}, "kept      pod shop/shop-1 has the annotation karpenter.sh/do-not-disrupt\n"},
		"a node not to be disrupted": {func(c *clusterOfOne) {
			c.node["metadata"].(fields)["annotations"] = fields{ownership.DoNotDisrupt: "true"}
		}, "kept      the node has the annotation karpenter.sh/do-not-disrupt\n"},
		"made before its EC2NodeClass changed": {func(c *clusterOfOne) {
			const hash, version = "karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"
			c.claim["metadata"].(fields)["annotations"] = fields{hash: "1", version: "v4"}
			c.class["metadata"].(fields)["annotations"] = fields{hash: "2", version: "v4"}
		}, "state     made from an earlier template of the pool\n"},
		"hashes that cannot be compared": {func(c *clusterOfOne) {
			c.claim["metadata"].(fields)["annotations"] = fields{ownership.NodePoolHash: "1", ownership.NodePoolHashVersion: "v3"}
			c.pool["metadata"].(fields)["annotations"] = fields{ownership.NodePoolHash: "2", ownership.NodePoolHashVersion: "v4"}
		}, "state     made from a template whose hash cannot be compared with the pool's"},
		"a window": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"}}})
		}, "kept      the disruption window is closed until 2026-11-21T16:00:00Z (budget nodes: 0, from 0 8 * * * (UTC) for 8h)\n"},
		"the freeze": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.pool["metadata"].(fields)["labels"] = fields{ownership.TagRack: "prod"}
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "10%"}, fields{"nodes": "0"}}})
		}, "(Drifted)\nkept      the freeze (karpenter_freeze) lets no node go\nnext"},
		"what looks like the freeze, of a pool of no rack": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "10%"}, fields{"nodes": "0"}}})
		}, "(Drifted)\nkept      budget nodes: 0 lets no node go\nnext"},
		"a budget that another node uses up": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.others = []fields{{"metadata": fields{"name": "workload-b", "labels": fields{"karpenter.sh/nodepool": "workload"}},
				"status": fields{"nodeName": "node-b", "conditions": []any{
					condition("Initialized", "True", ""), condition("DisruptionReason", "True", "")}}}}
		}, "(Drifted)\nkept      budget nodes: 10% is used up: of 2 nodes 1 are going already\nnext"},
		"a budget that a node that is not Ready uses up": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.node["status"] = fields{"conditions": []any{fields{"type": "Ready", "status": "Unknown"}}}
		}, "kept      budget nodes: 10% is used up: of 1 nodes 1 are not Ready\nnext"},
		"one that it uses up itself": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""), condition("DisruptionReason", "True", ""))
		}, "(Drifted)\nnext      Karpenter replaces it\n"},
		"after the window": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "0", "schedule": "0 1 * * *", "duration": "8h"}}})
		}, "next      Karpenter replaces it\n"},
		"a budget for another reason": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.spec(c.pool, "disruption", fields{"budgets": []any{fields{"nodes": "0", "reasons": []any{"Empty"}}}})
		}, "next      Karpenter replaces it\n"},
		"no capacity for the replacement": {func(c *clusterOfOne) {
			c.with(condition("Drifted", "True", ""))
			c.event = fields{"metadata": fields{"name": "e", "namespace": "default"}, "type": "Warning", "reason": "InsufficientCapacityError",
				"source": fields{"component": "karpenter"}, "message": "NodeClaim workload-bcdfg event: InsufficientInstanceCapacity",
				"lastTimestamp":  time.Now().UTC().Format(time.RFC3339),
				"involvedObject": fields{"kind": "NodeClaim", "name": "workload-bcdfg"}}
		}, "kept      launches of the pool fail: karpenter: InsufficientCapacityError: InsufficientInstanceCapacity\n"},
		"consolidating": {func(c *clusterOfOne) { c.with(condition("Consolidatable", "True", "")) },
			"next      Karpenter replaces or removes it if its pods fit elsewhere for less; it expires in 29d20h"},
		"consolidating only when empty": {func(c *clusterOfOne) {
			c.spec(c.pool, "disruption", fields{"consolidationPolicy": "WhenEmpty"})
			c.with(condition("Consolidatable", "True", ""))
		}, "Karpenter removes it when it is empty"},
		"empty": {func(c *clusterOfOne) {
			c.pod = nil
			c.with(condition("Consolidatable", "True", ""))
		}, "next      Karpenter removes it, because no pod needs it"},
		"expiring": {func(c *clusterOfOne) { c.spec(c.claim, "expireAfter", "5h") },
			"next      it expires in 1h0m, whatever budgets and windows say\n"},
		"retiring": {func(c *clusterOfOne) {
			c.spec(c.node, "taints", []any{fields{"key": ownership.Retiring, "effect": "NoSchedule"}})
		}, "its pool is retiring\nnext      Karpenter moves its pods\n"},
		"rotating": {func(c *clusterOfOne) {
			c.claim["metadata"].(fields)["annotations"] = fields{ownership.NodePoolHash: ownership.Rotated}
		}, "state     due for rotation\n"},
		"static": {func(c *clusterOfOne) { c.spec(c.pool, "replicas", 3) },
			"kept      the pool is static: it has 3 nodes, whatever pods need\n"},
		"reserved": {func(c *clusterOfOne) {
			maps.Copy(c.claim["metadata"].(fields)["labels"].(fields),
				fields{"karpenter.sh/capacity-type": "reserved", "karpenter.k8s.aws/capacity-reservation-id": "cr-1"})
		}, "it takes a capacity reservation (cr-1), which is paid for in any case\n"},
		"pinned": {func(c *clusterOfOne) { c.spec(c.class, "amiSelectorTerms", []any{fields{"alias": "al2023@v20260828"}}) },
			"its image is pinned: al2023@v20260828\n"},
		"what Karpenter says": {func(c *clusterOfOne) {
			c.event = fields{"metadata": fields{"name": "e", "namespace": "default"}, "type": "Normal", "reason": "DisruptionBlocked",
				"source": fields{"component": "karpenter"}, "message": "Pod is nominated", "lastTimestamp": time.Now().UTC().Format(time.RFC3339),
				"involvedObject": fields{"kind": "NodeClaim", "name": "workload-a"}}
		}, "kept      Karpenter says: Pod is nominated\n"},
		"ending": {func(c *clusterOfOne) { c.claim["metadata"].(fields)["deletionTimestamp"] = "2026-11-21T11:50:00Z" },
			"ending since 2026-11-21T11:50:00Z\nnext      it ends when its 1 pods have gone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := one()
			c.change(cluster)
			got := printed(t, cluster.read(t), "node-a")
			if !strings.Contains(got, c.want) || !strings.Contains(got, "bought    m5.large, ") {
				t.Errorf("want %q in\n%s", c.want, got)
			}
		})
	}
}

// A pool is printed with all its nodes, those that should go first, and the first of them whole.
func TestWhyOfAPool(t *testing.T) {
	t.Parallel()
	cluster := one()
	cluster.others = []fields{{"metadata": fields{"name": "workload-b", "creationTimestamp": "2026-11-21T10:00:00Z",
		"labels":      fields{"karpenter.sh/nodepool": "workload", "node.kubernetes.io/instance-type": "c5.large"},
		"annotations": fields{ownership.NodePoolHash: "0"}}, "status": fields{"nodeName": "node-b", "conditions": []any{
		condition("Launched", "True", ""), condition("Registered", "True", ""), condition("Initialized", "True", ""),
		condition("Drifted", "True", "")}}}}
	s := cluster.read(t)
	got := printed(t, s, "workload")
	want := "pool      workload, 2 nodes, Ready\nbudget    nodes: 10%, in force now\n" +
		"node      node-b  c5.large  2h0m  Karpenter replaces it\n" +
		"node      node-a  m5.large  4h0m  it expires in 29d20h, whatever budgets and windows say\nnode      node-b of pool workload"
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	if _, err := s.about("nobody"); exitCode(looking(err)) != 1 {
		t.Errorf("an unknown name: %v", err)
	}
}

func printed(t *testing.T, s *seen, name string) string {
	t.Helper()
	answer, err := s.about(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := answer.print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The price is that of the node's region: a kubeconfig may lead to a cluster of another one than the environment names.
func TestWhyKnowsTheRegionOfANode(t *testing.T) {
	t.Parallel()
	c := one()
	c.node["metadata"].(fields)["labels"] = fields{"topology.kubernetes.io/region": "sa-east-1"}
	s := c.read(t)
	if n := s.explain(&s.claims[0]); n.region != "sa-east-1" {
		t.Errorf("region %q", n.region)
	}
}
