package story

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// NodeRoles gives the VPC CNI and build nodes roles of their own. The nodes' role loses the CNI's policy once every pod of
// the VPC CNI has its own credentials, and gets it back when the VPC CNI needs it. The role of build nodes has none of the
// rack's further policies, and is removed when no node can have it any more. In an IPv6 cluster the CNI needs other rights.
func NodeRoles(s *Script) {
	const (
		agent = `kubectl apply -f - <<'EOF'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: aws-node, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: aws-node}}
  template:
    metadata: {labels: {k8s-app: aws-node}}
    spec:
      serviceAccountName: aws-node
      tolerations: [{operator: Exists}]
      terminationGracePeriodSeconds: 0
      containers: [{name: aws-node, image: amazon-k8s-cni}]
EOF`
		policy = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"
		of     = "--cluster-name demo --namespace kube-system --service-account aws-node"
		cni    = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes " +
			"--query \"contains(AttachedPolicies[].PolicyName, 'AmazonEKS_CNI_Policy')\" --output json"
	)
	s.Chapter("The VPC CNI uses the nodes' role", func() {
		s.Until("the first nodes have gone", nodes, "", 3*time.Minute)
		s.Type("kubectl -n kube-system create serviceaccount aws-node")
		s.Type(agent)
		agentsOnEveryNode(s)
		s.FullPass()
		s.Check("the nodes' role has the CNI's policy", cni, "true")
		s.Contains("doctor tells how to end it", "sawhorse doctor demo || true", "the VPC CNI has no role of its own")
	})

	s.Chapter("It gets a role of its own; its pods do not have it yet", func() {
		s.Type("aws iam create-role --role-name demo-aws-node --query Role.Arn --output text --assume-role-policy-document " +
			argument(trusting("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")))
		s.Type("aws iam attach-role-policy --role-name demo-aws-node --policy-arn " + policy)
		s.Until("the association", "aws eks create-pod-identity-association "+of+
			" --role-arn arn:aws:iam::000000000000:role/demo-aws-node --query association.serviceAccount --output text", "aws-node", time.Minute)
		s.FullPass()
		s.Check("the nodes' role has the CNI's policy", cni, "true")
	})

	s.Chapter("Every pod has credentials of its own", func() {
		s.Say("EKS's webhook may not know the association yet; then the pods are deleted once more.")
		s.Await("all new pods have credentials", func() string {
			s.Output("kubectl -n kube-system delete pods -l k8s-app=aws-node")
			return fmt.Sprint(agentsOnEveryNode(s))
		}, "true", 2*time.Minute)
		s.Equal("something is due", len(audit(s)) > 0, true)
		s.Reconciled()
		s.Check("the nodes' role has the CNI's policy", cni, "false")
		single.start(s)
		auditInOrder(s, "A node more, and its pod, change nothing.")
		s.Check("the nodes' role has the CNI's policy", cni, "false")
		single.end(s)
	})

	s.Chapter("The role is taken away", func() {
		s.Type("aws eks delete-pod-identity-association --cluster-name demo --association-id \"$(aws eks list-pod-identity-associations " + of +
			" --query 'associations[0].associationId' --output text)\" --query association.serviceAccount --output text")
		s.Equal("something is due", len(audit(s)) > 0, true)
		s.Reconciled()
		s.Check("the nodes' role has the CNI's policy", cni, "true")
		s.Type("kubectl -n kube-system delete daemonset,serviceaccount aws-node")
		s.Type("aws iam detach-role-policy --role-name demo-aws-node --policy-arn " + policy)
		s.Type("aws iam delete-role --role-name demo-aws-node")
	})
	ipv6(s, cni)
	buildRole(s)
}

// ipv6 has EKS answer as it does for a cluster with IPv6 addresses, whose CNI needs another policy. In AWS a cluster keeps the
// family that it was created with. managed tells whether the nodes' role has the CNI's managed policy.
func ipv6(s *Script, managed string) {
	const inline = "aws iam list-role-policies --role-name demo-karpenter-nodes --query \"contains(PolicyNames, 'cni-ipv6')\" --output json"
	for _, family := range []struct{ name, inline, managed string }{{"ipv6", "true", "false"}, {"ipv4", "false", "true"}} {
		s.Chapter("EKS says that the cluster's addresses are "+family.name, func() {
			s.sandbox(http.MethodPost, "ip-family?cluster=demo&family="+family.name, nil, nil)
			s.FullPass()
			s.Check("the nodes' role has the policy of IPv6", inline, family.inline)
			s.Check("the nodes' role has the CNI's managed policy", managed, family.managed)
		})
	}
}

