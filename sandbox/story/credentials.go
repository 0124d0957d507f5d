package story

import "time"

// Credentials turns Karpenter on without EKS Pod Identity's agent. This is rejected while the cluster's OIDC provider
// is missing too, and uses that provider (IRSA) once it exists.
func Credentials(t *Teller) {
	const (
		agent    = "--cluster-name demo --addon-name eks-pod-identity-agent --query addon.status --output text"
		issuer   = "$(aws eks describe-cluster --name demo --query cluster.identity.oidc.issuer --output text)"
		provider = "aws iam list-open-id-connect-providers --query 'OpenIDConnectProviderList[].Arn' --output text"
		annotate = `kubectl -n kube-system get serviceaccount karpenter -o jsonpath='{.metadata.annotations.eks\.amazonaws\.com/role-arn}'`
	)
	autoscalerBefore := t.Ask(autoscaler)
	t.Chapter("Neither Pod Identity nor an OIDC provider")
	t.Type("aws eks delete-addon " + agent)
	t.Type(turnOn)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("the sentence", status, "create-addon --cluster-name demo --addon-name eks-pod-identity-agent")
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")

	t.Chapter("A provider that does not know STS")
	t.Type("aws iam create-open-id-connect-provider --url " + issuer)
	t.Check("request", fullPass, "0")
	t.Until("the sentence says what to add", status+" | grep -c 'add-client-id-to-open-id-connect-provider --client-id sts.amazonaws.com'",
		"1", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")

	t.Chapter("With the provider")
	t.Type("aws iam add-client-id-to-open-id-connect-provider --client-id sts.amazonaws.com --open-id-connect-provider-arn $(" +
		provider + ")")
	on(t)
	t.Contains("the service account names the role", annotate, ":role/sawhorse/demo-karpenter")
	t.Check("pod identity associations", podIdentities, "0")
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)

	t.Chapter("The agent comes back: what was chosen is kept until Karpenter is off")
	t.Type("aws eks create-addon " + agent)
	repair(t)
	t.Contains("the service account names the role", annotate, ":role/sawhorse/demo-karpenter")
	off(t)
	withoutKarpenter(t, autoscalerBefore)
	t.Type("aws iam delete-open-id-connect-provider --open-id-connect-provider-arn $(" + provider + ")")
	on(t)
	t.Check("pod identity associations", podIdentities, "1")
}

// AccessModeAPI turns Karpenter on in a cluster whose access mode is API, without aws-auth. EKS cannot
// change that mode back.
func AccessModeAPI(t *Teller) {
	t.Chapter("A cluster in mode API")
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	t.Type("aws eks update-cluster-config --name demo --access-config authenticationMode=API --query update.status --output text")
	t.Until("access mode", accessMode, "API", time.Minute)
	on(t)
	t.Check("access mode", accessMode, "API")
	single.start(t)
	t.Check("the NodePool of its node", single.where(), "workload")
	single.end(t)
	off(t)
	t.Check("access mode", accessMode, "API")
	t.Check("NodePools, EC2NodeClasses and NodeClaims", "kubectl get nodepools,ec2nodeclasses,nodeclaims -o name", "")
}

// ClusterGone deletes the cluster while Karpenter is on, and then turns Karpenter off. What is left in AWS is deleted,
// including the instances, and the rack is forgotten.
func ClusterGone(t *Teller) {
	const (
		launch = "aws ec2 run-instances --image-id " + newestImage +
			" --instance-type m5.large --query 'Instances[0].InstanceId' --output text " +
			"--tag-specifications 'ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload}," +
			"{Key=eks:eks-cluster-name,Value=demo},{Key=kubernetes.io/cluster/demo,Value=owned},{Key=Name,Value=demo/karpenter/workload}]'"
		clusters = "aws eks list-clusters --query clusters --output text"
	)
	t.Chapter("The cluster is deleted, and its nodes stay")
	instance := t.Ask(launch)
	for _, group := range []string{"system", "build"} {
		t.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name " + group + " --query nodegroup.status --output text")
	}
	t.Until("node groups", "aws eks list-nodegroups --cluster-name demo --query nodegroups --output text", "", 2*time.Minute)
	t.Type("aws eks delete-cluster --name demo --query cluster.status --output text")
	t.Until("clusters", clusters, "", time.Minute)

	t.Chapter("Off")
	t.Type(turnOff)
	t.Until("the instance", "aws ec2 describe-instances --instance-ids "+instance+
		" --query 'Reservations[].Instances[].State.Name' --output text", "terminated", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	t.Refused("aws iam get-role --role-name demo-karpenter-nodes", "NoSuchEntity")
	t.Check("instance profiles", instanceProfiles, "0")
	t.Refused("aws sqs get-queue-url --queue-name demo-karpenter", "NonExistentQueue")
	t.Refused("aws events describe-rule --name demo-karpenter", "ResourceNotFoundException")

	t.Chapter("Forgotten")
	t.Say("When its parameters are deleted, its status and outputs go too.")
	t.Type("aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query 'Parameters[].Name' --output text | xargs -r " +
		"-n 10 aws ssm delete-parameters --query 'length(DeletedParameters)' --output text --names")
	t.Until("what is in Parameter Store",
		"aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'length(Parameters)' --output text",
		"0", time.Minute)
}
