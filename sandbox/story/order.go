package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// ownRecords are the services that the functions call only for their own records, logs and passes.
var ownRecords = []string{"dynamodb", "logs", "states", "lambda", "xray", "monitoring"}

// watches are the commands that record a rack's life in the cluster, with a line for each change of an object.
var watches = []string{
	`kubectl get nodepools --watch --output-watch-events ` +
		`-o jsonpath='{.type} NodePool {.object.metadata.name} Ready={.object.status.conditions[?(@.type=="Ready")].status}{"\n"}'`,
	`kubectl get ec2nodeclasses --watch --output-watch-events -o jsonpath='{.type} EC2NodeClass {.object.metadata.name}{"\n"}'`,
	`kubectl get nodeclaims --watch --output-watch-events -o jsonpath='{.type} NodeClaim {.object.metadata.name}{"\n"}'`,
	`kubectl get nodes --watch --output-watch-events ` +
		`-o jsonpath='{.type} Node {.object.metadata.name} system-node={.object.metadata.labels.convox\.io/system-node} ` +
		`Ready={.object.status.conditions[?(@.type=="Ready")].status}{"\n"}'`,
	`kubectl -n kube-system get deployments --watch --output-watch-events ` +
		`-o jsonpath='{.type} Deployment {.object.metadata.name} replicas={.object.spec.replicas} ` +
		`available={.object.status.availableReplicas} system-node={.object.spec.template.spec.nodeSelector.convox\.io/system-node}{"\n"}'`,
}

// Order records how Karpenter is turned off and on again, and compares the times. No capacity is removed before its
// replacement is Ready, and nothing that Karpenter's nodes need is deleted before the last of them.
func Order(t *Teller) {
	autoscalerBefore := asBefore(t)
	t.Chapter("A node of NodePool workload")
	single.start(t)
	single.end(t)

	t.Chapter("Off, under observation")
	r := t.record(watches...)
	off(t)
	withoutKarpenter(t, autoscalerBefore)
	back := time.Now()

	t.Chapter("On again")
	on(t)
	all := r.stop(t.trail()...)

	t.Chapter("What happened when")
	for _, m := range brief(all, r.began) {
		t.Say("%s  %s", timeline.Clock(m.At), m.What)
	}
	offOrder(t, all, r.began)
	onOrder(t, all, back)
	// From the first event: the objects that the watches list at their start already existed.
	for _, broken := range timeline.Broken(all, timeline.First(all, r.began, autoscalerIsBack)) {
		t.fail("%s", broken)
	}
}

var autoscalerIsBack = timeline.Like(`Deployment cluster-autoscaler replicas=1`)

// offOrder checks the order of turning off: other capacity comes back first, and the controller, its credentials and
// its queue are deleted only after the last NodeClaim and EC2NodeClass.
func offOrder(t *Teller, all []timeline.Moment, from time.Time) {
	autoscalerBack := timeline.First(all, from, autoscalerIsBack)
	buildBack := timeline.First(all, from, timeline.Like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`))
	poolGoes := timeline.First(all, from, timeline.Like(`^DELETED NodePool workload`))
	nodes, classes := timeline.Last(all, timeline.Like(`^DELETED NodeClaim`)), timeline.Last(all, timeline.Like(`^DELETED EC2NodeClass`))
	t.inOrder("Cluster Autoscaler was back before the NodePool went", autoscalerBack, poolGoes)
	t.inOrder("the build group was back before the NodePool went", buildBack, poolGoes)
	t.inOrder("the last EC2NodeClass went after the last NodeClaim", nodes, classes)
	for _, served := range timeline.Serving {
		gone := timeline.First(all, from, served.Is)
		t.inOrder("the "+served.What+" went after the last NodeClaim", nodes, gone)
		t.inOrder("the "+served.What+" went after the last EC2NodeClass", classes, gone)
	}
	t.inOrder("the rule went before the queue", timeline.First(all, from, timeline.Like(`events DeleteRule `)),
		timeline.First(all, from, timeline.Like(`sqs DeleteQueue `)))
}

// onOrder checks the order of turning on: Cluster Autoscaler and the build groups are scaled down only after the
// workload pool is Ready.
func onOrder(t *Teller, all []timeline.Moment, from time.Time) {
	isReady := timeline.First(all, from, timeline.Like(`NodePool workload Ready=True`))
	t.inOrder("Cluster Autoscaler was scaled down after NodePool workload was Ready", isReady,
		timeline.First(all, from, timeline.Like(`Deployment cluster-autoscaler replicas=0`)))
	t.inOrder("the build group was scaled down after NodePool workload was Ready", isReady,
		timeline.First(all, from, timeline.Like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`)))
	pinned := timeline.First(all, from, timeline.Like(`Deployment metrics-server .* system-node=true`))
	t.inOrder("metrics-server was pinned after a node for it was Ready",
		timeline.First(all, time.Time{}, timeline.Like(`Node \S+ system-node=true Ready=True`)), pinned)
	t.inOrder("metrics-server was pinned after NodePool workload was Ready", isReady, pinned)
	for _, m := range all {
		if !m.At.Before(from) && strings.Contains(m.What, "Deployment metrics-server") && strings.Contains(m.What, "available= ") {
			t.fail("at %s metrics-server had no pod available", timeline.Clock(m.At))
		}
	}
}

// brief leaves out earlier moments, and those that repeat the previous line about the same object.
func brief(all []timeline.Moment, from time.Time) []timeline.Moment {
	var kept []timeline.Moment
	said := map[string]string{}
	for _, m := range all {
		words := strings.Fields(m.What)
		if m.At.Before(from) || len(words) < 3 {
			continue
		}
		if words[0] == "AWS" && (!strings.HasPrefix(words[1], "Sawhorse-") || slices.Contains(ownRecords, words[2])) {
			continue
		}
		key, rest := strings.Join(words[1:3], " "), fmt.Sprint(words[0] == "DELETED", words[3:])
		if words[0] != "AWS" && said[key] == rest {
			continue
		}
		said[key] = rest
		kept = append(kept, m)
	}
	return kept
}
