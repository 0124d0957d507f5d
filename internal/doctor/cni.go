package doctor

import (
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// trustPods is the trust policy of a role for EKS Pod Identity.
const trustPods = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},` +
	`"Action":["sts:AssumeRole","sts:TagSession"]}]}`

// cni tells how to give the VPC CNI a role of its own. As soon as all of its pods use that role, the audit takes the CNI's
// policy from the rack's node roles.
func cni(o *Observed, found *findings) {
	const restart = "kubectl -n " + ownership.Namespace + " rollout restart daemonset " + ownership.CNI
	const then = "The hourly audit then takes the CNI's policy from the rack's node roles."
	switch {
	case o.CNI.Pods == 0 || o.CNI.Independent():
	case o.CNI.OwnRole:
		found.add(Warns,
			fmt.Sprintf("%d of %d pods of the VPC CNI were admitted without the credentials of its role, and use their node's", o.CNI.Lacking,
				o.CNI.Pods),
			"Create them again; a pod gets credentials only when it is admitted. "+then, restart)
	default:
		name := o.Facts.Cluster.Name + "-" + ownership.CNI
		var commands []string
		if o.addOn(agent) == nil {
			commands = append(commands, fmt.Sprintf("aws eks create-addon --cluster-name %s --addon-name %s", o.Facts.Cluster.Name, agent))
		}
		found.add(Info,
			"the VPC CNI has no role of its own, so the rack's node roles have AmazonEKS_CNI_Policy, as those of EKS's own node groups do",
			"Give it a role, and create its pods again. "+then,
			append(commands,
				fmt.Sprintf("aws iam create-role --role-name %s --assume-role-policy-document '%s'", name, trustPods),
				fmt.Sprintf("aws iam attach-role-policy --role-name %s --policy-arn arn:%s:iam::aws:policy/AmazonEKS_CNI_Policy", name,
					o.Facts.Cluster.Partition),
				o.associate(name), restart)...)
	}
}

// associate returns the command that gives the VPC CNI a role by EKS Pod Identity. For a managed add-on, EKS manages the
// association with the add-on (EKS user guide, "IAM roles for Amazon EKS add-ons").
func (o *Observed) associate(role string) string {
	arn := fmt.Sprintf("arn:%s:iam::%s:role/%s", o.Facts.Cluster.Partition, o.Facts.Cluster.Account, role)
	if o.addOn("vpc-cni") != nil {
		return fmt.Sprintf("aws eks update-addon --cluster-name %s --addon-name vpc-cni --pod-identity-associations serviceAccount=%s,roleArn=%s",
			o.Facts.Cluster.Name, ownership.CNI, arn)
	}
	return fmt.Sprintf("aws eks create-pod-identity-association --cluster-name %s --namespace %s --service-account %s --role-arn %s",
		o.Facts.Cluster.Name, ownership.Namespace, ownership.CNI, arn)
}
