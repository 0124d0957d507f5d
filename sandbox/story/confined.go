package story

import (
	"fmt"
	"net/http"
)

// Confined tries what the permissions of two people reach: a user who may write the rack's parameters and gives the
// nodes AdministratorAccess, and an administrator of the cluster who uses Karpenter's own role. Neither reaches another
// rack, the account's instances, queues, snapshots and images, or its other networks.
func Confined(s *Script) {
	const (
		admin  = "arn:aws:iam::aws:policy/AdministratorAccess"
		theirs = "ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload},{Key=eks:eks-cluster-name,Value=other}," +
			"{Key=kubernetes.io/cluster/other,Value=owned}]"
		url      = `"$(aws sqs get-queue-url --queue-name other-karpenter --query QueueUrl --output text)"`
		receive  = "aws sqs receive-message --wait-time-seconds 0 --queue-url "
		forNodes = "aws ec2 create-tags --tags Key=sawhorse.dev/nodes,Value=true --resources "
		launched = `'ResourceType=instance,Tags=[{Key=karpenter.sh/nodepool,Value=workload},{Key=eks:eks-cluster-name,Value=demo},` +
			`{Key=kubernetes.io/cluster/demo,Value=owned}]'`
	)
	var instance, backup, subnet, own, vpc string
	s.Chapter("What is not the rack's: an instance and its backup, a queue, a subnet, a snapshot, a role of another rack's nodes", func() {
		instance = s.Output("aws ec2 run-instances --image-id " + newestImage + " --instance-type m5.large --tag-specifications '" + theirs +
			"' --query 'Instances[0].InstanceId' --output text")
		backup = s.Output("aws ec2 create-image --name db-backup --instance-id " + instance + " --query ImageId --output text")
		s.Type("aws sqs create-queue --queue-name other-karpenter")
		vpc = s.Output("aws ec2 create-vpc --cidr-block 10.99.0.0/16 --query Vpc.VpcId --output text")
		subnet = s.Output("aws ec2 create-subnet --vpc-id " + vpc + " --cidr-block 10.99.0.0/24 --query Subnet.SubnetId --output text")
		own = s.Output("aws ec2 describe-subnets --filters Name=tag:karpenter.sh/discovery,Values=demo " +
			"--query 'Subnets[0].SubnetId' --output text")
	})

	s.Chapter("Nodes with AdministratorAccess", func() {
		s.Reconciled(s.Put("node_policy_arns", admin))
		node := as(credentialsOf(s, "arn:aws:iam::000000000000:role/sawhorse/demo-karpenter-nodes"))
		s.Contains("the role's policies",
			"aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'AttachedPolicies[].PolicyArn'", admin)
		s.Refused(node("aws ec2 terminate-instances --instance-ids "+instance), "not authorized")
		s.Refused(node("aws ec2 create-tags --tags Key=karpenter.sh/nodepool,Value=workload --resources "+instance), "not authorized")
		s.Refused(node("aws ec2 run-instances --dry-run --image-id "+newestImage+" --instance-type m5.large --tag-specifications "+launched),
			"not authorized")
		s.Refused(node(receive+queueURL), "not authorized")
		s.Refused(node(receive+url), "not authorized")
		s.Refused(node("aws iam create-user --user-name intruder"), "not authorized")
		s.Type(node("aws ec2 describe-instances --query 'length(Reservations)'"))
		s.Type(node("aws eks describe-cluster --name demo --query cluster.status"))

	})
	imagesOfNodes(s, backup)

	s.Chapter("A pod that has Karpenter's role", func() {
		var pod struct{ AccessKeyID, SecretAccessKey, Token string }
		s.sandbox(http.MethodGet, "pod-credentials?cluster=demo&namespace=kube-system&serviceAccount=karpenter", nil, &pod)
		controller := as(credentials{pod.AccessKeyID, pod.SecretAccessKey, pod.Token})
		from := func(image, more string) string {
			return controller("aws ec2 run-instances --dry-run --image-id " + image + " --instance-type m5.large --tag-specifications " +
				launched + " " + more)
		}
		launch := func(more string) string { return from(newestImage, more) }
		s.Refused(launch("--subnet-id "+own), "DryRunOperation") // EC2's answer if the call is permitted
		s.Refused(launch("--subnet-id "+subnet), "not authorized")
		s.Refused(launch("--subnet-id "+own+
			` --block-device-mappings '[{"DeviceName":"/dev/sdf","Ebs":{"SnapshotId":"snap-0123456789abcdef0"}}]'`), "not authorized")
		s.Refused(from(backup, "--subnet-id "+own), "not authorized")
		s.Refused(controller(forNodes+backup), "not authorized")
		s.Type(forNodes + backup)
		s.Refused(from(backup, "--subnet-id "+own), "DryRunOperation")
		s.Refused(controller("aws ec2 terminate-instances --instance-ids "+instance), "not authorized")
		s.Type(controller(receive + queueURL))
		s.Refused(controller(receive+url), "not authorized")
		s.Check("the other cluster's instance",
			fmt.Sprintf("aws ec2 describe-instances --instance-ids %s --query 'Reservations[].Instances[].State.Name' --output text", instance),
			"running")

		s.Unset("node_policy_arns")
		s.Reconciled()
		s.Type("aws ec2 deregister-image --image-id " + backup)
		s.Type("aws ec2 terminate-instances --query 'length(TerminatingInstances)' --instance-ids " + instance)
		s.Type("aws sqs delete-queue --queue-url " + url)
		s.Type("aws ec2 delete-subnet --subnet-id " + subnet)
		s.Type("aws ec2 delete-vpc --vpc-id " + vpc)
	})
}

// credentials are those of a role's session.
type credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// credentialsOf assumes a role.
func credentialsOf(s *Script, role string) credentials {
	return JSON[credentials](s, "aws sts assume-role --role-arn "+role+" --role-session-name script --query Credentials")
}

// as returns a function that returns a command with these credentials in place of the user's own.
func as(c credentials) func(command string) string {
	return func(command string) string {
		return "AWS_ACCESS_KEY_ID=" + c.AccessKeyID + " AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey + " AWS_SESSION_TOKEN=" + c.SessionToken +
			" " + command
	}
}

// trusting is the trust policy of a role that a service may assume.
func trusting(service string, actions ...string) object {
	return object{"Version": "2012-10-17", "Statement": []object{
		{"Effect": "Allow", "Principal": object{"Service": service}, "Action": actions},
	}}
}

// imagesOfNodes selects a backup of an instance as the image of the rack's nodes, by its id and by its name. Then it
// selects an image of Amazon by a public parameter.
func imagesOfNodes(s *Script, backup string) {
	s.Chapter("A backup as the image of the nodes", func() {
		version := s.Output("aws eks describe-cluster --name demo --query cluster.version --output text")
		for _, c := range []struct{ what, term, said string }{
			{"by its id", `{"id":"` + backup + `"}`, "an image of the account without the tag sawhorse.dev/nodes"},
			{"by its name", `{"name":"db-backup","owner":"self"}`, "images of the account that are not meant for nodes"},
			{"an image of Amazon", `{"ssmParameter":"/aws/service/eks/optimized-ami/` + version +
				`/amazon-linux-2023/x86_64/standard/recommended/image_id"}`, "Reconciled"},
		} {
			s.Put("karpenter_config", `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[`+c.term+`]}}`)
			s.Contains(c.what, "sawhorse watch demo; sawhorse status demo", c.said)
		}
		auditInOrder(s, "The schedule's audit reads that image, too.")
		s.Unset("karpenter_config")
		s.Reconciled()
	})
}
