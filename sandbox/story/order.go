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
func Order(s *Script) {
	s.Chapter("A node of NodePool workload", func() {
		single.start(s)
		single.end(s)
	})

	var (
		r    *recording
		back time.Time
		all  []timeline.Moment
	)
	s.Chapter("Off, under observation", func() {
		r = s.record(watches...)
		off(s)
		withoutKarpenter(s)
		back = time.Now()
	})

	s.Chapter("On again", func() {
		on(s)
		all = r.stop(s.trail()...)
	})

	s.Chapter("What happened when", func() {
		for _, m := range notable(all, r.began) {
			s.Say("%s  %s", timeline.Clock(m.At), m.What)
		}
		offOrder(s, all, r.began)
		onOrder(s, all, back)
		// From the first event: the objects that the watches list at their start already existed.
		for _, broken := range timeline.Broken(all, timeline.First(all, r.began, autoscalerIsBack)) {
			s.fail("%s", broken)
		}
	})
}

var autoscalerIsBack = timeline.Like(`Deployment cluster-autoscaler replicas=1`)

// offOrder checks the order of turning off: other capacity comes back first, then Cluster Autoscaler, and the controller, its
// credentials and
// its queue are deleted only after the last NodeClaim and EC2NodeClass.
func offOrder(s *Script, all []timeline.Moment, from time.Time) {
	autoscalerBack := timeline.First(all, from, autoscalerIsBack)
	buildBack := timeline.First(all, from, timeline.Like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`))
	poolGoes := timeline.First(all, from, timeline.Like(`^DELETED NodePool workload`))
	nodes, classes := timeline.Last(all, timeline.Like(`^DELETED NodeClaim`)), timeline.Last(all, timeline.Like(`^DELETED EC2NodeClass`))
	s.inOrder("Cluster Autoscaler was back before the NodePool went", autoscalerBack, poolGoes)
	s.inOrder("the build group was back before Cluster Autoscaler", buildBack, autoscalerBack)
	s.inOrder("the last EC2NodeClass went after the last NodeClaim", nodes, classes)
	for _, served := range timeline.Serving {
		gone := timeline.First(all, from, served.Is)
		s.inOrder("the "+served.What+" went after the last NodeClaim", nodes, gone)
		s.inOrder("the "+served.What+" went after the last EC2NodeClass", classes, gone)
	}
	s.inOrder("the rule went before the queue", timeline.First(all, from, timeline.Like(`events DeleteRule `)),
		timeline.First(all, from, timeline.Like(`sqs DeleteQueue `)))
}

// onOrder checks the order of turning on: Cluster Autoscaler and the build groups are scaled down only after the
// workload pool is Ready.
func onOrder(s *Script, all []timeline.Moment, from time.Time) {
	isReady := timeline.First(all, from, timeline.Like(`NodePool workload Ready=True`))
	handedOver := timeline.First(all, from, timeline.Like(`Deployment cluster-autoscaler replicas=0`))
	s.inOrder("Cluster Autoscaler was scaled down after NodePool workload was Ready", isReady, handedOver)
	for _, pool := range []string{"workload", "build"} {
		s.inOrder("Cluster Autoscaler was scaled down after pool "+pool+" had shown a node",
			timeline.First(all, from, timeline.Like(`^ADDED NodeClaim `+pool+`-`)), handedOver)
	}
	s.inOrder("the build group was scaled down after NodePool workload was Ready", isReady,
		timeline.First(all, from, timeline.Like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`)))
	pinned := timeline.First(all, from, timeline.Like(`Deployment metrics-server .* system-node=true`))
	s.inOrder("metrics-server was pinned after a node for it was Ready",
		timeline.First(all, time.Time{}, timeline.Like(`Node \S+ system-node=true Ready=True`)), pinned)
	s.inOrder("metrics-server was pinned after NodePool workload was Ready", isReady, pinned)
	for _, m := range all {
		if !m.At.Before(from) && strings.Contains(m.What, "Deployment metrics-server") && strings.Contains(m.What, "available= ") {
			s.fail("at %s metrics-server had no pod available", timeline.Clock(m.At))
		}
	}
}

// notable leaves out earlier moments, and those that repeat the previous line about the same object.
func notable(all []timeline.Moment, from time.Time) []timeline.Moment {
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
