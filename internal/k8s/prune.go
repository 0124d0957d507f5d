package k8s

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Ours lists the objects of a kind that carry the rack's label, including those being deleted.
func (c *Client) Ours(ctx context.Context, kind Kind, rack string) ([]unstructured.Unstructured, error) {
	return c.List(ctx, kind, "", ownership.TagRack+"="+rack)
}

// Prune deletes the objects of a kind that carry the rack's label and are not wanted by name. It deletes nothing else,
// and returns the subjects of the deleted objects.
func (c *Client) Prune(ctx context.Context, kind Kind, rack string, wanted map[string]bool) ([]string, error) {
	objects, err := c.Ours(ctx, kind, rack)
	if err != nil {
		return nil, err
	}
	var deleted []string
	for i := range objects {
		object := &objects[i]
		if wanted[object.GetName()] || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := c.Delete(ctx, kind, object); err != nil {
			return deleted, err
		}
		deleted = append(deleted, Subject(object))
	}
	return deleted, nil
}

// Delete deletes an object that was read, but not a later object of the same name. It ignores an object that no longer
// exists.
func (c *Client) Delete(ctx context.Context, kind Kind, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	err := c.in(kind, object.GetNamespace()).Delete(ctx, object.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: delete: %w", Subject(object), err)
	}
	return nil
}
