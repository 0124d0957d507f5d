package story

import "time"

// NodeRoles gives the VPC CNI and build nodes roles of their own. The nodes' role loses the CNI's policy once every pod of
// the VPC CNI has its own credentials, and gets it back when the VPC CNI needs it. The role of build nodes has none of the
// rack's further policies, and is removed when no node can have it any more.
func NodeRoles(t *Teller) {
	const (
		agent = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"aws-node","namespace":"kube-system"},"spec":{` +
			`"selector":{"matchLabels":{"k8s-app":"aws-node"}},"template":{"metadata":{"labels":{"k8s-app":"aws-node"}},"spec":{` +
			`"serviceAccountName":"aws-node","tolerations":[{"operator":"Exists"}],"terminationGracePeriodSeconds":0,` +
			`"containers":[{"name":"aws-node","image":"amazon-k8s-cni"}]}}}}`
		trust = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},` +
			`"Action":["sts:AssumeRole","sts:TagSession"]}]}'`
		policy = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"
		of     = "--cluster-name demo --namespace kube-system --service-account aws-node"
		has    = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'AttachedPolicies[].PolicyName' --output text"
		cni    = has + " | grep -c AmazonEKS_CNI_Policy || true"
		pods   = "kubectl -n kube-system get pods -l k8s-app=aws-node --no-headers"
		with   = "kubectl -n kube-system get pods -l k8s-app=aws-node -o json | grep -c '\"AWS_CONTAINER_CREDENTIALS_FULL_URI\"' || true"
		again  = "kubectl -n kube-system delete pods -l k8s-app=aws-node > /dev/null; sleep 3; "
	)
	t.Chapter("The VPC CNI uses the nodes' role")
	t.Type("kubectl -n kube-system create serviceaccount aws-node")
	t.Type("echo '" + agent + "' | kubectl apply -f -")
	count := t.Ask("kubectl get nodes --no-headers | wc -l")
	t.Until("its pods", pods+" | grep -c Running || true", count, time.Minute)
	repair(t)
	t.Check("the CNI's policy on the nodes' role", cni, "1")
	t.Contains("doctor tells how to end it", "sawhorse doctor demo || true", "the VPC CNI has no role of its own")

	t.Chapter("It gets a role of its own; its pods do not have it yet")
	t.Type("aws iam create-role --role-name demo-aws-node --query Role.Arn --output text --assume-role-policy-document " + trust)
	t.Type("aws iam attach-role-policy --role-name demo-aws-node --policy-arn " + policy)
	t.Until("the association", "aws eks create-pod-identity-association "+of+
		" --role-arn arn:aws:iam::000000000000:role/demo-aws-node --query association.serviceAccount --output text", "aws-node", time.Minute)
	repair(t)
	t.Check("the CNI's policy on the nodes' role", cni, "1")

	t.Chapter("Every pod has credentials of its own")
	t.Until("pods with credentials", again+with, count, 2*time.Minute)
	tick(t)
	t.Until("the CNI's policy on the nodes' role", cni, "0", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	single.start(t)
	auditInOrder(t, "A node more, and its pod, change nothing.")
	t.Check("the CNI's policy on the nodes' role", cni, "0")
	single.end(t)

	t.Chapter("The role is taken away")
	t.Type("aws eks delete-pod-identity-association --cluster-name demo --association-id \"$(aws eks list-pod-identity-associations " + of +
		" --query 'associations[0].associationId' --output text)\" --query association.serviceAccount --output text")
	tick(t)
	t.Until("the CNI's policy on the nodes' role", cni, "1", time.Minute)
	t.Type("kubectl -n kube-system delete daemonset,serviceaccount aws-node")
	t.Type("aws iam detach-role-policy --role-name demo-aws-node --policy-arn " + policy + " && aws iam delete-role --role-name demo-aws-node")
	t.Until("the pass has ended", running, "0", time.Minute)

	buildRole(t)
}

