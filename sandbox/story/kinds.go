package story

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// kinds are entries of additional_karpenter_nodepools_config, one for each kind of pool. %s is a capacity reservation.
var kinds = []string{
	`{"name":"reserved","instance_families":"g5","taints":"nvidia.com/gpu=true:NoSchedule","nodePool":{"template":{"spec":{"requirements":[` +
		`{"key":"karpenter.sh/capacity-type","operator":"In","values":["reserved"]},{"key":"kubernetes.io/arch","operator":"In",` +
		`"values":["amd64"]}]}}},"ec2NodeClass":{"capacityReservationSelectorTerms":[{"id":"%s"}]}}`,
	`{"name":"flex","nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.k8s.aws/instance-family","operator":"Exists",` +
		`"minValues":3},{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","on-demand"]},` +
		`{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}}}`,
	`{"name":"canary","cpu_limit":16,"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260801"}]}}`,
	`{"name":"arm","arch":"arm64"}`,
	`{"name":"zonal","nodePool":{"template":{"spec":{"requirements":[{"key":"topology.kubernetes.io/zone","operator":"In",` +
		`"values":["us-east-1b"]},{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}}}`,
	`{"name":"rocket","os":"bottlerocket"}`,
	`{"name":"fixed","nodePool":{"replicas":1}}`,
}

// Kinds has a pool of each kind under each of these versions of Karpenter, Ready, and a pod on a node of each.
func Kinds(s *Script, versions ...string) {
	const pools = "additional_karpenter_nodepools_config"
	reservation := s.Output("aws ec2 create-capacity-reservation --instance-type g5.xlarge --instance-platform Linux/UNIX " +
		"--availability-zone us-east-1a --instance-count 1 --instance-match-criteria targeted " +
		"--query CapacityReservation.CapacityReservationId --output text")
	entries := fmt.Sprintf("["+strings.Join(kinds, ",")+"]", reservation)
	var all []struct{ Name string }
	if err := json.Unmarshal([]byte(entries), &all); err != nil {
		s.fail("%v", err)
	}
	for _, version := range versions {
		s.Chapter("Under Karpenter "+version, func() {
			s.Reconciled(s.Change(map[string]string{"karpenter_version": version, "karpenter_consolidate_after": "1s", pools: entries,
				"karpenter_controller_config": `{"settings":{"featureGates":{"staticCapacity":true}}}`}))
			s.Check("images of the controller's pods", controllerImages, version)
			ready := map[string]bool{"build=True": true, "workload=True": true}
			for _, pool := range all {
				ready[pool.Name+"=True"] = true
			}
			s.Until("pools", poolsReady, joined(ready), time.Minute)
			for _, pool := range all {
				on := app{name: pool.Name, replicas: 1, cpu: `"1"`, spec: "nodeSelector: {karpenter.sh/nodepool: " + pool.Name + "}\n      " +
					"tolerations: [{key: nvidia.com/gpu, operator: Exists}]"}
				on.start(s)
				s.Check("the NodePool of its node", on.where(), pool.Name)
			}
			s.Type("kubectl get nodeclaims -L karpenter.sh/nodepool,karpenter.sh/capacity-type,kubernetes.io/arch,topology.kubernetes.io/zone")
			for _, pool := range all {
				app{name: pool.Name}.end(s)
			}
			s.Put(pools, "unset")
			s.Rejected("pool fixed is not there any more, and it is static")
			s.Reconciled(s.Force("retire:fixed"))
			onlyDefaults(s)
		})
	}
	s.Reconciled(s.Change(map[string]string{"karpenter_version": "1.10.0"}, "karpenter_consolidate_after", "karpenter_controller_config"))
}
