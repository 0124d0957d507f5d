package story

import "fmt"

// Confined tries what the permissions of two people reach: a user who may write the rack's parameters and gives the
// nodes AdministratorAccess, and an administrator of the cluster who uses Karpenter's own role. Neither reaches another
// rack, the account's instances, queues, snapshots and images, or its other networks.
func Confined(t *Teller) {
	const (
		admin  = "arn:aws:iam::aws:policy/AdministratorAccess"
		theirs = "ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload},{Key=eks:eks-cluster-name,Value=other}," +
			"{Key=kubernetes.io/cluster/other,Value=owned}]"
		url     = `"$(aws sqs get-queue-url --queue-name other-karpenter --query QueueUrl --output text)"`
		mine    = `"$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl --output text)"`
		receive = "aws sqs receive-message --wait-time-seconds 0 --queue-url "
		assumed = "aws sts assume-role --role-arn arn:aws:iam::000000000000:role/sawhorse/demo-karpenter-nodes --role-session-name node " +
			"--query Credentials.[AccessKeyId,SecretAccessKey,SessionToken] --output text"
		pod = `curl -s "$AWS_ENDPOINT_URL/_sandbox/pod-credentials?cluster=demo&namespace=kube-system&serviceAccount=karpenter" ` +
			`| python3 -c 'import json, sys; c = json.load(sys.stdin); print(c["AccessKeyId"], c["SecretAccessKey"], c["Token"])'`
		forNodes = "aws ec2 create-tags --tags Key=sawhorse.dev/nodes,Value=true --resources "
		launched = `'ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload},{Key=eks:eks-cluster-name,Value=demo},` +
			`{Key=kubernetes.io/cluster/demo,Value=owned}]'`
	)
	with := func(credentials, command string) string {
		return "read -r id key token < <(" + credentials +
			"); AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$key AWS_SESSION_TOKEN=$token " + command
	}
	node := func(command string) string { return with(assumed, command) }
	controller := func(command string) string { return with(pod, command) }

	t.Chapter("What is not the rack's: an instance and its backup, a queue, a subnet, a snapshot, a role of another rack's nodes")
	instance := t.Ask("aws ec2 run-instances --image-id " + newestImage + " --instance-type m5.large --tag-specifications '" + theirs +
		"' --query 'Instances[0].InstanceId' --output text")
	backup := t.Ask("aws ec2 create-image --name db-backup --instance-id " + instance + " --query ImageId --output text")
	t.Type("aws sqs create-queue --queue-name other-karpenter")
	vpc := t.Ask("aws ec2 create-vpc --cidr-block 10.99.0.0/16 --query Vpc.VpcId --output text")
	subnet := t.Ask("aws ec2 create-subnet --vpc-id " + vpc + " --cidr-block 10.99.0.0/24 --query Subnet.SubnetId --output text")
	own := t.Ask("aws ec2 describe-subnets --filters Name=tag:karpenter.sh/discovery,Values=demo " +
		"--query 'Subnets[0].SubnetId' --output text")

	t.Chapter("Nodes with AdministratorAccess")
	t.Type("aws ssm put-parameter --name /sawhorse/racks/demo/params/node_policy_arns --value " + admin + " --type String --overwrite")
	t.Contains("the pass attaches it", "sawhorse watch demo", "Reconciled")
	t.Contains("the role's policies",
		"aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'AttachedPolicies[].PolicyArn'", admin)
	t.Refused(node("aws ec2 terminate-instances --instance-ids "+instance), "not authorized")
	t.Refused(node("aws ec2 create-tags --tags Key=karpenter.sh/nodepool,Value=workload --resources "+instance), "not authorized")
	t.Refused(node("aws ec2 run-instances --dry-run --image-id "+newestImage+" --instance-type m5.large --tag-specifications "+launched),
		"not authorized")
	t.Refused(node(receive+mine), "not authorized")
	t.Refused(node(receive+url), "not authorized")
	t.Refused(node("aws iam create-user --user-name intruder"), "not authorized")
	t.Type(node("aws ec2 describe-instances --query 'length(Reservations)'"))
	t.Type(node("aws eks describe-cluster --name demo --query cluster.status"))

	imagesOfNodes(t, backup)

	t.Chapter("A pod that has Karpenter's role")
	from := func(image, more string) string {
		return controller("aws ec2 run-instances --dry-run --image-id " + image + " --instance-type m5.large --tag-specifications " +
			launched + " " + more)
	}
	launch := func(more string) string { return from(newestImage, more) }
	t.Refused(launch("--subnet-id "+own), "DryRunOperation") // EC2's answer if the call is permitted
	t.Refused(launch("--subnet-id "+subnet), "not authorized")
	t.Refused(launch("--subnet-id "+own+
		` --block-device-mappings '[{"DeviceName":"/dev/sdf","Ebs":{"SnapshotId":"snap-0123456789abcdef0"}}]'`), "not authorized")
	t.Refused(from(backup, "--subnet-id "+own), "not authorized")
	t.Refused(controller(forNodes+backup), "not authorized")
	t.Type(forNodes + backup)
	t.Refused(from(backup, "--subnet-id "+own), "DryRunOperation")
	t.Refused(controller("aws ec2 terminate-instances --instance-ids "+instance), "not authorized")
	t.Type(controller(receive + mine))
	t.Refused(controller(receive+url), "not authorized")
	t.Check("the other cluster's instance",
		fmt.Sprintf("aws ec2 describe-instances --instance-ids %s --query 'Reservations[].Instances[].State.Name' --output text", instance),
		"running")

	t.Type("aws ssm put-parameter --name /sawhorse/racks/demo/params/node_policy_arns --value unset --type String --overwrite")
	t.Contains("detached again", "sawhorse watch demo", "Reconciled")
	t.Type("aws ec2 deregister-image --image-id " + backup)
	t.Type("aws ec2 terminate-instances --query 'length(TerminatingInstances)' --instance-ids " + instance)
	t.Type("aws sqs delete-queue --queue-url " + url)
	t.Type("aws ec2 delete-subnet --subnet-id " + subnet)
	t.Type("aws ec2 delete-vpc --vpc-id " + vpc)
}

// imagesOfNodes selects a backup of an instance as the image of the rack's nodes, by its id and by its name. Then it
// selects an image of Amazon by a public parameter.
func imagesOfNodes(t *Teller, backup string) {
	t.Chapter("A backup as the image of the nodes")
	version := t.Ask("aws eks describe-cluster --name demo --query cluster.version --output text")
	for _, c := range []struct{ what, term, said string }{
		{"by its id", `{"id":"` + backup + `"}`, "an image of the account without the tag sawhorse.dev/nodes"},
		{"by its name", `{"name":"db-backup","owner":"self"}`, "images of the account that are not meant for nodes"},
		{"an image of Amazon", `{"ssmParameter":"/aws/service/eks/optimized-ami/` + version +
			`/amazon-linux-2023/x86_64/standard/recommended/image_id"}`, "Reconciled"},
	} {
		t.Type("aws ssm put-parameter --name /sawhorse/racks/demo/params/karpenter_config --type String --overwrite --value '" +
			`{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[` + c.term + `]}}'`)
		t.Contains(c.what, "sawhorse watch demo; sawhorse status demo", c.said)
	}
	t.Type("aws ssm put-parameter --name /sawhorse/racks/demo/params/karpenter_config --value unset --type String --overwrite")
	t.Contains("as before", "sawhorse watch demo", "Reconciled")
}
