package story

import (
	"fmt"
	"time"
)

// Kept takes away three pools whose pods are of three kinds: one that tolerates every taint moves as any other; one that must not
// be disrupted, and one whose PodDisruptionBudget allows nothing, keep their nodes until that changes, and the status says so.
func Kept(s *Script) {
	const pools = "additional_karpenter_nodepools_config"
	on := func(pool, more, spec string) app {
		return app{name: pool, replicas: 1, cpu: `"2"`, more: more,
			spec: "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: " +
				"[{weight: 1, preference: {matchExpressions: [{key: convox.io/nodepool, operator: In, values: [" + pool + "]}]}}]}}" + spec}
	}
	tolerant := on("tolerant", "", "\n      tolerations: [{operator: Exists}]")
	quiet := on("quiet", `annotations: {karpenter.sh/do-not-disrupt: "true"}`, "")
	guarded := on("guarded", "", "")
	apps := []app{tolerant, quiet, guarded}
	goes := func(pool string) {
		s.Await("objects of pool "+pool, func() string {
			lookAtNodes(s)
			return s.Output("kubectl get nodepools,ec2nodeclasses -o name | grep " + pool + " || true")
		}, "", 4*time.Minute)
	}
	held := func(pool, why string) {
		s.Await("what holds "+pool, func() string {
			lookAtNodes(s)
			return fmt.Sprint(s.Status().says(why))
		}, "true", 3*time.Minute)
	}

	s.Chapter("A pool for each of three pods", func() {
		s.Until("the first nodes have gone", nodes, "", 2*time.Minute) // a pod that tolerates everything would run on one that is ending
		s.Reconciled(s.Put(pools, `[{"name":"tolerant"},{"name":"quiet"},{"name":"guarded"}]`))
		for _, a := range apps {
			a.start(s)
			s.Until("the pool of the pod", a.where(), a.name, time.Minute) // a pod that tolerates everything runs before its node has labels
		}
		s.Type("kubectl -n shop create pdb guarded --selector app=guarded --max-unavailable 0")
	})

	s.Chapter("They are taken away", func() {
		s.Unset(pools)
		s.Reconciled()
		goes("tolerant")
		s.Until("where it runs", tolerant.where(), "workload", 2*time.Minute) // it tolerates nodes that are ending, too
		held("quiet", `"held":"Pod has \"karpenter.sh/do-not-disrupt\" annotation`)
		held("guarded", `"held":"Pdb prevents pod evictions`)
		s.Type("sawhorse status demo")
		s.Contains("sawhorse why", "sawhorse why quiet", "has the annotation karpenter.sh/do-not-disrupt")
		s.Contains("sawhorse why", "sawhorse why guarded", "PodDisruptionBudget shop/guarded allows no eviction of pod guarded-")
		s.Check("where the quiet one runs", quiet.where(), "quiet")
		s.Check("where the guarded one runs", guarded.where(), "guarded")
	})

	s.Chapter("Nothing holds them any more", func() {
		s.Type("kubectl -n shop delete pdb guarded")
		quiet.end(s)
		goes("quiet")
		goes("guarded")
	})

	for _, a := range []app{tolerant, guarded} {
		a.end(s)
	}
	s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
}
