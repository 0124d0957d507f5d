package k8s

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// UnmanagedKarpenter lists the parts of another Karpenter in the cluster: controllers under any name, and those of the CRDs that
// are neither Sawhorse's nor handed over. Two Karpenters in one cluster would both act on its nodes. Once Sawhorse has installed the
// rack's controller, no CRD is one of another Karpenter: what only another version brings is judged before that is applied.
func (c *Client) UnmanagedKarpenter(ctx context.Context, rack string, crds []string) (found []string, err error) {
	own, others, err := c.controllers(ctx, rack)
	for i := range others {
		found = append(found, Subject(&others[i]))
	}
	if err != nil || own {
		return found, err
	}
	unmanaged, err := c.UnmanagedCRDs(ctx, crds)
	return append(found, unmanaged...), err
}

// ServedByAnother reports whether a controller of Karpenter that is not the rack's, under any name, has a pod that is Ready.
func (c *Client) ServedByAnother(ctx context.Context, rack string) (bool, error) {
	_, others, err := c.controllers(ctx, rack)
	return slices.ContainsFunc(others, func(o unstructured.Unstructured) bool {
		ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
		return ready > 0
	}), err
}

// controllers reports whether a controller of Karpenter is one that Sawhorse has installed for the rack, and not one that is only handed
// over, and returns those that are neither.
func (c *Client) controllers(ctx context.Context, rack string) (own bool, others []unstructured.Unstructured, err error) {
	deployments, err := c.List(ctx, Deployment, "", "app.kubernetes.io/name=karpenter")
	for i := range deployments {
		if Owned(&deployments[i], rack) == nil {
			own = own || !Released(&deployments[i], ownership.ReleaseController)
		} else {
			others = append(others, deployments[i])
		}
	}
	return own, others, err
}

// UnmanagedCRDs lists those of the named CRDs that exist and that Sawhorse neither made nor may take over.
func (c *Client) UnmanagedCRDs(ctx context.Context, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		crd, err := c.Get(ctx, CustomResourceDefinition, "", name)
		if err != nil {
			return found, err
		}
		if crd != nil && !mayAdopt(crd) {
			found = append(found, Subject(crd))
		}
	}
	return found, nil
}

// mayAdopt reports whether Sawhorse may apply a CRD: it made it, for this rack or for an earlier one of the cluster, or it is of a
// Helm release of Karpenter's chart, or was annotated like one to hand it over.
func mayAdopt(crd *unstructured.Unstructured) bool {
	return crd.GetLabels()[ownership.TagRack] != "" || Released(crd, ownership.ReleaseCRD)
}

// Contested lists the objects that have the name of a manifest and do not belong to the rack.
func (c *Client) Contested(ctx context.Context, rack string, manifests []plan.Object) ([]string, error) {
	var found []string
	for _, manifest := range manifests {
		live, err := c.GetLike(ctx, manifest)
		if err != nil {
			return nil, err
		}
		if Owned(live, rack) != nil {
			found = append(found, Subject(live))
		}
	}
	return found, nil
}
