package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Launch is a NodeClaim that did not become a node, with Karpenter's words about it: its condition that is not True, or an event.
// Karpenter deletes a NodeClaim for which EC2 has no capacity, so that only the event remains, for an hour.
type Launch struct{ NodeClaim, Words string }

// launchCause is a cause of failed launches.
type launchCause struct {
	// words are the codes of EC2 and the reasons of Karpenter (pkg/errors/errors.go of karpenter-provider-aws 1.10) by
	// which the cause is recognized.
	words    []string
	severity Severity
	what, do string
	commands []string
}

// launchCauses are all causes with a remedy of their own. The first that matches counts, and the last matches always.
var launchCauses = []launchCause{
	{
		[]string{"ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed"}, Fails,
		"EC2 refused spot instances, because the account has no role AWSServiceRoleForEC2Spot",
		"Create it, once for the account.",
		[]string{createSpotRole},
	},
	{
		[]string{"AMIAuthorizationFailure", "AMINotFound", "InvalidAMIID"}, Fails,
		"EC2 refused the AMI",
		"Name AMIs that exist in this region and that this account may use: amiSelectorTerms in karpenter_config or in the pool.",
		[]string{"kubectl get ec2nodeclasses -o yaml"},
	},
	{
		[]string{"Unauthorized", "AccessDenied", "AuthFailure"}, Fails,
		"EC2 denied the launch to Karpenter's controller",
		"Look for a service control policy or a permissions boundary that denies it to the controller's role (the check organization), " +
			"and for a KMS key that it may not use (the check encryption).",
		[]string{controllerLog + " | grep -i -e unauthorized -e denied"},
	},
	{
		[]string{"VcpuLimitExceeded", "VCPULimitExceeded"}, Fails,
		"EC2 refused to launch, because the account's vCPU quota is used up",
		"Ask for a higher quota (the check vcpu-quota has the number), or lower the pools' limits to what there is.",
		[]string{listQuotas},
	},
	{
		[]string{"MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"}, Fails,
		"EC2 refused to launch, because the account's spot quota is used up",
		"Ask for a higher quota (the check vcpu-quota has the number), or let the pool use on-demand too.",
		[]string{listQuotas},
	},
	{
		[]string{"MaxFleetCountExceeded", "FleetQuotaExceeded"}, Fails,
		"EC2 refused to launch, because the account's quota of fleets is used up",
		"Ask for a higher quota.",
		[]string{listQuotas},
	},
	{
		[]string{"InsufficientFreeAddressesInSubnet"}, Fails,
		"the subnets have no free addresses",
		"See the check subnets.",
		nil,
	},
	{
		[]string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "InsufficientCapacityError"}, Warns,
		"EC2 had no capacity for the instance types that the pool allows",
		"Allow more instance families, sizes, zones or capacity types. Karpenter tries the same types again after 3 minutes.",
		nil,
	},
	{
		[]string{"NodeNotFound", "MultipleNodesFound"}, Fails,
		"the instance runs, but its node has not registered with the cluster",
		"See the checks parameters, endpoints and discovery, and the output of the instance's console. Karpenter terminates the instance " +
			"after 15 minutes.",
		[]string{"aws ec2 get-console-output --latest --output text --instance-id INSTANCE"},
	},
	{
		[]string{"NodeNotReady", "ResourceNotRegistered", "StartupTaintsExist", "KnownEphemeralTaintsExist"}, Warns,
		"the node has registered, but is not ready for pods",
		"See the pods of DaemonSets on the node: its network agent or device plugin does not run, or nothing removes a startup taint.",
		[]string{"kubectl get pods -A --field-selector spec.nodeName=NODE"},
	},
	{
		[]string{""}, Warns,
		"NodeClaims that have not become nodes",
		"Read what Karpenter's controller logs about them.",
		[]string{controllerLog},
	},
}

const listQuotas = "aws service-quotas list-service-quotas --service-code ec2"

const controllerLog = "kubectl -n " + ownership.Namespace + " logs deployment/" + ownership.ReleaseController + " --since=1h"

func (c launchCause) matches(l Launch) bool {
	return slices.ContainsFunc(c.words, func(word string) bool { return strings.Contains(l.Words, word) })
}

// launches reports the failed launches by their cause, because a cause usually stops many of them.
func launches(o *Observed, found *findings) {
	by := make([][]Launch, len(launchCauses))
	for _, l := range o.Launches {
		i := slices.IndexFunc(launchCauses, func(c launchCause) bool { return c.matches(l) })
		by[i] = append(by[i], l)
	}
	for i, c := range launchCauses {
		if len(by[i]) == 0 {
			continue
		}
		var claims []string
		for _, l := range by[i] {
			claims = append(claims, l.NodeClaim)
		}
		slices.Sort(claims)
		claims = slices.Compact(claims)
		last := by[i][len(by[i])-1]
		found.add(c.severity, fmt.Sprintf("%s (%d: %s); the last: %s", c.what, len(claims), some(claims), last.Words), c.do, c.commands...)
	}
}
