package main

import "github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

// auditPermissions returns the statements for reading what validate and all steps read. They do not allow any change to
// a rack: the event that requests a pass is put on Sawhorse's own bus, and the records of a rack are written only at
// the beginning of a full pass (tableAccess).
func (s *sawhorse) auditPermissions() []awsiam.PolicyStatement {
	return append(s.validatePermissions(),
		allow([]string{"eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies"}, accessEntries()),
		allow([]string{"iam:GetRole"}, s.principals()), // an access entry binds to the role's unique id
		allow([]string{"iam:GetRolePolicy", "iam:ListRolePolicies"}, ourRoles()),
		allow([]string{"iam:ListInstanceProfiles"}, anything),
		allow([]string{"eks:ListPodIdentityAssociations"}, clusters()),
		allow([]string{"eks:DescribePodIdentityAssociation"}, associations()),
		allow([]string{"ec2:DescribeTags", "ec2:DescribeInstances"}, anything),
		allow([]string{"autoscaling:DescribeAutoScalingGroups"}, anything),
	)
}
