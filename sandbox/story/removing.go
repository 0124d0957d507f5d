package story

import (
	"path"
	"strings"
)

const (
	functions = "aws lambda list-functions --query 'length(Functions)' --output text"
	tables    = "aws dynamodb list-tables --query TableNames --output text"
	resources = "aws cloudformation list-stack-resources --stack-name Sawhorse --query "
	// The permissions boundaries that the stack has, and all that there are.
	stackBoundaries = resources + `"sort(StackResourceSummaries[?contains(LogicalResourceId, 'Boundary')].PhysicalResourceId)" --output json`
	boundaries      = `aws iam list-policies --scope Local --query "sort(Policies[?contains(PolicyName, 'Boundary')].Arn)" --output json`
	// boundary prints that of the controller's role.
	boundary = "aws iam get-role --role-name demo-karpenter --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text"
	entries  = "aws eks list-access-entries --cluster-name demo --query 'accessEntries[?contains(@, `:role/Sawhorse-`)]' --output json"
	people   = " --role-name platform-team --policy-arn arn:aws:iam::000000000000:policy/SawhorseOperator-us-east-1"
)

// ofTheStack lists everything in the account and the cluster that has a name of the stack.
const ofTheStack = `{
  aws cloudformation list-stacks --query 'StackSummaries[?StackStatus!=` + "`DELETE_COMPLETE`" + `].StackName' --output text
  aws lambda list-functions --query 'Functions[].FunctionName' --output text
  aws logs describe-log-groups --query 'logGroups[].logGroupName' --output text
  aws stepfunctions list-state-machines --query 'stateMachines[].name' --output text
  aws iam list-roles --query 'Roles[].RoleName' --output text
  aws iam list-policies --scope Local --query 'Policies[].PolicyName' --output text
  aws sqs list-queues --query QueueUrls --output text
  aws events list-event-buses --query 'EventBuses[].Name' --output text
  aws events list-rules --query 'Rules[].Name' --output text
  aws scheduler list-schedules --query 'Schedules[].Name' --output text
  aws cloudwatch describe-alarms --query 'MetricAlarms[].AlarmName' --output text
  aws cloudwatch list-dashboards --query 'DashboardEntries[].DashboardName' --output text
  aws dynamodb list-tables --query TableNames --output text
  aws ssm get-parameters-by-path --path /sawhorse --recursive --query 'Parameters[].Name' --output text
  aws eks list-access-entries --cluster-name demo --query accessEntries --output text
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o name
} 2>&1 | tr '\t' '\n' | grep -i sawhorse | sort | paste -sd' '`

// Removing removes the stack while Karpenter is on, and deploys it again. It then removes
// everything, as docs/deploy.md describes.
func Removing(s *Script) {
	var kept, limit string // the table, and the boundary of Karpenter's role
	var both []string      // the boundaries
	var former []string    // the access entries of functions
	s.Chapter("The stack goes while Karpenter is on", func() {
		stack(s, "deploy --require-approval never -c removal=retain")
		kept, both, former = s.table(), JSON[[]string](s, stackBoundaries), JSON[[]string](s, entries)
		stack(s, "destroy --force")
		s.Refused("aws cloudformation describe-stacks --stack-name Sawhorse", "does not exist")
		s.Check("functions", functions, "0")
		s.Check("the table stays", tables, kept)
		s.Equal("the boundaries too", JSON[[]string](s, boundaries), both)
		limit = s.Output(boundary)
		s.Contains("and one limits Karpenter's role", boundaries, limit)
		s.Refused("aws iam delete-policy --policy-arn "+limit, "DeleteConflict")
	})

	s.Chapter("Karpenter goes on", func() {
		s.Type(put + "karpenter_cpu_limit --value 130 --type String")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
		s.Lacks("nobody reads parameters: NodePool's CPU limit", cpuLimit, "130")
	})

	s.Chapter("Deployed again, with the table", func() {
		stack(s, "deploy --require-approval never -c removal=retain -c table="+kept)
		s.Reconciled(s.Request("full"))
		s.Check("NodePool's CPU limit", cpuLimit, "130")
		s.Lacks("the boundary of Karpenter's role is a new one", boundary, limit)
		deleteBoundaries(s, both)
		deleteFormerEntries(s)
		s.Equal("access entries of functions", len(JSON[[]string](s, entries)), len(former))
		single.start(s)
		single.end(s)
		off(s)
		s.Say("The table has what was there before Karpenter.")
		withoutKarpenter(s)
	})
	removed(s, kept)
}

// removed removes everything as docs/deploy.md describes, with Karpenter off. kept is the table of the stack, which an
// earlier deployment left behind.
func removed(s *Script, kept string) {
	s.Chapter("Removed for good", func() {
		s.Type("aws iam create-role --role-name platform-team --query Role.Arn --assume-role-policy-document " +
			argument(trusting("ec2.amazonaws.com", "sts:AssumeRole")))
		s.Type("aws iam attach-role-policy" + people)
		deleteParameters(s)
		s.Served()
		s.Check("what is in Parameter Store",
			"aws ssm get-parameters-by-path --path /sawhorse --recursive --query 'length(Parameters)' --output text", "0")
		s.Type("aws iam detach-role-policy" + people)
		both := JSON[[]string](s, stackBoundaries)
		stack(s, "destroy --force")
		left := []string{}
		for _, arn := range both {
			left = append(left, path.Base(arn))
		}
		s.Check("what is left of the stack: its boundaries and the table", ofTheStack, strings.Join(append(left, kept), " "))
		s.Refused("aws dynamodb delete-table --table-name "+kept, "deletion protection")
		s.Type("aws dynamodb update-table --no-deletion-protection-enabled --query Table.TableStatus --table-name " + kept)
		s.Type("aws dynamodb delete-table --query TableDescription.TableStatus --table-name " + kept)
		deleteBoundaries(s, both)
		s.Check("what is left of the stack", ofTheStack, "")
		s.Type("aws iam delete-role --role-name platform-team")
	})
}

// deleteFormerEntries deletes the access entries of functions that no longer exist.
func deleteFormerEntries(s *Script) {
	for _, entry := range JSON[[]string](s, entries) {
		if _, err := s.read("aws iam get-role --role-name " + path.Base(entry)); err != nil {
			s.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + entry)
		}
	}
}

// deleteBoundaries deletes permissions boundaries that no role uses any more, including the versions that upgrades left
// behind.
func deleteBoundaries(s *Script, arns []string) {
	for _, arn := range arns {
		former := "aws iam list-policy-versions --query 'Versions[?!IsDefaultVersion].VersionId' --policy-arn " + arn
		for _, version := range JSON[[]string](s, former) {
			s.Type("aws iam delete-policy-version --version-id " + version + " --policy-arn " + arn)
		}
		s.Type("aws iam delete-policy --policy-arn " + arn)
	}
}
