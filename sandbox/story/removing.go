package story

import (
	"strings"
	"time"
)

const (
	functions = "aws lambda list-functions --query 'length(Functions)' --output text"
	tables    = "aws dynamodb list-tables --query TableNames --output text"
	resources = "aws cloudformation describe-stack-resources --stack-name Sawhorse --query "
	stacks    = resources + `"sort(StackResources[?contains(LogicalResourceId, 'Boundary')].PhysicalResourceId)" --output text`
	limits    = `aws iam list-policies --scope Local --query "sort(Policies[?contains(PolicyName, 'Boundary')].Arn)" --output text`
	bearing   = "aws iam get-role --role-name demo-karpenter --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text"
	entries   = "aws eks list-access-entries --cluster-name demo --query 'accessEntries[?contains(@, `:role/Sawhorse-`)]' --output text"
	people    = " --role-name platform-team --policy-arn arn:aws:iam::000000000000:policy/SawhorseOperator-us-east-1"
	trusting  = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},` +
		`"Action":"sts:AssumeRole"}]}'`
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
func Removing(t *Teller) {
	before := asBefore(t)
	t.Chapter("The stack goes while Karpenter is on")
	stack(t, "deploy --require-approval never -c removal=retain")
	kept, both := t.Ask("echo "+table), t.Ask(stacks)
	stack(t, "destroy --force")
	t.Refused("aws cloudformation describe-stacks --stack-name Sawhorse", "does not exist")
	t.Check("functions", functions, "0")
	t.Check("the table stays", tables, kept)
	t.Check("the boundaries too", limits, both)
	limit := t.Ask(bearing)
	t.Contains("and one limits Karpenter's role", "echo '"+both+"'", limit)
	t.Refused("aws iam delete-policy --policy-arn "+limit, "DeleteConflict")

	t.Chapter("Karpenter goes on")
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)
	t.Type(put + "karpenter_cpu_limit --value 130 --type String")
	t.wait(3 * time.Second)
	t.Check("nobody reads parameters: NodePool's CPU limit is not", cpuLimit+" | grep -cx 130 || true", "0")

	t.Chapter("Deployed again, with the table")
	stack(t, "deploy --require-approval never -c removal=retain -c table="+kept)
	t.Check("request", fullPass, "0")
	t.Until("NodePool's CPU limit", cpuLimit, "130", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("Karpenter's role has the new boundary", "[ \"$("+bearing+")\" = "+limit+" ] || echo yes", "yes")
	forgetBoundaries(t, both)
	forgetFunctions(t)
	t.Check("access entries of functions", entries+" | wc -w", "8")
	single.start(t)
	single.end(t)
	off(t)
	t.Say("The table knew what was there before Karpenter.")
	withoutKarpenter(t, before)
	removed(t, kept)
}

// removed removes everything as docs/deploy.md describes, with Karpenter off. kept is the table of the stack, which an
// earlier deployment left behind.
func removed(t *Teller, kept string) {
	t.Chapter("Removed for good")
	t.Type("aws iam create-role --role-name platform-team --assume-role-policy-document " + trusting + " --query Role.Arn")
	t.Type("aws iam attach-role-policy" + people)
	t.Type("aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query 'Parameters[].Name' --output text | xargs " +
		"-n 10 aws ssm delete-parameters --names > /dev/null")
	t.Until("what is in Parameter Store",
		"aws ssm get-parameters-by-path --path /sawhorse --recursive --query 'length(Parameters)' --output text", "0", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type("aws iam detach-role-policy" + people)
	both := t.Ask(stacks)
	stack(t, "destroy --force")
	t.Check("what is left of the stack: its boundaries and the table", ofTheStack, policies(both)+" "+kept)
	t.Refused("aws dynamodb delete-table --table-name "+kept, "deletion protection")
	t.Type("aws dynamodb update-table --no-deletion-protection-enabled --table-name " + kept + " > /dev/null")
	t.Type("aws dynamodb delete-table --table-name " + kept + " > /dev/null")
	forgetBoundaries(t, both)
	t.Check("what is left of the stack", ofTheStack, "")
	t.Type("aws iam delete-role --role-name platform-team")
}

// forgetFunctions deletes the access entries of functions that no longer exist.
func forgetFunctions(t *Teller) {
	t.Type("for entry in $(" + entries +
		`); do aws iam get-role --role-name "${entry##*/}" > /dev/null 2>&1 || aws eks delete-access-entry --cluster-name demo ` +
		`--principal-arn "$entry"; done`)
}

// forgetBoundaries deletes permissions boundaries that no role uses any more, including the versions
// that upgrades left behind.
func forgetBoundaries(t *Teller, arns string) {
	for _, arn := range strings.Fields(arns) {
		t.Type("for version in $(aws iam list-policy-versions --policy-arn " + arn +
			" --query 'Versions[?!IsDefaultVersion].VersionId' --output text); do aws iam delete-policy-version --policy-arn " + arn +
			` --version-id "$version"; done`)
		t.Type("aws iam delete-policy --policy-arn " + arn)
	}
}

// policies returns the names in policies' ARNs.
func policies(arns string) string {
	var all []string
	for _, arn := range strings.Fields(arns) {
		all = append(all, arn[strings.LastIndex(arn, "/")+1:])
	}
	return strings.Join(all, " ")
}
