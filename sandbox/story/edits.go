package story

import (
	"fmt"
	"time"
)

// HandEdits changes and deletes Sawhorse's objects by hand. A full pass restores and reports them. Objects of others
// stay as they are.
func HandEdits(s *Script) {
	const (
		class  = classReady + " --ignore-not-found"
		rule   = "aws events describe-rule --name demo-karpenter --query State --output text 2>/dev/null || true"
		target = "aws events list-targets-by-rule --rule demo-karpenter --query 'Targets[].Arn' --output text"
		theirs = "kubectl get nodepool theirs " +
			"-o jsonpath='{.metadata.uid} {.metadata.generation} {.metadata.labels} {.metadata.annotations} {.spec}'"
	)
	untouched := ""
	s.Chapter("Objects are changed and deleted in the cluster", func() {
		s.Until("nodes of NodePools (a class in use would stay)", nodes, "", 2*time.Minute)
		s.Type(poolOf("theirs"))
		s.Until("NodePool theirs is Ready", `kubectl get nodepool theirs -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`,
			"True", time.Minute)
		untouched = s.Output(theirs)
		s.Check("NodePool's CPU limit", cpuLimit, "100")
		s.Type(`kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"cpu":"7"}}}'`)
		s.Type("kubectl delete ec2nodeclass workload --timeout=60s")
		s.Type("aws events remove-targets --rule demo-karpenter --ids queue && aws events delete-rule --name demo-karpenter")
		s.Check("rule", rule, "")
	})

	s.Chapter("A full pass puts it back, and says so", func() {
		s.Reconciled(s.Request("full"))
		s.Check("NodePool's CPU limit", cpuLimit, "100")
		s.Check("EC2NodeClass workload is Ready", class, "True")
		s.Check("NodePool workload is Ready", ready, "True")
		s.Check("rule", rule, "ENABLED")
		s.Check("its target", target, "arn:aws:sqs:us-east-1:000000000000:demo-karpenter")
		s.Says("NodePool/workload was changed by somebody else", "EC2NodeClass/workload created", "rule demo-karpenter created")
		s.Check("NodePool theirs", theirs, untouched)
		s.Type("kubectl delete nodepool theirs")
	})

	s.Chapter("A status that somebody deletes is written again", func() {
		s.Type("aws ssm delete-parameter --name /sawhorse/racks/demo/status")
		s.FullPass()
		s.State("Reconciled")
	})
}

// HandEditsInAWS does the same to Sawhorse's resources in AWS.
func HandEditsInAWS(s *Script) {
	const (
		roleARN = `"$(aws iam get-role --role-name %s --query Role.Arn --output text)"`
		ofPods  = "aws eks list-pod-identity-associations --cluster-name demo --query 'associations[0].associationId' --output text"
	)
	nodepools, autoscaler := s.role("nodepools"), s.role("autoscaler")
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
		{"access entry of nodepools", "aws eks describe-access-entry --cluster-name demo --principal-arn " + of(nodepools) +
			" --query accessEntry.kubernetesGroups --output text"},
		{"access entry of autoscaler", "aws eks describe-access-entry --cluster-name demo --principal-arn " + of(autoscaler) +
			" --query accessEntry.[type,kubernetesGroups] --output text"},
	}
	var was []string
	for _, one := range before {
		was = append(was, s.Output(one.command))
	}

	s.Chapter("Resources are changed and deleted in AWS", func() {
		s.Type("aws iam delete-role-permissions-boundary --role-name demo-karpenter")
		s.Type("aws iam delete-role-permissions-boundary --role-name demo-karpenter-nodes")
		s.Type("aws iam put-role-policy --role-name demo-karpenter --policy-name theirs --policy-document " + argument(denying("s3:*")))
		s.Type("aws iam update-assume-role-policy --role-name demo-karpenter-nodes --policy-document " +
			argument(trusting("lambda.amazonaws.com", "sts:AssumeRole")))
		s.Type("aws iam attach-role-policy --role-name demo-karpenter-nodes --policy-arn arn:aws:iam::aws:policy/AdministratorAccess")
		s.Type("aws eks update-pod-identity-association --cluster-name demo --association-id $(" + ofPods + ") --role-arn " +
			of("demo-karpenter-nodes") + " --query association.roleArn --output text")
		s.Type("aws sqs set-queue-attributes --attributes MessageRetentionPeriod=60 --queue-url " + queueURL)
		s.Type("aws eks update-access-entry --cluster-name demo --principal-arn " + of(nodepools) +
			" --kubernetes-groups theirs --query accessEntry.kubernetesGroups --output text")
		s.Say("An access entry of another type serves no function, and EKS cannot change the type.")
		s.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + of(autoscaler))
		s.Type("aws eks create-access-entry --cluster-name demo --type EC2_LINUX --principal-arn " + of(autoscaler) +
			" --query accessEntry.type --output text")
		for i, one := range before {
			s.Equal(one.what+" is changed", s.Output(one.command) != was[i], true)
		}
	})

	s.Chapter("A full pass puts it back, and says so", func() {
		lagsEnd(s)
		s.FullPass()
		s.State("Reconciled")
		for i, one := range before {
			s.Check(one.what, one.command, was[i])
		}
		for _, change := range []string{
			"permissions boundary of role demo-karpenter repaired", "permissions boundary of role demo-karpenter-nodes repaired",
			"trust of role demo-karpenter-nodes repaired", "policy theirs of role demo-karpenter deleted",
			"role demo-karpenter-nodes detached arn:aws:iam::aws:policy/AdministratorAccess",
			"pod identity association of service account kube-system/karpenter repaired",
			"queue demo-karpenter repaired", "access entry of function nodepools updated", "access entry of function autoscaler created",
		} {
			s.Says(change)
		}
	})

	s.Chapter("An administrator without its policy says what is missing", func() {
		controller := of(s.role("controller"))
		s.Type("aws eks disassociate-access-policy --cluster-name demo " +
			"--policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy --principal-arn " + controller)
		s.Put("high_availability", "false")
		s.Failed("its access entry lacks AmazonEKSClusterAdminPolicy")
		s.FullPass()
		s.State("Reconciled")
		s.Says("access entry of function controller associated with AmazonEKSClusterAdminPolicy")
		s.Unset("high_availability")
		s.Reconciled()
	})
}
