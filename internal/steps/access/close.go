package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// close takes Sawhorse's functions out of the cluster of a rack that is forgotten: their rights there, their access entries, and last
// the entry of this function, without which it could take nothing else away. What is not there any more is no error.
func (a *Access) close(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	out, err := a.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &p.Cluster.Name})
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cluster %s: describe: %w", p.Cluster.Name, err)
	}
	if mode := modeOf(out.Cluster); out.Cluster.Status == types.ClusterStatusDeleting || mode == types.AuthenticationModeConfigMap {
		return nil // it takes its entries with it, or has none
	}
	if err := a.revoke(ctx, p, progress); err != nil {
		return err
	}
	const self = "access"
	for _, function := range slices.Sorted(maps.Keys(a.Principals)) {
		if function == self {
			continue
		}
		if err := a.remove(ctx, p, function, progress); err != nil {
			return err
		}
	}
	return a.remove(ctx, p, self, progress)
}

// revoke deletes the rights that grant gave. It needs this function's own entry: where that has gone, an earlier call has deleted them
// before it. Where the API server cannot be had for a lasting reason, they stay, and nobody has them once the entries are gone:
// forgetting a rack does not wait for a cluster that nobody reaches.
func (a *Access) revoke(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	own, err := a.describe(ctx, p, "access")
	if err != nil || own == nil {
		return err
	}
	err = a.prune(ctx, p, progress)
	switch {
	case err == nil:
		return nil
	case k8s.IsForbidden(err) && steps.Young(own.CreatedAt, a.Now()):
		return steps.NotYet(poll, "the access entry of function access does not work yet")
	case k8s.IsUnauthorized(err) || errors.As(err, new(*steps.NotReady)): // of an entry that was just deleted, too, and is still shown
		stale, look := a.stale(ctx, own, a.Principals["access"])
		if look != nil {
			return look
		}
		if !stale {
			return steps.NotYet(poll, "the API server of cluster %s does not let function access in: %v", p.Cluster.Name, err)
		}
	case !k8s.IsForbidden(err) && !errors.As(err, new(*steps.Unreachable)):
		return err
	}
	progress.Happened("rack", "the rights of Sawhorse's functions stay in cluster %s (%v); nobody has them any more; delete them: kubectl delete clusterrolebindings,clusterroles -l %s=%s",
		p.Cluster.Name, err, names.TagRack, p.Rack)
	return nil
}

func (a *Access) prune(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	client, err := a.Dial(ctx, p.Cluster)
	if err != nil {
		return err
	}
	for _, kind := range []k8s.Kind{k8s.ClusterRoleBinding, k8s.ClusterRole} {
		deleted, err := client.Prune(ctx, kind, p.Rack, nil)
		for _, subject := range deleted {
			progress.Changed("deleted", "%s", subject)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes one function's access entry.
func (a *Access) remove(ctx context.Context, p *plan.Plan, function string, progress *steps.Progress) error {
	if live, err := a.describe(ctx, p, function); err != nil || live == nil {
		return err
	}
	role := a.Principals[function]
	_, err := a.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("access entry %s: delete: %w", role, err)
	}
	progress.Changed("deleted", "access entry of function %s", function)
	return nil
}
