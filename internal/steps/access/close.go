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
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// close removes the access of Sawhorse's functions to the cluster of a rack that is forgotten: their rights in the
// cluster, their access entries, and last the entry of this function, because it can delete nothing without it. What is
// already gone is no error.
func (a *Step) close(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	out, err := a.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &p.Cluster.Name})
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cluster %s: describe: %w", p.Cluster.Name, err)
	}
	if mode := modeOf(out.Cluster); out.Cluster.Status == types.ClusterStatusDeleting || mode == types.AuthenticationModeConfigMap {
		return nil // a deleted cluster takes its entries with it, and in this mode there are none
	}
	if err := a.revoke(ctx, p, w); err != nil {
		return err
	}
	const self = "access"
	for _, function := range slices.Sorted(maps.Keys(a.Principals)) {
		if function == self {
			continue
		}
		if err := a.remove(ctx, p, function, w); err != nil {
			return err
		}
	}
	return a.remove(ctx, p, self, w)
}

// revoke deletes the rights that grant gave. It needs this function's own entry: if that is gone, an earlier call has
// already deleted the rights. If the API server is permanently unreachable, the rights stay, but nobody holds them once
// the entries are gone. So an unreachable cluster does not keep a rack from being forgotten.
func (a *Step) revoke(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	found, own, err := a.describe(ctx, p, "access")
	if err == nil && !found.Found && w.Created(found.Name) {
		return resource.NotShown(poll, found.Name)
	}
	if err != nil || !found.Found {
		return err
	}
	err = a.prune(ctx, p, w)
	switch {
	case err == nil:
		return nil
	case k8s.IsForbidden(err) && outcome.Young(own.CreatedAt, a.Now()):
		return outcome.Wait(poll, "the access entry of function access does not work yet")
	// This also happens if our entry was just deleted and EKS still returns it.
	case outcome.IsNotYet(err, outcome.Unready):
		if !stale(own, a.Principals["access"]) {
			return outcome.Wait(poll, "the API server of cluster %s does not let function access in: %v", p.Cluster.Name, err)
		}
	case !k8s.IsForbidden(err) && !errors.As(err, new(*outcome.Unreachable)):
		return err
	}
	w.Happened("rack", "the rights of Sawhorse's functions stay in cluster %s (%v); nobody has them any more; "+
		"delete them: kubectl -n default delete namespaces,clusterrolebindings,clusterroles,rolebindings,roles -l %s=%s",
		p.Cluster.Name, err, ownership.TagRack, p.Rack)
	return nil
}

func (a *Step) prune(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	client, err := a.Connect(ctx, p.Cluster)
	if err != nil {
		return err
	}
	for _, kind := range []k8s.Kind{k8s.RoleBinding, k8s.Role, k8s.Namespace, k8s.ClusterRoleBinding, k8s.ClusterRole} {
		deleted, err := client.Prune(ctx, kind, p.Rack, nil)
		for _, subject := range deleted {
			w.Changed("deleted", "%s", subject)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes one function's access entry, if there is one.
func (a *Step) remove(ctx context.Context, p *plan.Plan, function string, w *resource.Writer) error {
	live, _, err := a.describe(ctx, p, function)
	if err != nil {
		return err
	}
	return w.Delete(ctx, live, resource.Removal{Wait: poll, Do: a.deletion(p, function)})
}
