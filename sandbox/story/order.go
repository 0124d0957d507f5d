package story

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// watches are what a recording of a rack's life watches in the cluster: a line for each change of an object.
var watches = []string{
	`kubectl get nodepools --watch --output-watch-events -o jsonpath='{.type} NodePool {.object.metadata.name} Ready={.object.status.conditions[?(@.type=="Ready")].status}{"\n"}'`,
	`kubectl get ec2nodeclasses --watch --output-watch-events -o jsonpath='{.type} EC2NodeClass {.object.metadata.name}{"\n"}'`,
	`kubectl get nodeclaims --watch --output-watch-events -o jsonpath='{.type} NodeClaim {.object.metadata.name}{"\n"}'`,
	`kubectl get nodes --watch --output-watch-events -o jsonpath='{.type} Node {.object.metadata.name} system-node={.object.metadata.labels.convox\.io/system-node} Ready={.object.status.conditions[?(@.type=="Ready")].status}{"\n"}'`,
	`kubectl -n kube-system get deployments --watch --output-watch-events -o jsonpath='{.type} Deployment {.object.metadata.name} replicas={.object.spec.replicas} available={.object.status.availableReplicas} system-node={.object.spec.template.spec.nodeSelector.convox\.io/system-node}{"\n"}'`,
}

// Order turns Karpenter off and on again under observation, and compares when things went and came: no capacity is given up
// before what replaces it is Ready, nor what serves Karpenter's nodes before the last of them has gone.
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
	timeline := r.stop(t.trail()...)

	t.Chapter("What happened when")
	turns := brief(timeline)
	for _, m := range turns {
		t.Say("%s  %s", clock(m.at), m.what)
	}
	offOrder(t, timeline, r.began)
	onOrder(t, timeline, back)
}

// offOrder is the promise of P5, and room first.
func offOrder(t *Teller, all []moment, from time.Time) {
	autoscalerBack := first(all, from, like(`Deployment cluster-autoscaler replicas=1`))
	buildBack := first(all, from, like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`))
	poolGoes := first(all, from, like(`^DELETED NodePool workload`))
	nodes, classes := last(all, like(`^DELETED NodeClaim`)), last(all, like(`^DELETED EC2NodeClass`))
	t.inOrder("Cluster Autoscaler was back before the NodePool went", autoscalerBack, poolGoes)
	t.inOrder("the build group was back before the NodePool went", buildBack, poolGoes)
	t.inOrder("the last EC2NodeClass went after the last NodeClaim", nodes, classes)
	for _, served := range []struct{ what, pattern string }{
		{"controller", `^DELETED Deployment karpenter `},
		{"rule", `^AWS Sawhorse-\S* events DeleteRule `},
		{"queue", `^AWS Sawhorse-\S* sqs DeleteQueue `},
		{"credentials", `^AWS Sawhorse-\S* eks DeletePodIdentityAssociation `},
		{"access entry of the nodes", `^AWS Sawhorse-Infrastructure\S* eks DeleteAccessEntry `},
		{"roles", `^AWS Sawhorse-\S* iam DeleteRole `},
	} {
		gone := first(all, from, like(served.pattern))
		t.inOrder("the "+served.what+" went after the last NodeClaim", nodes, gone)
		t.inOrder("the "+served.what+" went after the last EC2NodeClass", classes, gone)
	}
	t.inOrder("the rule went before the queue", first(all, from, like(`events DeleteRule `)), first(all, from, like(`sqs DeleteQueue `)))
}

// onOrder is the promise of P4.
func onOrder(t *Teller, all []moment, from time.Time) {
	isReady := first(all, from, like(`NodePool workload Ready=True`))
	t.inOrder("Cluster Autoscaler was scaled down after NodePool workload was Ready", isReady, first(all, from, like(`Deployment cluster-autoscaler replicas=0`)))
	t.inOrder("the build group was scaled down after NodePool workload was Ready", isReady, first(all, from, like(`^AWS Sawhorse-Nodegroups\S* eks UpdateNodegroupConfig .*/node-groups/build/`)))
	pinned := first(all, from, like(`Deployment metrics-server .* system-node=true`))
	t.inOrder("metrics-server was pinned after a node for it was Ready", first(all, time.Time{}, like(`Node \S+ system-node=true Ready=True`)), pinned)
	t.inOrder("metrics-server was pinned after NodePool workload was Ready", isReady, pinned)
	for _, m := range all {
		if strings.Contains(m.what, "Deployment metrics-server") && strings.HasSuffix(m.what, "=") && strings.Contains(m.what, "available= ") {
			t.fail("at %s metrics-server had no pod available", clock(m.at))
		}
	}
}

func like(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// brief leaves out what says the same about an object as the moment before.
func brief(all []moment) []moment {
	var kept []moment
	said := map[string]string{}
	for _, m := range all {
		words := strings.Fields(m.what)
		if len(words) < 3 || words[0] == "AWS" && !strings.HasPrefix(words[1], "Sawhorse-") || words[0] == "AWS" && (words[2] == "dynamodb" || words[2] == "logs" || words[2] == "states" || words[2] == "lambda" || words[2] == "xray" || words[2] == "monitoring") {
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
