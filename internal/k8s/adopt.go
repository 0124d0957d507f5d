package k8s

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// Annotations by which Helm recognizes the objects of a release.
const (
	annotationRelease          = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// Released reports whether an object has Helm's annotations for a release in Karpenter's namespace.
func Released(object *unstructured.Unstructured, release string) bool {
	annotations := object.GetAnnotations()
	return annotations[annotationRelease] == release && annotations[annotationReleaseNamespace] == ownership.Namespace
}

// Adopt is Apply for an object that a Helm release may have: it takes the object over from the release. What Helm has set and
// the manifest leaves out goes; what others have set stays, unless the object cannot be as the manifest with it. A Deployment
// whose pod template is that of the manifest keeps its pods. The object must carry the rack's label, or be a CRD that Sawhorse
// may take over.
func (c *Client) Adopt(ctx context.Context, rack, release string, manifest plan.Object) (Applied, error) {
	object, live, kind, err := c.read(ctx, manifest)
	if err != nil {
		return Applied{}, err
	}
	if kind != CustomResourceDefinition || live != nil && !mayAdopt(live) {
		if err := Owned(live, rack); err != nil {
			return Applied{}, err
		}
	}
	adopts := live != nil && live.GetDeletionTimestamp() == nil && Released(live, release)
	if adopts {
		if err := c.takeFields(ctx, kind, live); err != nil {
			return Applied{}, err
		}
	}
	applied, err := c.write(ctx, kind, live, object)
	if apierrors.IsInvalid(err) && live != nil {
		applied, err = c.overwrite(ctx, kind, live, object, err)
	}
	if err != nil || !adopts {
		return applied, err
	}
	applied.Adopted = true
	if !Released(applied.Live, release) { // nobody else has set the annotations
		return applied, nil
	}
	_, err = c.merge(ctx, kind, applied.Live, "take over", map[string]any{
		"annotations": map[string]any{annotationRelease: nil, annotationReleaseNamespace: nil},
	})
	return applied, err
}

// overwrite replaces the lists of an object by those of the manifest, and then applies it. An element that somebody else has put
// into a list stays otherwise, and may contradict the manifest's: two ports of a Service with one name. invalid is what the API
// server has said, which is the error if the manifest itself is invalid.
func (c *Client) overwrite(ctx context.Context, kind Kind, live, object *unstructured.Unstructured, invalid error) (Applied, error) {
	applied := Applied{Subject: Subject(object), Live: live}
	body, err := object.MarshalJSON()
	if err != nil {
		return applied, err
	}
	path, _ := lacking(object.Object, live.Object)
	list := Conflict{Manager: SetBy(live), Field: path, Wanted: wish(object.Object)}
	if err := c.rule(ctx, object, &list); err != nil || !list.Ruling.Write {
		applied.Action, applied.Contested = Unchanged, []Conflict{list}
		return applied, err
	}
	_, err = c.in(kind, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: ownership.FieldManager})
	switch {
	case apierrors.IsInvalid(err):
		return applied, invalid
	case err != nil:
		return applied, fmt.Errorf("%s: overwrite: %w", applied.Subject, err)
	}
	if applied, err = c.write(ctx, kind, live, object); err == nil {
		err = c.made(ctx, object, []Conflict{list})
	}
	applied.Contested = append(applied.Contested, list)
	return applied, err
}

// takeFields makes Sawhorse the manager of all fields of the manager that has set a release's annotations, whatever its name:
// "helm", a Terraform provider, or Sawhorse itself. If the object changed since it was read, IsConflict is true for the error.
func (c *Client) takeFields(ctx context.Context, kind Kind, live *unstructured.Unstructured) error {
	if c.readOnly {
		return fmt.Errorf("%s: it is one of a Helm release: %w", Subject(live), readonly.ErrWouldWrite)
	}
	helm := managerOf(live, "metadata", "annotations", annotationRelease)
	ours := &fieldpath.Set{}
	now := metav1.Now()
	taken := metav1.ManagedFieldsEntry{Manager: ownership.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: live.GetAPIVersion(), Time: &now, FieldsType: "FieldsV1"}
	var entries []metav1.ManagedFieldsEntry
	foreign := false
	for _, entry := range live.GetManagedFields() {
		own := entry.Manager == ownership.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || entry.FieldsV1 == nil || !own && (helm == "" || entry.Manager != helm) {
			entries = append(entries, entry)
			continue
		}
		foreign = foreign || !own
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.Raw)); err != nil {
			return fmt.Errorf("%s: managed fields: %w", Subject(live), err)
		}
		ours = ours.Union(fields)
	}
	if !foreign {
		return nil
	}
	raw, err := ours.ToJSON()
	if err != nil {
		return fmt.Errorf("%s: managed fields: %w", Subject(live), err)
	}
	taken.FieldsV1 = &metav1.FieldsV1{Raw: raw}
	_, err = c.merge(ctx, kind, live, "take over", map[string]any{
		"managedFields": append(entries, taken), "resourceVersion": live.GetResourceVersion(),
	})
	return err
}

// managerOf returns the manager of a field of an object, or "".
func managerOf(object *unstructured.Unstructured, path ...string) string {
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 != nil && holds(entry.FieldsV1.Raw, path) {
			return entry.Manager
		}
	}
	return ""
}

// ForgetRelease deletes Helm's records of a release in Karpenter's namespace, which are Secrets, and reports whether there were
// any. It reads their names and not their contents.
func (c *Client) ForgetRelease(ctx context.Context, release string) (bool, error) {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return false, fmt.Errorf("cluster %s: client: %w", c.config.Host, err)
	}
	secrets := client.Resource(Secret.resource).Namespace(ownership.Namespace)
	found, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	if err != nil {
		return false, fmt.Errorf("%s: list: %w", Secret.subject(ownership.Namespace, "*"), err)
	}
	any := false
	for i := range found.Items {
		record := &found.Items[i]
		if !strings.HasPrefix(record.Name, "sh.helm.release.v1."+release+".v") {
			continue // something else with Helm's labels
		}
		if err := c.Delete(ctx, Secret, record); err != nil {
			return any, err
		}
		any = true
	}
	return any, nil
}
