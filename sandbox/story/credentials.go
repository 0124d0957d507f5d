package story

import "time"

// Credentials turns Karpenter on without EKS Pod Identity's agent. This is rejected while the cluster's OIDC provider
// is missing too, and uses that provider (IRSA) once it exists.
func Credentials(s *Script) {
	const (
		agent    = "--cluster-name demo --addon-name eks-pod-identity-agent --query addon.status --output text"
		issuer   = "$(aws eks describe-cluster --name demo --query cluster.identity.oidc.issuer --output text)"
		provider = "aws iam list-open-id-connect-providers --query 'OpenIDConnectProviderList[].Arn' --output text"
		annotate = `kubectl -n kube-system get serviceaccount karpenter -o jsonpath='{.metadata.annotations.eks\.amazonaws\.com/role-arn}'`
	)
	s.Chapter("Neither Pod Identity nor an OIDC provider", func() {
		s.Type("aws eks delete-addon " + agent)
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Rejected("create-addon --cluster-name demo --addon-name eks-pod-identity-agent")
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	})

	s.Chapter("A provider that does not know STS", func() {
		s.Type("aws iam create-open-id-connect-provider --url " + issuer)
		s.Request("full")
		s.Rejected("add-client-id-to-open-id-connect-provider --client-id sts.amazonaws.com")
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	})

	s.Chapter("With the provider", func() {
		s.Type("aws iam add-client-id-to-open-id-connect-provider --client-id sts.amazonaws.com --open-id-connect-provider-arn $(" +
			provider + ")")
		on(s)
		s.Contains("the service account names the role", annotate, ":role/sawhorse/demo-karpenter")
		s.Check("pod identity associations", podIdentities, "0")
		auditInOrder(s, "The schedule's audit reads the provider, too.")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
	})

	s.Chapter("The agent comes back: what was chosen is kept until Karpenter is off", func() {
		s.Type("aws eks create-addon " + agent)
		s.FullPass()
		s.Contains("the service account names the role", annotate, ":role/sawhorse/demo-karpenter")
		off(s)
		withoutKarpenter(s)
		s.Type("aws iam delete-open-id-connect-provider --open-id-connect-provider-arn $(" + provider + ")")
		on(s)
		s.Check("pod identity associations", podIdentities, "1")
	})
}

// AccessModeAPI turns Karpenter on in a cluster whose access mode is API, without aws-auth. EKS cannot
// change that mode back.
func AccessModeAPI(s *Script) {
	s.Chapter("A cluster in mode API", func() {
		s.Reconciled(s.Put("karpenter_auth_mode", "true"))
		s.Type("aws eks update-cluster-config --name demo --access-config authenticationMode=API --query update.status --output text")
		s.Until("access mode", accessMode, "API", time.Minute)
		on(s)
		s.Check("access mode", accessMode, "API")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		single.end(s)
		off(s)
		s.Check("access mode", accessMode, "API")
		s.Check("NodePools, EC2NodeClasses and NodeClaims", "kubectl get nodepools,ec2nodeclasses,nodeclaims -o name", "")
	})
}

// ClusterGone deletes the cluster while Karpenter is on, and then turns Karpenter off. What is left in AWS is deleted,
// including the instances, and the rack is forgotten.
func ClusterGone(s *Script) {
	const (
		launch = "aws ec2 run-instances --image-id " + newestImage +
			" --instance-type m5.large --query 'Instances[0].InstanceId' --output text " +
			"--tag-specifications 'ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload}," +
			"{Key=eks:eks-cluster-name,Value=demo},{Key=kubernetes.io/cluster/demo,Value=owned},{Key=Name,Value=demo/karpenter/workload}]'"
		clusters = "aws eks list-clusters --query clusters --output text"
	)
	instance := ""
	s.Chapter("The cluster is deleted, and its nodes stay", func() {
		instance = s.Output(launch)
		for _, group := range []string{"system", "build"} {
			s.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name " + group + " --query nodegroup.status --output text")
		}
		s.Until("node groups", "aws eks list-nodegroups --cluster-name demo --query nodegroups --output text", "", 2*time.Minute)
		s.Type("aws eks delete-cluster --name demo --query cluster.status --output text")
		s.Until("clusters", clusters, "", time.Minute)
	})

	s.Chapter("Off", func() {
		s.Put("karpenter_enabled", "false")
		s.Served()
		s.Until("the instance", "aws ec2 describe-instances --instance-ids "+instance+
			" --query 'Reservations[].Instances[].State.Name' --output text", "terminated", time.Minute)
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
		s.Refused("aws iam get-role --role-name demo-karpenter-nodes", "NoSuchEntity")
		s.Check("instance profiles", instanceProfiles, "0")
		s.Refused("aws sqs get-queue-url --queue-name demo-karpenter", "NonExistentQueue")
		s.Refused("aws events describe-rule --name demo-karpenter", "ResourceNotFoundException")
	})

	s.Chapter("Forgotten", func() {
		s.Say("When its parameters are deleted, its status and outputs go too.")
		deleteParameters(s)
		s.Served()
		s.Check("what is in Parameter Store",
			"aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'length(Parameters)' --output text", "0")
	})
}
