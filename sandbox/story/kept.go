package story

import (
	"fmt"
	"time"
)

// Kept takes away four pools. The pods of three are of three kinds: one that tolerates every taint moves as any other; one that must
// not be disrupted, and one whose PodDisruptionBudget allows nothing, keep their nodes until that changes, and the status says so. The
// node of the fourth is in a capacity reservation, which is free again when it has gone.
func Kept(s *Script) {
	const (
		pools = "additional_karpenter_nodepools_config"
		entry = `{"name":"reserved","nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In",` +
			`"values":["reserved","on-demand"]},{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}},` +
			`"ec2NodeClass":{"capacityReservationSelectorTerms":[{"id":%q}]}}`
		free = "aws ec2 describe-capacity-reservations --capacity-reservation-ids %s " +
			"--query 'CapacityReservations[].AvailableInstanceCount' --output text"
	)
	on := func(pool, more, spec string) app {
		return app{name: pool, replicas: 1, cpu: `"2"`, more: more,
			spec: "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: " +
				"[{weight: 1, preference: {matchExpressions: [{key: convox.io/nodepool, operator: In, values: [" + pool + "]}]}}]}}" + spec}
	}
	tolerant := on("tolerant", "", "\n      tolerations: [{operator: Exists}]")
	quiet := on("quiet", `annotations: {karpenter.sh/do-not-disrupt: "true"}`, "")
	guarded, reserved := on("guarded", "", ""), on("reserved", "", "")
	apps := []app{tolerant, quiet, guarded, reserved}
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

	s.Chapter("A placement group that EC2 does not show", func() {
		s.Put(pools, `[{"name":"near","ec2NodeClass":{"placementGroupSelector":{"name":"near"}}}]`)
		s.Rejected("placementGroupSelector")
		s.Request("full") // an audit judges it too
		s.Rejected("placementGroupSelector")
	})

	reservation := ""
	s.Chapter("A pool for each of four pods", func() {
		s.Until("the first nodes have gone", nodes, "", 2*time.Minute) // a pod that tolerates everything would run on one that is ending
		reservation = s.Output("aws ec2 create-capacity-reservation --instance-type m5.xlarge --instance-platform Linux/UNIX " +
			"--availability-zone us-east-1a --instance-count 1 --instance-match-criteria targeted " +
			"--query CapacityReservation.CapacityReservationId --output text")
		s.Reconciled(s.Put(pools, `[{"name":"tolerant"},{"name":"quiet"},{"name":"guarded"},`+fmt.Sprintf(entry, reservation)+`]`))
		s.Reconciled(s.Request("full")) // an audit looks for the reservation too
		for _, a := range apps {
			a.start(s)
			s.Until("the pool of the pod", a.where(), a.name, time.Minute) // a pod that tolerates everything runs before its node has labels
		}
		s.Type("kubectl -n shop create pdb guarded --selector app=guarded --max-unavailable 0")
		s.Contains("sawhorse why", "sawhorse why reserved", "m5.xlarge, reserved, us-east-1a")
		s.Contains("sawhorse why", "sawhorse why reserved", "it takes a capacity reservation ("+reservation+"), which is paid for in any case")
		s.Check("the reservation's free instances", fmt.Sprintf(free, reservation), "0")
	})

	s.Chapter("They are taken away", func() {
		s.Unset(pools)
		s.Reconciled()
		goes("tolerant")
		goes("reserved")
		s.Until("the reservation's free instances", fmt.Sprintf(free, reservation), "1", time.Minute)
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

	s.Type("aws ec2 cancel-capacity-reservation --capacity-reservation-id " + reservation)
	for _, a := range []app{tolerant, guarded, reserved} {
		a.end(s)
	}
	s.Until("nodes of NodePools", nodes, "", 5*time.Minute)
}
