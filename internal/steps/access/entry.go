package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
)

// entries creates or repairs the access entries of all functions. An entry that must wait does not hold up the others.
func (a *Step) entries(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	var waiting error
	for _, function := range slices.Sorted(maps.Keys(a.Principals)) {
		err := a.entry(ctx, p, function, w)
		if err != nil && !outcome.IsNotYet(err, outcome.Waiting) {
			return err
		}
		if waiting == nil {
			waiting = err
		}
	}
	return waiting
}

// entry creates or repairs one function's access entry. EKS may still return a deleted entry, so a new entry is checked
// again until it is two polls old.
func (a *Step) entry(ctx context.Context, p *plan.Plan, function string, w *resource.Writer) error {
	found, live, err := a.describe(ctx, p, function)
	if err != nil {
		return err
	}
	if found.Found && !w.Deleted(found.Name) {
		if stale(live, a.Principals[function]) { // it is not reported, as the creation is
			err = w.Write(ctx, resource.Write{Aspect: found.Name, Read: resource.There, Do: a.deletion(p, function)})
		}
		if err != nil {
			return err
		}
	}
	made := live.CreatedAt
	err = w.Ensure(ctx, found, resource.Wanted{
		Create: func(ctx context.Context) error { made = new(a.Now()); return a.create(ctx, p, function) },
		Parts:  []resource.Write{a.update(p, function, live, w)},
	})
	if err != nil {
		return err
	}
	return a.policy(ctx, p, function, made, w)
}

// aspect names a function's access entry in the record of what was written.
func aspect(function string) string { return "access entry of function " + function }

// describe returns one function's access entry, an empty one if there is none.
func (a *Step) describe(ctx context.Context, p *plan.Plan, function string) (resource.Live, *types.AccessEntry, error) {
	role := a.Principals[function].ARN
	out, err := a.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
	if notFound(err) {
		return resource.Live{Name: aspect(function)}, &types.AccessEntry{}, nil
	}
	if err != nil {
		return resource.Live{}, nil, fmt.Errorf("access entry %s: describe: %w", role, err)
	}
	return resource.Live{Name: aspect(function), Found: true, Owned: true}, out.AccessEntry, nil
}

func notFound(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// stale reports whether an entry does not work for its role. An entry binds to the role as it was at its creation, so a
// role that was deleted and created again needs a new entry. The entry's tag says which role that was: to ask IAM for the
// roles of all functions would be nine calls for each audit of each rack.
func stale(entry *types.AccessEntry, role Principal) bool {
	return entry.Type != nil && *entry.Type != "STANDARD" || entry.Tags[ownership.TagRole] != role.ID
}

func (a *Step) create(ctx context.Context, p *plan.Plan, function string) error {
	role := a.Principals[function]
	tags := ownership.Tags(p.Rack, p.Cluster.ARN)
	tags[ownership.TagRole] = role.ID
	_, err := a.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role.ARN, KubernetesGroups: groups(function), Type: new("STANDARD"), Tags: tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.Wait(poll,
			"EKS has an access entry of function %s that it does not show yet, or an earlier one that is being deleted", function)
	}
	return resource.Wrap(unknownToEKS(function, err), "access entry %s: create", role.ARN)
}

// deletion returns the deletion of one function's access entry.
func (a *Step) deletion(p *plan.Plan, function string) func(context.Context) error {
	return func(ctx context.Context) error {
		role := a.Principals[function].ARN
		_, err := a.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
		return resource.Wrap(resource.Ignore(err, notFound), "access entry %s: delete", role)
	}
}

// unknownToEKS turns EKS's refusal of a role into a wait. EKS learns of a role some 10 s after its creation, and the stack
// may have been deployed that recently. CloudFormation keeps the roles for as long as there are the functions.
func unknownToEKS(function string, err error) error {
	var invalid *types.InvalidParameterException
	if !errors.As(err, &invalid) || !strings.Contains(invalid.ErrorMessage(), "invalid principal") {
		return err
	}
	return resource.NotMade(outcome.Wait(poll, "EKS does not know the role of function %s yet; if that goes on, somebody has "+
		"deleted the role: deploy the stack again", function))
}

// update returns the part with the Kubernetes groups of a function's access entry.
func (a *Step) update(p *plan.Plan, function string, live *types.AccessEntry, w *resource.Writer) resource.Write {
	role, wanted := a.Principals[function].ARN, groups(function)
	hash := resource.Hash(wanted)
	return resource.Write{
		Aspect: "/groups", Read: resource.Read(slices.Equal(live.KubernetesGroups, wanted), hash), Value: hash,
		Change: outcome.Change{Action: "updated"},
		Do: func(ctx context.Context) error {
			_, err := a.EKS.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
				ClusterName: &p.Cluster.Name, PrincipalArn: &role, KubernetesGroups: wanted,
			})
			return a.waitIfNew(function, live.CreatedAt, resource.Wrap(err, "access entry %s: update", role), w)
		},
	}
}

// policy associates EKS's cluster admin policy with an administrator's entry. made is when the entry was created: EKS
// does not find a new entry for some seconds.
func (a *Step) policy(ctx context.Context, p *plan.Plan, function string, made *time.Time, w *resource.Writer) error {
	if administrators[function] {
		if err := a.associate(ctx, p, function, w); err != nil {
			return a.waitIfNew(function, made, err, w)
		}
	}
	if made != nil && a.Now().Before(made.Add(2*poll)) {
		return outcome.Wait(poll, "the access entry of function %s is new, and is looked at again", function)
	}
	return nil
}

// waitIfNew turns the error of a call about an entry that EKS shows and does not find into a wait.
func (a *Step) waitIfNew(function string, made *time.Time, err error, w *resource.Writer) error {
	if notFound(err) && (outcome.Young(made, a.Now()) || w.Recent(aspect(function))) {
		return outcome.Wait(poll,
			"EKS does not show the access entry of function %s everywhere yet: it was made or deleted moments ago", function)
	}
	return err
}

func (a *Step) associate(ctx context.Context, p *plan.Plan, function string, w *resource.Writer) error {
	role, policy := a.Principals[function].ARN, admin.Policy(p.Cluster.Partition)
	out, err := a.EKS.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role,
	})
	if err != nil {
		return fmt.Errorf("access entry %s: list policies: %w", role, err)
	}
	read := ""
	for _, live := range out.AssociatedAccessPolicies {
		if live.PolicyArn != nil && *live.PolicyArn == policy {
			read = policy
		}
	}
	return w.Write(ctx, resource.Write{
		Aspect: aspect(function) + "/policy", Read: read, Value: policy,
		Change: outcome.Change{Subject: aspect(function), Action: "associated with AmazonEKSClusterAdminPolicy"},
		Do: func(ctx context.Context) error {
			_, err := a.EKS.AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{
				ClusterName: &p.Cluster.Name, PrincipalArn: &role, PolicyArn: &policy,
				AccessScope: &types.AccessScope{Type: types.AccessScopeTypeCluster},
			})
			return resource.Wrap(err, "access entry %s: associate %s", role, policy)
		},
	})
}