// buildRole gives build nodes a role of their own, and takes it back.
func buildRole(t *Teller) {
	const (
		set      = "aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/"
		role     = "demo-karpenter-build-nodes"
		arn      = "arn:aws:iam::000000000000:role/sawhorse/" + role
		further  = "CloudWatchAgentServerPolicy"
		attached = " --query 'AttachedPolicies[].PolicyName' --output text | tr '\\t' '\\n' | grep -c -E '^(Amazon.*|" + further + ")$'"
		class    = "kubectl get ec2nodeclass build -o jsonpath='{.spec.role}'"
		profiles = "aws iam list-instance-profiles --path-prefix /karpenter/ --query 'InstanceProfiles[].Roles[].RoleName' --output text " +
			"| tr '\\t' '\\n' | grep -c " + role + " || true"
		output = "aws ssm get-parameter --name /sawhorse/racks/demo/outputs/karpenter_build_node_role_arn --query Parameter.Value --output text"
	)
	t.Chapter("Build nodes get a role of their own")
	t.Type(set + "node_policy_arns --value arn:aws:iam::aws:policy/" + further)
	t.Type(set + "build_node_minimal_role_enabled --value true")
	t.Contains("the pass makes it", "sawhorse watch demo", "Reconciled")
	t.Check("policies of the nodes' role", "aws iam list-attached-role-policies --role-name demo-karpenter-nodes"+attached, "5")
	t.Check("of the role of build nodes", "aws iam list-attached-role-policies --role-name "+role+attached, "4")
	t.Contains("its boundary", "aws iam get-role --role-name "+role+" --query Role.PermissionsBoundary.PermissionsBoundaryArn --output text",
		"NodeBoundary")
	t.Check("its access entry", "aws eks describe-access-entry --cluster-name demo --principal-arn "+arn+
		" --query accessEntry.type --output text", "EC2_LINUX")
	t.Check("the pool's role", class, role)
	t.Until("NodePool build is Ready", buildReady, "True", time.Minute)
	t.Until("instance profiles with the role", profiles, "1", time.Minute)
	t.Check("output", output, arn)
	builder := app{
		name: "builder", replicas: 1, cpu: "50m",
		spec: "nodeSelector: {convox-build: \"true\"}\n      tolerations: [{key: dedicated, value: build, effect: NoSchedule}]",
	}
	builder.start(t)
	auditInOrder(t, "The audit finds the role as it should be.")

	t.Chapter("The parameter is unset: the role stays while a node may have it")
	t.Type(set + "build_node_minimal_role_enabled --value unset")
	t.Contains("the pass changes the pool", "sawhorse watch demo", "Reconciled")
	t.Check("the pool's role", class, "demo-karpenter-nodes")
	t.Contains("the status says so", status, "role "+role+" is kept until no node has it any more")
	t.Check("its policies", "aws iam list-attached-role-policies --role-name "+role+attached, "4")
	builder.end(t)

	t.Chapter("Without the pool nothing has it, and it goes")
	t.Type(set + "build_node_enabled --value false")
	t.Contains("the pass removes the pool", "sawhorse watch demo", "Reconciled")
	t.Until("instance profiles with the role", profiles, "0", 2*time.Minute)
	t.Say("A role that is new stays a while: IAM may not tell of its profiles yet. The next audit looks again.")
	t.Until("the role has gone", fullPass+" > /dev/null; sleep 5; aws iam get-role --role-name "+role+" 2>&1 | grep -c NoSuchEntity || true",
		"1", 7*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Refused("aws eks describe-access-entry --cluster-name demo --principal-arn "+arn, "ResourceNotFoundException")
	t.Until("output", output+" 2>&1 | grep -c ParameterNotFound || true", "1", time.Minute)
	t.Type(set + "node_policy_arns --value unset")
	t.Type(set + "build_node_enabled --value true")
	t.Contains("as before", "sawhorse watch demo", "Reconciled")
}
