// Package admin explains why the API server refused a call of a function that EKS makes a cluster administrator: the
// access entry's policy is seconds old and does not work yet, the policy is missing, or something else refuses.
package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Function describes a function that EKS makes a cluster administrator.
type Function struct {
	// Name is the function's name in the plan. Principal is its role's ARN.
	Name, Principal string
	EKS             eks.ListAssociatedAccessPoliciesAPIClient
	Now             func() time.Time
}

// poll is how long to wait for EKS.
const poll = 3 * time.Second

// Policy returns the ARN of EKS's access policy for cluster administrators.
func Policy(partition string) string {
	return fmt.Sprintf("arn:%s:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy", partition)
}

// Refused turns a 403 of the API server into a wait while the function's policy is new: an access entry works some
// seconds before its policy does. A later 403 becomes an error that says what to do. Nil and other errors are returned
// as they are.
func (f Function) Refused(ctx context.Context, cluster plan.Cluster, err error) error {
	if !k8s.IsForbidden(err) {
		return err
	}
	out, failed := f.EKS.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{
		ClusterName: &cluster.Name, PrincipalArn: &f.Principal,
	})
	if failed != nil {
		return fmt.Errorf("function %s is forbidden what it asks of cluster %s (%v), and its access entry cannot be read: %w", f.Name,
			cluster.Name, err, failed)
	}
	at := slices.IndexFunc(out.AssociatedAccessPolicies, func(policy types.AssociatedAccessPolicy) bool {
		return aws.ToString(policy.PolicyArn) == Policy(cluster.Partition)
	})
	switch {
	case at < 0:
		return fmt.Errorf("function %s is forbidden what it asks of cluster %s, "+
			"because its access entry lacks AmazonEKSClusterAdminPolicy; send a full Rack Reconcile Requested, which puts it back: %w",
			f.Name, cluster.Name, err)
	case outcome.Young(out.AssociatedAccessPolicies[at].AssociatedAt, f.Now()):
		return outcome.Wait(poll,
			"the AmazonEKSClusterAdminPolicy of function %s does not work yet: it was associated moments ago", f.Name)
	}
	return fmt.Errorf("function %s is forbidden what it asks of cluster %s, although EKS makes it an administrator; "+
		"look for an admission webhook, a ValidatingAdmissionPolicy or a quota that refuses: %w",
		f.Name, cluster.Name, err)
}
