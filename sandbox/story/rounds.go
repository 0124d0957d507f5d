package story

import (
	"fmt"
	"net/http"
	"strings"
)

// Rounds turns Karpenter off and on again n times. After each time a pod gets a node. What is left after the last off
// is the same as after the first. If n is at least 3, the second time turns Karpenter on while SQS still reserves the
// queue's name.
func Rounds(s *Script, n int) {
	s.Chapter("A node, before the first round", func() {
		single.start(s)
		single.end(s)
	})
	var left []string
	for i := range n {
		s.Chapter(fmt.Sprintf("Round %d of %d", i+1, n), func() {
			held := i == 1 && i < n-1
			if held {
				holdQueueNames(s, 60)
				setLag(s, "deleted-queue", 55)
			}
			off(s)
			switch i {
			case 0:
				left = things(s)
				s.Say("%d things are left.", len(left))
			case n - 1:
				s.Equal("what is left and was not after the first round, or the reverse", difference(left, things(s)), "[]")
			}
			if held {
				s.Put("karpenter_enabled", "true")
				s.Contains("the pass waits for the queue's name", "sawhorse watch demo", "the queue that was deleted less than 60 s ago")
				s.Reconciled()
				holdQueueNames(s, 20) // the other rounds need not wait as long
				drawLag(s, "deleted-queue")
				lagsEnd(s)
				s.Contains("queue", "aws sqs get-queue-url --queue-name demo-karpenter --output text", "demo-karpenter")
			} else {
				on(s)
			}
			s.Check("who manages Karpenter's Deployment", managed, "Sawhorse")
			single.start(s)
			s.Check("the NodePool of its node", single.where(), "workload")
			single.end(s)
		})
	}
}

// holdQueueNames sets for how many seconds SQS reserves the name of a deleted queue. On AWS it is 60.
func holdQueueNames(s *Script, seconds int) {
	s.sandbox(http.MethodPost, fmt.Sprintf("queue-hold?seconds=%d", seconds), nil, nil)
}

// things returns the inventory, one word a thing.
func things(s *Script) []string { return strings.Fields(s.Output(inventory)) }

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
} 2>&1`

// difference returns what only one of two inventories has.
func difference(before, after []string) (odd []string) {
	count := map[string]int{}
	for _, thing := range before {
		count[thing]--
	}
	for _, thing := range after {
		count[thing]++
	}
	for thing, n := range count {
		if n != 0 {
			odd = append(odd, fmt.Sprintf("%+d %s", n, thing))
		}
	}
	return odd
}
