package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// lookAtNodes has the function rollout look at the nodes, as its schedule does every five minutes.
func lookAtNodes(s *Script) {
	s.Output("aws lambda invoke --function-name Sawhorse-rollout:live --payload '{}' /dev/stdout --query StatusCode")
}

// pool returns what the status has of a pool: nodes, ready, outdated, and retiring and rotating ones if there are any.
func (s Status) pool(name string) string {
	for _, p := range s.Pools {
		if p.Pool == name {
			text := fmt.Sprintf("%d nodes, ready %t, %d outdated", p.Nodes, p.Ready, p.Outdated)
			if p.Retiring > 0 {
				text += fmt.Sprintf(", %d retiring", p.Retiring)
			}
			if p.Rotating > 0 {
				text += fmt.Sprintf(", %d rotating", p.Rotating)
			}
			return text
		}
	}
	return ""
}

// Rollout changes a pool so that Karpenter replaces its node, and follows that to its end. Then a pool stops being Ready.
func Rollout(s *Script) {
	const selector = `kubectl patch ec2nodeclass workload --type merge ` +
		`-p '{"spec":{"subnetSelectorTerms":[{"tags":{"karpenter.sh/discovery":"nowhere"}}]}}'`
	began := time.Now()
	rollouts := subscribe(s, "rollouts", []string{"Rack Rolled Out"})
	defer rollouts.end(s)
	s.Chapter("A node, and nothing that may be disrupted", func() {
		s.Until("the first nodes have gone", nodes, "", 3*time.Minute)
		// The new node may cost more than the old one, and Karpenter would soon replace it by a cheaper one.
		s.Reconciled(s.Change(map[string]string{"karpenter_disruption_budget_nodes": "0", "karpenter_consolidate_after": "1h"}))
		single.start(s)
	})

	s.Chapter("A change makes the node outdated", func() {
		s.Reconciled(s.Put("karpenter_node_labels", "team=web"))
		s.Equal("the rollout has ended", s.Status().Rollout.Ended, "")
		s.Await("Karpenter finds the node drifted", func() string { return drifted(s) }, "true", time.Minute)
		lookAtNodes(s)
		s.Equal("pool workload", s.Status().pool("workload"), "1 nodes, ready true, 1 outdated")
		s.State("Reconciled")
		s.Equal("the rollout has ended", s.Status().Rollout.Ended, "")
		s.Contains("sawhorse status", "sawhorse status demo", "pool     workload  1 node, 1 outdated since 20")
	})

	s.Chapter("Karpenter replaces it, and an event tells of the end", func() {
		for found := true; found; {
			_, found = rollouts.poll(s, 0) // of earlier changes
		}
		s.Reconciled(s.Change(nil, "karpenter_disruption_budget_nodes"))
		s.Await("drifted nodes", func() string { return drifted(s) }, "false", 3*time.Minute)
		// The nodes are judged when the pass is a minute old.
		s.Await("the rollout has ended", func() string {
			lookAtNodes(s)
			status := s.Status()
			return fmt.Sprint(status.Rollout.Ended != "", " ", status.pool("workload"))
		}, "true 1 nodes, ready true, 0 outdated", 3*time.Minute)
		event := rollouts.next(s)
		s.Equal("the event's pools", event.Pools, "[{build 0} {workload 1}]")
		s.Equal("rack and duration", fmt.Sprint(event.Rack, " ", event.DurationSeconds > 0), "demo true")
		s.Contains("watch --nodes", "sawhorse watch demo --nodes", "the nodes follow generation")
		lookAtNodes(s)
		_, again := rollouts.poll(s, 0)
		s.Equal("a second event", again, false)
	})

	s.Chapter("A pool stops being Ready", func() {
		s.Type(selector)
		s.Until("Karpenter finds no subnets: EC2NodeClass workload is Ready", classReady, "False", time.Minute)
		lookAtNodes(s)
		s.State("Reconciled") // for a minute it is not reported
		s.await("state", func() (string, string) { lookAtNodes(s); return s.state() }, "Degraded", 2*time.Minute)
		s.Says("SubnetsReady=False")
		s.Refused("sawhorse status demo", "rack demo is Degraded")
		s.Await("the metric of the alarm", func() string { return fmt.Sprint(degradedRacks(s, began)) }, "true", 3*time.Minute)
		s.Say("A full pass puts the class back and waits until it is Ready.")
		s.Reconciled(s.Request("full"))
	})

	s.Chapter("Back to the defaults", func() {
		single.end(s)
		s.Reconciled(s.Change(nil, "karpenter_disruption_budget_nodes", "karpenter_consolidate_after", "karpenter_node_labels"))
		s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	})
}

// drifted reports whether a node of the pool workload is Drifted.
func drifted(s *Script) string {
	for _, claim := range nodeClaims(s, "-l karpenter.sh/nodepool=workload").Items {
		if claim.drifted() != "" {
			return "true"
		}
	}
	return "false"
}

// degradedRacks reports whether the function rollout has logged the metric of a degraded rack since a time.
func degradedRacks(s *Script, since time.Time) bool {
	lines, err := functionlog.Since(s.ctx, s.env, "rollout", since)
	if err != nil {
		s.fail("%v", err)
	}
	for _, line := range lines {
		if strings.Contains(line.Text, `"DegradedRacks":1`) {
			return true
		}
	}
	return false
}
