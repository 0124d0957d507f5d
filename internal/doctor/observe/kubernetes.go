package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

// kubernetes reads the cluster's own objects. It reads the nodes first: if the API server cannot be reached or does not
// know the caller, it does not wait for the other kinds. A caller that may not read nodes may still read the rest.
func (l *looker) kubernetes(ctx context.Context) {
	client, closed := l.Dial(ctx, l.o.Cluster.Cluster)
	for _, each := range []look{
		{doctor.Nodes, func(ctx context.Context) error { return read(ctx, client, k8s.Node, &l.o.Nodes) }},
		{doctor.Pods, func(ctx context.Context) error { return read(ctx, client, k8s.Pod, &l.o.Pods) }},
		{doctor.Deployments, func(ctx context.Context) error { return read(ctx, client, k8s.Deployment, &l.o.Deployments) }},
		{doctor.StatefulSets, func(ctx context.Context) error { return read(ctx, client, k8s.StatefulSet, &l.o.StatefulSets) }},
		{doctor.DaemonSets, func(ctx context.Context) error { return read(ctx, client, k8s.DaemonSet, &l.o.DaemonSets) }},
		{doctor.Budgets, func(ctx context.Context) error { return read(ctx, client, k8s.PodDisruptionBudget, &l.o.Budgets) }},
		{doctor.NodePools, func(ctx context.Context) error { return l.pools(ctx, client) }},
		{doctor.NodeClaims, func(ctx context.Context) error { return l.launches(ctx, client) }},
	} {
		l.look(each.source, func() error {
			if closed != nil {
				return closed
			}
			err := each.do(ctx)
			if each.source == doctor.Nodes && err != nil && !apierrors.IsForbidden(err) {
				closed = err
			}
			return err
		})
	}
}

// read reads all objects of a kind.
func read[T any](ctx context.Context, client *k8s.Client, kind k8s.Kind, into *[]T) error {
	return client.Each(ctx, kind, "", "", func(object *unstructured.Unstructured) error {
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			return fmt.Errorf("%s: decode: %w", k8s.Subject(object), err)
		}
		*into = append(*into, typed)
		return nil
	})
}
