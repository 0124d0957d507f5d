package k8s

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// page is the number of objects in one request. All pods of a large cluster at once would exceed a function's
	// memory.
	page = 200
	// pages limits the number of pages. They hold more objects than the 150,000 pods that Kubernetes supports in a
	// cluster.
	pages = 1000
)

// List reads the objects of a kind in one namespace ("" means all) with a label selector ("" means all). If the cluster
// does not know the kind, the list is empty.
func (c *Client) List(ctx context.Context, kind Kind, namespace, labels string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	err := c.Each(ctx, kind, namespace, labels, func(object *unstructured.Unstructured) error {
		all = append(all, *object)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Typed reads the objects of a kind like List, as their Go type.
func Typed[T any](ctx context.Context, c *Client, kind Kind, namespace, labels string) ([]T, error) {
	var all []T
	err := c.Each(ctx, kind, namespace, labels, func(object *unstructured.Unstructured) error {
		one, err := As[T](object)
		if err == nil {
			all = append(all, *one)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Each reads the objects of a kind like List, and calls do for each.
func (c *Client) Each(ctx context.Context, kind Kind, namespace, labels string, do func(*unstructured.Unstructured) error) error {
	return c.each(ctx, kind, namespace, metav1.ListOptions{LabelSelector: labels}, do)
}

// Where is Each for the objects of all namespaces that a field selector selects. The API server selects them, so that a
// kind with very many objects costs little where few of them are of interest.
func (c *Client) Where(ctx context.Context, kind Kind, fields string, do func(*unstructured.Unstructured) error) error {
	return c.each(ctx, kind, "", metav1.ListOptions{FieldSelector: fields}, do)
}

func (c *Client) each(ctx context.Context, kind Kind, namespace string, of metav1.ListOptions,
	do func(*unstructured.Unstructured) error) error {
	of.Limit = page
	for range pages {
		list, err := c.in(kind, namespace).List(ctx, of)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: list: %w", kind.subject(namespace, "*"), err)
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if of.Continue = list.GetContinue(); of.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("%s: list: the API server still names a further page after %d of them; look at who answers in its place",
		kind.subject(namespace, "*"), pages)
}
