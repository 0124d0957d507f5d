package timeline_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// Lines of turning Karpenter on and off, five seconds apart.
const (
	role        = "AWS Sawhorse-InfrastructureRole iam CreateRole /"
	identity    = "AWS Sawhorse-InfrastructureRole eks CreatePodIdentityAssociation /clusters/demo/pod-identity-associations"
	queue       = "AWS Sawhorse-QueueRole sqs CreateQueue /"
	rule        = "AWS Sawhorse-QueueRole events PutRule /"
	controller  = "ADDED Deployment karpenter replicas=1 system-node=true"
	class       = "ADDED EC2NodeClass workload Ready="
	pool        = "ADDED NodePool workload Ready="
	ready       = "MODIFIED NodePool workload Ready=True"
	scaledDown  = "MODIFIED Deployment cluster-autoscaler replicas=0 system-node="
	buildChange = "AWS Sawhorse-NodegroupsRole eks UpdateNodegroupConfig /clusters/demo/node-groups/build/update-config"
	pinned      = "MODIFIED Deployment metrics-server replicas=1 system-node=true"
	claim       = "ADDED NodeClaim workload-x Ready="

	scaledUp       = "MODIFIED Deployment cluster-autoscaler replicas=1 system-node="
	poolGone       = "DELETED NodePool workload Ready=True"
	claimGone      = "DELETED NodeClaim workload-x Ready=True"
	classGone      = "DELETED EC2NodeClass workload Ready=True"
	controllerGone = "DELETED Deployment karpenter replicas=1 system-node=true"
	ruleGone       = "AWS Sawhorse-QueueRole events DeleteRule /"
	queueGone      = "AWS Sawhorse-QueueRole sqs DeleteQueue /"
	identityGone   = "AWS Sawhorse-InfrastructureRole eks DeletePodIdentityAssociation /clusters/demo/pod-identity-associations/a"
	entryGone      = "AWS Sawhorse-InfrastructureRole eks DeleteAccessEntry /clusters/demo/access-entries/a"
	roleGone       = "AWS Sawhorse-InfrastructureRole iam DeleteRole /"
	unpinned       = "MODIFIED Deployment metrics-server replicas=1 system-node="
)

var (
	before = []string{
		"ADDED Deployment cluster-autoscaler replicas=1 system-node=", "ADDED Deployment metrics-server replicas=1 system-node=",
	}
	onOff = []string{
		role, identity, queue, rule, controller, class, pool, ready, scaledDown, buildChange, pinned, claim,
		scaledUp, buildChange, poolGone, claimGone, classGone, controllerGone, ruleGone, queueGone, identityGone, entryGone,
		roleGone, unpinned,
	}
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(lines []string) []timeline.Moment {
	var all []timeline.Moment
	for i, line := range slices.Concat(before, lines) {
		all = append(all, timeline.Moment{At: noon.Add(time.Duration(i) * 5 * time.Second), What: line})
	}
	return all
}

func TestTheRightOrderBreaksNothing(t *testing.T) {
	twice := slices.Concat(onOff, onOff)
	if broken := timeline.Broken(at(twice), noon); len(broken) > 0 {
		t.Errorf("%q", broken)
	}
}

// Each line that is moved to a wrong place breaks its own promise. It is not reported again later.
func TestEachPromiseCanBeBroken(t *testing.T) {
	for _, c := range []struct{ line, toBefore, says string }{
		{queue, ready, "the controller came before the queue"},
		{rule, ready, "the controller came before the rule"},
		{role, ready, "the controller came before its role"},
		{identity, ready, "the controller came before its credentials"},
		{class, controller, "EC2NodeClass workload came before the controller"},
		{pool, controller, "NodePool workload came before the controller"},
		{scaledDown, ready, "Cluster Autoscaler's scale changed while NodePool workload was not Ready"},
		{buildChange, ready, "the build group's scale changed while NodePool workload was not Ready"},
		{pinned, ready, "the pin of metrics-server changed while NodePool workload was not Ready"},
		{scaledUp, claimGone, "Cluster Autoscaler's scale changed while NodePool workload was not Ready"},
		{controllerGone, claimGone, "the controller went while NodeClaim workload-x was there"},
		{controllerGone, classGone, "the controller went while EC2NodeClass workload was there"},
		{ruleGone, classGone, "the rule went while EC2NodeClass workload was there"},
		{queueGone, classGone, "the queue went while EC2NodeClass workload was there"},
		{identityGone, classGone, "the credentials went while EC2NodeClass workload was there"},
		{entryGone, claimGone, "the access entry of the nodes went while NodeClaim workload-x was there"},
		{roleGone, classGone, "the roles went while EC2NodeClass workload was there"},
	} {
		moved := slices.Clone(onOff)
		from := slices.Index(moved, c.line)
		moved = slices.Delete(moved, from, from+1)
		moved = slices.Insert(moved, slices.Index(moved, c.toBefore), c.line)
		broken := timeline.Broken(at(moved), noon)
		if !slices.ContainsFunc(broken, func(line string) bool { return strings.HasSuffix(line, c.says) }) {
			t.Errorf("%s before %s: %q, without %q", c.line, c.toBefore, broken, c.says)
		}
		if others := timeline.Broken(at(moved), noon.Add(time.Hour)); len(others) > 0 {
			t.Errorf("%s before %s: it is told again later: %q", c.line, c.toBefore, others)
		}
	}
}

// A watch may report late what happened in time.
func TestALateWatchIsNoBrokenPromise(t *testing.T) {
	for late, wanted := range map[time.Duration]int{timeline.Lag / 2: 0, 2 * timeline.Lag: 1} {
		all := at([]string{role, identity, queue, rule, controller, class, queueGone})
		all = append(all, timeline.Moment{At: all[len(all)-1].At.Add(late), What: classGone})
		if broken := timeline.Broken(all, noon); len(broken) != wanted {
			t.Errorf("%s late: %q", late, broken)
		}
	}
}

// Other changes to a Deployment in the handover are ignored.
func TestOnlyTheHandOverCounts(t *testing.T) {
	all := at([]string{
		"MODIFIED Deployment cluster-autoscaler replicas=1 system-node=true",
		"MODIFIED Deployment cluster-autoscaler replicas=1 system-node=",
	})
	if broken := timeline.Broken(all, noon); len(broken) > 0 {
		t.Errorf("%q", broken)
	}
}
