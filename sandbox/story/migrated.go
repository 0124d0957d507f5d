package story

import (
	"fmt"
	"strings"
	"time"
)

// Migrated empties a node group with 40 pods of six kinds: node by node, never below a PodDisruptionBudget. It stops at a pod that
// fits nowhere and at one that must not be disrupted, is unset half way, and goes on. Off brings the size back.
func Migrated(s *Script) {
	const (
		groups = "migrate_node_groups"
		size   = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name apps --query " +
			"nodegroup.scalingConfig.'[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '"
		nodesOf  = "kubectl get nodes -o name -l eks.amazonaws.com/nodegroup=apps"
		cordoned = nodesOf + " --field-selector spec.unschedulable=true | wc -l"
		prefers  = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: " +
			"{matchExpressions: [{key: eks.amazonaws.com/nodegroup, operator: In, values: [apps]}]}}]%s}}"
		inZone = ", requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
			"[{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]}]}"
		notStuck = ", requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
			"[{key: fits, operator: DoesNotExist}]}]}"
		template = "kubectl -n shop patch deployment %s --type json -p '[{\"op\":\"remove\",\"path\":\"/spec/template/%s\"}]'"
	)
	anywhere := fmt.Sprintf(prefers, "")
	web := app{name: "web", replicas: 12, cpu: "100m", spec: anywhere}
	api := app{name: "api", replicas: 8, cpu: "100m", spec: anywhere}
	zonal := app{name: "zonal", replicas: 3, cpu: "100m", spec: fmt.Sprintf(prefers, inZone)}
	stuck := app{name: "stuck", replicas: 1, cpu: "100m", spec: "nodeSelector: {fits: here}"}
	keeper := app{name: "keeper", replicas: 1, cpu: "100m", spec: fmt.Sprintf(prefers, notStuck), // the node of stuck goes first
		more: `annotations: {karpenter.sh/do-not-disrupt: "true"}`}
	worker := app{name: "worker", replicas: 15, cpu: "100m", spec: anywhere}
	all := []app{web, api, zonal, stuck, keeper, worker}
	var available availability // of the apps with a PodDisruptionBudget
	// looks has the node check look until a read has a value. Meanwhile no PodDisruptionBudget is violated.
	looks := func(what string, read func() string, wanted string) {
		cordons := 0
		s.Await(what, func() string {
			lookAtNodes(s)
			cordons = max(cordons, number(s.Output(cordoned)))
			return read()
		}, wanted, 10*time.Minute)
		s.Equal("pods below a PodDisruptionBudget", max(available.missing(), 1), 1)
		s.Equal("nodes that are emptied at once, at most", max(cordons, 2), 2) // the one before may be ending
	}
	held := func(word string) func() string {
		return func() string { return fmt.Sprint(strings.Contains(s.Output("sawhorse status demo || true"), word)) }
	}

	s.Chapter("A group of three nodes, 40 pods, two PodDisruptionBudgets", func() {
		s.Type(createGroup("apps", "--capacity-type ON_DEMAND --scaling-config minSize=2,desiredSize=3,maxSize=5"))
		s.Until("its nodes", nodesOf+" | wc -l", "3", time.Minute)
		s.Type("kubectl wait $(" + nodesOf + ") --for=condition=Ready --timeout=1m")
		s.Reconciled(s.Request("full"))
		s.Type("kubectl label $(" + nodesOf + " | head -1) fits=here")
		for _, a := range all {
			a.start(s)
		}
		s.Type("kubectl -n shop create pdb web --selector app=web --max-unavailable 1")
		s.Type("kubectl -n shop create pdb api --selector app=api --min-available 7")
		available = s.recordAvailable(web, api)
	})

	s.Chapter("What it would do", func() {
		s.Put(groups, "aps")
		s.Rejected(`migrate_node_groups has the node group "aps"`)
		s.Change(map[string]string{"paused": "true", groups: "apps"})
		s.Paused()
		s.Says("node group apps is emptied: its 3 nodes (40 pods) are cordoned")
		s.Check("nothing is cordoned", cordoned, "0")
	})

	s.Chapter("It stops at a pod that fits nowhere, and goes on when it is mended", func() {
		s.Unset("paused")
		s.Reconciled()
		looks("held", held("pod shop/stuck-"), "true")
		s.Contains("the status", "sawhorse status demo || true", "waits for a node")
		s.Check("its size", size+" | cut -d' ' -f1", "0")
		s.Type(fmt.Sprintf(template, "stuck", "spec/nodeSelector"))
		looks("held", held("has karpenter.sh/do-not-disrupt"), "true")
		s.Contains("the status", "sawhorse status demo || true", "migrating  1 nodes of 1 node groups are to be emptied, held since 20")
		s.Check("its size", size, "0 1 5")
	})

	s.Chapter("Unset half way", func() {
		s.Unset(groups)
		s.Reconciled()
		s.Check("cordoned nodes", cordoned, "0")
		s.Check("its size", size, "0 1 5")
		looks("the status says it is migrating", held("migrating"), "false")
	})

	s.Chapter("Set again, and empty", func() {
		s.Put(groups, "apps")
		s.Reconciled()
		looks("held", held("has karpenter.sh/do-not-disrupt"), "true")
		deny(s, "nodegroups", "autoscaling:TerminateInstanceInAutoScalingGroup")
		s.Type(fmt.Sprintf(template, "keeper", "metadata/annotations"))
		looks("the status names the right that is missing", held("autoscaling:TerminateInstanceInAutoScalingGroup"), "true")
		if len(audit(s)) > 0 {
			s.Served()
		}
		allow(s, "nodegroups")
		looks("its nodes", func() string { return s.Output(nodesOf) }, "")
		s.Check("its size", size, "0 0 5")
		for _, a := range all {
			s.Until("pods of "+a.name+" that run", a.runs(), fmt.Sprint(a.replicas), time.Minute)
		}
		looks("the status says it is migrating", held("migrating"), "false")
		available.stop()
		auditInOrder(s, "No audit finds anything due of a group that is empty.")
	})

	s.Chapter("Off: its size as it was, though nothing says any more that it was emptied", func() {
		s.Unset(groups)
		s.Reconciled()
		s.Check("its size", size, "0 0 5")
		s.Put("karpenter_enabled", "false")
		s.Reconciled()
		s.Check("its size", size, "2 3 5")
		s.Until("its nodes", nodesOf+" | wc -l", "3", time.Minute)
		s.Check("cordoned nodes", cordoned, "0")
	})
}
