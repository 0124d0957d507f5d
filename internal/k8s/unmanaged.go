package k8s

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// UnmanagedKarpenter lists the parts of another Karpenter in the cluster: controllers under any name, Helm releases with
// the names that Sawhorse uses, and those of the CRDs that do not belong to Sawhorse's release. Two Karpenters in one
// cluster would both act on its nodes.
func (c *Client) UnmanagedKarpenter(ctx context.Context, rack string, crds []string) ([]string, error) {
	deployments, err := c.List(ctx, Deployment, "", "app.kubernetes.io/name=karpenter")
	if err != nil {
		return nil, err
	}
	var found []string
	for i := range deployments {
		if Owned(&deployments[i], rack) != nil {
			found = append(found, Subject(&deployments[i]))
		}
	}
	releases, err := c.unmanagedReleases(ctx, rack)
	if err != nil {
		return nil, err
	}
	unmanaged, err := c.UnmanagedCRDs(ctx, crds)
	return slices.Concat(found, releases, unmanaged), err
}

// unmanagedReleases lists the Helm releases with the names that Sawhorse uses. Their records are Secrets, which a
// read-only client may not read: it finds only what the releases have deployed.
func (c *Client) unmanagedReleases(ctx context.Context, rack string) (found []string, err error) {
	if c.readOnly {
		return nil, nil
	}
	releases, err := c.List(ctx, Secret, "", "owner=helm,name in ("+ownership.ReleaseCRD+","+ownership.ReleaseController+")")
	for i := range releases {
		name := "Helm release " + releases[i].GetNamespace() + "/" + releases[i].GetLabels()["name"]
		if Owned(&releases[i], rack) != nil && !slices.Contains(found, name) { // a release has a record of each revision
			found = append(found, name)
		}
	}
	return found, err
}

// UnmanagedCRDs lists those of the named CRDs that Helm would not let Sawhorse's release adopt.
func (c *Client) UnmanagedCRDs(ctx context.Context, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		crd, err := c.Get(ctx, CustomResourceDefinition, "", name)
		if err != nil {
			return found, err
		}
		if crd != nil && !Released(crd, ownership.ReleaseCRD) {
			found = append(found, Subject(crd))
		}
	}
	return found, nil
}

// Released reports whether an object has Helm's annotations for a release in Karpenter's namespace.
func Released(object *unstructured.Unstructured, release string) bool {
	annotations := object.GetAnnotations()
	return annotations["meta.helm.sh/release-name"] == release && annotations["meta.helm.sh/release-namespace"] == ownership.Namespace
}

// Contested lists the objects that have the name of a manifest and do not belong to the rack.
func (c *Client) Contested(ctx context.Context, rack string, manifests []plan.Object) ([]string, error) {
	var found []string
	for _, manifest := range manifests {
		live, err := c.GetLike(ctx, manifest)
		if err != nil {
			return nil, err
		}
		var foreign *Unmanaged
		if errors.As(Owned(live, rack), &foreign) {
			found = append(found, foreign.Subject)
		}
	}
	return found, nil
}
