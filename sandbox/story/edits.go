package story

import (
	"fmt"
	"time"
)

// HandEdits changes and deletes Sawhorse's objects by hand. A full pass restores and reports them. Objects of others
// stay as they are.
func HandEdits(t *Teller) {
	const (
		limit  = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'"
		class  = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' --ignore-not-found`
		rule   = "aws events describe-rule --name demo-karpenter --query State --output text 2>/dev/null || true"
		target = "aws events list-targets-by-rule --rule demo-karpenter --query 'Targets[].Arn' --output text"
		theirs = "kubectl get nodepool theirs " +
			"-o jsonpath='{.metadata.uid} {.metadata.generation} {.metadata.labels} {.metadata.annotations} {.spec}'"
	)
	t.Chapter("Somebody has been at it")
	t.Until("nodes of NodePools (a class in use would stay)", nodes, "", 2*time.Minute)
	t.Type(poolOf("theirs"))
	t.Until("NodePool theirs is Ready", `kubectl get nodepool theirs -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`,
		"True", time.Minute)
	untouched := t.Ask(theirs)
	t.Check("NodePool's CPU limit", limit, "100")
	t.Type(`kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"cpu":"7"}}}'`)
	t.Type("kubectl delete ec2nodeclass workload --timeout=60s")
	t.Type("aws events remove-targets --rule demo-karpenter --ids queue && aws events delete-rule --name demo-karpenter")
	t.Check("rule", rule, "")

	t.Chapter("A full pass puts it back, and says so")
	t.Check("request", fullPass, "0")
	t.Until("NodePool's CPU limit", limit, "100", time.Minute)
	t.Until("EC2NodeClass workload is Ready", class, "True", time.Minute)
	t.Until("NodePool workload is Ready", ready, "True", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("rule", rule, "ENABLED")
	t.Check("its target", target, "arn:aws:sqs:us-east-1:000000000000:demo-karpenter")
	t.Check("status", state, "Reconciled")
	t.Contains("the status tells of the limit", status, "NodePool/workload was changed by somebody else")
	t.Contains("of the class", status, "EC2NodeClass/workload created")
	t.Contains("of the rule", status, "rule demo-karpenter created")
	t.Check("NodePool theirs", theirs, untouched)
	t.Type("kubectl delete nodepool theirs")

	t.Chapter("A status that somebody deletes is written again")
	t.Type("aws ssm delete-parameter --name /sawhorse/racks/demo/status")
	repair(t)
	t.Check("status", state, "Reconciled")
}

// HandEditsInAWS does the same to Sawhorse's resources in AWS.
func HandEditsInAWS(t *Teller) {
	const (
		trust = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},` +
			`"Action":"sts:AssumeRole"},{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}'`
		roleARN  = `"$(aws iam get-role --role-name %s --query Role.Arn --output text)"`
		queueURL = `"$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl --output text)"`
		ofPods   = "aws eks list-pod-identity-associations --cluster-name demo --query 'associations[0].associationId' --output text"
	)
	of := func(role string) string { return fmt.Sprintf(roleARN, role) }
	before := []struct{ what, command string }{
		{"boundary of the controller's role",
			"aws iam get-role --role-name demo-karpenter --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text"},
		{"boundary of the nodes' role",
			"aws iam get-role --role-name demo-karpenter-nodes --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text"},
		{"trust of the nodes' role",
			"aws iam get-role --role-name demo-karpenter-nodes --query Role.AssumeRolePolicyDocument --output json"},
		{"policies of the nodes' role",
			"aws iam list-attached-role-policies --role-name demo-karpenter-nodes " +
				"--query 'sort(AttachedPolicies[].PolicyName)' --output text"},
		{"policies of the controller's role",
			"aws iam list-role-policies --role-name demo-karpenter --query 'sort(PolicyNames)' --output text"},
		{"role of the pods", "aws eks describe-pod-identity-association --cluster-name demo --association-id $(" + ofPods +
			") --query association.roleArn --output text"},
		{"retention of the queue",
			"aws sqs get-queue-attributes --attribute-names MessageRetentionPeriod --query Attributes.MessageRetentionPeriod " +
				"--output text --queue-url " + queueURL},
		{"access entry of nodepools", "aws eks describe-access-entry --cluster-name demo --principal-arn " + of(roleOf("nodepools")) +
			" --query accessEntry.kubernetesGroups --output text"},
		{"access entry of autoscaler", "aws eks describe-access-entry --cluster-name demo --principal-arn " + of(roleOf("autoscaler")) +
			" --query accessEntry.[type,kubernetesGroups] --output text"},
	}
	var was []string
	for _, one := range before {
		was = append(was, t.Ask(one.command))
	}

	t.Chapter("Somebody has been at it, in AWS")
	t.Type("aws iam delete-role-permissions-boundary --role-name demo-karpenter")
	t.Type("aws iam delete-role-permissions-boundary --role-name demo-karpenter-nodes")
	t.Type("aws iam put-role-policy --role-name demo-karpenter --policy-name theirs --policy-document '{\"Version\":\"2012-10-17\"," +
		"\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"s3:ListAllMyBuckets\",\"Resource\":\"*\"}]}'")
	t.Type("aws iam update-assume-role-policy --role-name demo-karpenter-nodes --policy-document " + trust)
	t.Type("aws iam attach-role-policy --role-name demo-karpenter-nodes --policy-arn arn:aws:iam::aws:policy/AdministratorAccess")
	t.Type("aws eks update-pod-identity-association --cluster-name demo --association-id $(" + ofPods + ") --role-arn " +
		of("demo-karpenter-nodes") + " --query association.roleArn --output text")
	t.Type("aws sqs set-queue-attributes --attributes MessageRetentionPeriod=60 --queue-url " + queueURL)
	t.Type("aws eks update-access-entry --cluster-name demo --principal-arn " + of(roleOf("nodepools")) +
		" --kubernetes-groups theirs --query accessEntry.kubernetesGroups --output text")
	t.Say("An access entry of another type serves no function, and EKS cannot change the type.")
	t.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + of(roleOf("autoscaler")))
	t.Type("aws eks create-access-entry --cluster-name demo --type EC2_LINUX --principal-arn " + of(roleOf("autoscaler")) +
		" --query accessEntry.type --output text")
	for i, one := range before {
		t.Contains(one.what, "[ '"+was[i]+`' = "$(`+one.command+`)" ] || echo changed`, "changed")
	}

	t.Chapter("A full pass puts it back, and says so")
	known(t)
	repair(t)
	t.Check("status", state, "Reconciled")
	for i, one := range before {
		t.Check(one.what, one.command, was[i])
	}
	for _, change := range []string{
		"permissions boundary of role demo-karpenter repaired", "permissions boundary of role demo-karpenter-nodes repaired",
		"trust of role demo-karpenter-nodes repaired", "policy theirs of role demo-karpenter deleted",
		"role demo-karpenter-nodes detached arn:aws:iam::aws:policy/AdministratorAccess",
		"pod identity association of service account kube-system/karpenter repaired",
		"queue demo-karpenter repaired", "access entry of function nodepools updated", "access entry of function autoscaler created",
	} {
		t.Contains("the status", status, change)
	}

	t.Chapter("An administrator without its policy says what is missing")
	controller := of(roleOf("controller"))
	t.Type("aws eks disassociate-access-policy --cluster-name demo " +
		"--policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy --principal-arn " + controller)
	t.Type("aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/high_availability --value false")
	t.Until("status", state, "Failed", time.Minute)
	t.Contains("the reason", status, "its access entry lacks AmazonEKSClusterAdminPolicy")
	repair(t)
	t.Check("status", state, "Reconciled")
	t.Contains("the status", status, "access entry of function controller associated with AmazonEKSClusterAdminPolicy")
	t.Type("aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/high_availability --value true")
	t.Type("sawhorse watch demo") // the next script expects two replicas
}