// agentsOnEveryNode waits until a pod of the VPC CNI runs on every node, and returns whether all have credentials of their
// own.
func agentsOnEveryNode(s *Script) bool {
	const (
		pods = "kubectl -n kube-system get pods -l k8s-app=aws-node --field-selector status.phase=Running -o jsonpath="
		own  = pods + `'{.items[*].spec.containers[0].env[?(@.name=="AWS_CONTAINER_CREDENTIALS_FULL_URI")].name}'`
	)
	nodes := len(strings.Fields(s.Output("kubectl get nodes -o name")))
	s.Await("pods of the VPC CNI", func() string {
		return fmt.Sprint(len(strings.Fields(s.Output(pods + "'{.items[*].metadata.name}'"))))
	}, fmt.Sprint(nodes), time.Minute)
	return len(strings.Fields(s.Output(own))) == nodes
}

// buildRole gives build nodes a role of their own, and takes it back.
func buildRole(s *Script) {
	const (
		role     = "demo-karpenter-build-nodes"
		arn      = "arn:aws:iam::000000000000:role/sawhorse/" + role
		further  = "CloudWatchAgentServerPolicy"
		attached = " --query 'length(AttachedPolicies)'"
		class    = "kubectl get ec2nodeclass build -o jsonpath='{.spec.role}'"
		profiles = "aws iam list-instance-profiles --path-prefix /karpenter/ " +
			"--query \"length(InstanceProfiles[].Roles[?RoleName=='" + role + "'][])\""
	)
	s.Chapter("Build nodes get a role of their own", func() {
		s.Put("node_policy_arns", "arn:aws:iam::aws:policy/"+further)
		s.Reconciled(s.Put("build_node_minimal_role_enabled", "true"))
		s.Check("policies of the nodes' role", "aws iam list-attached-role-policies --role-name demo-karpenter-nodes"+attached, "5")
		s.Check("of the role of build nodes", "aws iam list-attached-role-policies --role-name "+role+attached, "4")
		s.Contains("its boundary", "aws iam get-role --role-name "+role+" --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text",
			"NodeBoundary")
		s.Check("its access entry", "aws eks describe-access-entry --cluster-name demo --principal-arn "+arn+
			" --query accessEntry.type --output text", "EC2_LINUX")
		s.Check("the pool's role", class, role)
		s.Until("NodePool build is Ready", buildReady, "True", time.Minute)
		s.Until("instance profiles with the role", profiles, "1", time.Minute)
		s.Check("output", output("karpenter_build_node_role_arn"), arn)
		builder.start(s)
		auditInOrder(s, "The audit finds the role as it should be.")
	})

	s.Chapter("The parameter is unset: the role stays while a node may have it", func() {
		s.Reconciled(s.Put("build_node_minimal_role_enabled", "unset"))
		s.Check("the pool's role", class, "demo-karpenter-nodes")
		s.Says("role " + role + " is kept until no node has it any more")
		s.Check("its policies", "aws iam list-attached-role-policies --role-name "+role+attached, "4")
		builder.end(s)
	})

	s.Chapter("Without the pool nothing has it, and it goes", func() {
		s.Until("nodes of NodePools (the pool would wait for them)", nodes, "", 3*time.Minute)
		s.Reconciled(s.Put("build_node_enabled", "false"))
		s.Until("instance profiles with the role", profiles, "0", 2*time.Minute)
		s.Say("A role that is new stays a while: IAM may not tell of its profiles yet. Each full pass looks again.")
		s.Await("the role has gone", func() string {
			s.FullPass()
			_, err := s.read("aws iam get-role --role-name " + role)
			return fmt.Sprint(err != nil)
		}, "true", 8*time.Minute)
		s.Refused("aws eks describe-access-entry --cluster-name demo --principal-arn "+arn, "ResourceNotFoundException")
		s.Check("output", output("karpenter_build_node_role_arn"), "null")
		s.Put("node_policy_arns", "unset")
		s.Reconciled(s.Put("build_node_enabled", "true"))
	})
}
