package story

import (
	"fmt"
	"strings"
	"time"
)

// Rounds turns Karpenter off and on again n times. After each time a pod gets a node. What is left after the last off
// is the same as after the first. If n is at least 3, the second time turns Karpenter on while SQS still reserves the
// queue's name.
func Rounds(t *Teller, n int) {
	t.Chapter("A node, before the first round")
	single.start(t)
	single.end(t)
	var left string
	for i := range n {
		t.Chapter(fmt.Sprintf("Round %d of %d", i+1, n))
		began, held := time.Now(), i == 1 && i < n-1
		if held {
			t.Type(hold + "60'")
			late(t, "deleted-queue", 40)
		}
		off(t)
		switch i {
		case 0:
			left = t.Ask(inventory)
			t.Say("%d things are left.", strings.Count(left, "\n")+1)
		case n - 1:
			if odd := difference(left, t.Ask(inventory)); odd != "" {
				t.fail("what is left is not what was left after the first round:\n%s", odd)
			} else {
				t.hold("what is left is what was left after the first round")
			}
		}
		if held {
			t.Type(turnOn)
			t.Contains("the pass waits for the queue's name", "sawhorse watch demo", "the queue that was deleted less than 60 s ago")
			t.Check("status", state, "Reconciled")
			t.Type(hold + "20'") // the other rounds need not wait as long
			drawn(t, "deleted-queue")
			known(t)
			t.Contains("queue", "aws sqs get-queue-url --queue-name demo-karpenter --output text", "demo-karpenter")
		} else {
			on(t)
		}
		t.Check("Helm releases", releases, "karpenter-crd karpenter")
		single.start(t)
		t.Check("the NodePool of its node", single.where(), "workload")
		single.end(t)
		t.Note("the round", time.Since(began))
	}
}

// hold sets for how many seconds SQS reserves the name of a deleted queue. On AWS it is 60.
const hold = `curl -s -X POST "$AWS_ENDPOINT_URL"'/_sandbox/queue-hold?seconds=`

// inventory lists what exists by name, one per line. It leaves out what is constantly recreated (pods, events,
// endpoints, leases) and what expires by itself (the records of passes have a time to live). The commands run one after
// the other, so that their output does not mix.
const inventory = `{
  kubectl get -A -o name deployments,daemonsets,replicasets,services,configmaps,secrets,serviceaccounts,poddisruptionbudgets,roles,` +
	`rolebindings,clusterroles,clusterrolebindings,customresourcedefinitions,validatingwebhookconfigurations,` +
	`mutatingwebhookconfigurations,nodepools,nodeclaims,ec2nodeclasses
  kubectl get nodes -o jsonpath='{range .items[*]}node of group {.metadata.labels.eks\.amazonaws\.com/nodegroup}{"\n"}{end}'
  aws iam list-roles --query 'Roles[].RoleName' --output text
  aws iam list-policies --scope Local --query 'Policies[].PolicyName' --output text
  aws iam list-instance-profiles --query 'InstanceProfiles[].InstanceProfileName' --output text
  aws eks list-access-entries --cluster-name demo --query accessEntries --output text
  aws eks list-pod-identity-associations --cluster-name demo --query 'associations[].associationId' --output text
  aws sqs list-queues --query QueueUrls --output text
  aws events list-rules --query 'Rules[].Name' --output text
  aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'Parameters[].Name' --output text
  aws ec2 describe-launch-templates --query 'LaunchTemplates[].LaunchTemplateName' --output text
  aws ec2 describe-tags --filters Name=key,Values=karpenter.sh/discovery --query 'Tags[].ResourceId' --output text
  aws dynamodb scan --table-name ` + table +
	` --filter-expression 'pk IN (:rack, :plan)' --expression-attribute-values '{":rack":{"S":"rack#demo"},":plan":{"S":"plan#demo"}}' ` +
	`--query 'Items[?!ttl].sk.S' --output text
} 2>&1 | tr '\t' '\n' | sort`

// difference returns the lines that only one of two inventories has.
func difference(before, after string) string {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[strings.TrimSpace(line)]--
	}
	for line := range strings.Lines(after) {
		count[strings.TrimSpace(line)]++
	}
	var odd []string
	for line, n := range count {
		switch {
		case n > 0:
			odd = append(odd, "+ "+line)
		case n < 0:
			odd = append(odd, "- "+line)
		}
	}
	return strings.Join(odd, "\n")
}
