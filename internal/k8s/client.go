// Package k8s talks to the API server of a rack's cluster. It has what the steps share: apply, prune, and reading
// conditions. Functions return what they did and never wait or log. Errors start with Kind/namespace/name and the
// operation.
package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Client talks to one cluster's API server.
type Client struct {
	config  *rest.Config
	http    *http.Client
	dynamic dynamic.Interface
	// readOnly refuses writes.
	readOnly bool
	// arbiter decides about fields that other managers hold. If it is nil, they are set back.
	arbiter *arbiter
}

// New returns a client for a configuration that has address and credentials. It sets the rate limits, and installs the
// transport that tells temporary errors from others. name is the cluster's name, for error messages.
func New(name string, config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{next, name, requestTimeout, new(atomic.Int32)}
	})
	return open(config)
}

// open makes the client, for a configuration that has the transport.
func open(config *rest.Config) (*Client, error) {
	config.QPS, config.Burst, config.UserAgent = 100, 200, ownership.FieldManager
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client: %w", config.Host, err)
	}
	// client-go shares connections between clients. A connection from before the function was frozen may be dead
	// without any error yet, so start with a new one.
	utilnet.CloseIdleConnectionsFor(client.Transport)
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client: %w", config.Host, err)
	}
	return &Client{config: config, http: client, dynamic: objects}, nil
}

func (c *Client) in(kind Kind, namespace string) dynamic.ResourceInterface {
	if !kind.namespaced {
		return c.dynamic.Resource(kind.resource)
	}
	return c.dynamic.Resource(kind.resource).Namespace(namespace)
}

// Get reads one object. It returns nil if the object or its kind does not exist.
func (c *Client) Get(ctx context.Context, kind Kind, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := c.in(kind, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: get: %w", kind.subject(namespace, name), err)
	}
	return object, nil
}

// Create creates an object, and returns its Kind/namespace/name. One of that name that exists is left as it is.
func (c *Client) Create(ctx context.Context, manifest map[string]any) (subject string, err error) {
	object, kind, err := decode(manifest)
	if err != nil {
		return "", err
	}
	_, err = c.in(kind, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{FieldManager: ownership.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("%s: create: %w", Subject(object), err)
	}
	return Subject(object), nil
}

// Update writes the wanted form of an object that was read, if it differs. It reports whether it wrote; wanted is then
// the object as written. If the object changed since it was read, IsConflict is true for the error.
func (c *Client) Update(ctx context.Context, kind Kind, live, wanted *unstructured.Unstructured) (bool, error) {
	if equality.Semantic.DeepEqual(live.Object, wanted.Object) {
		return false, nil
	}
	written, err := c.in(kind, live.GetNamespace()).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: ownership.FieldManager})
	if err != nil {
		return false, fmt.Errorf("%s: update: %w", Subject(live), err)
	}
	wanted.Object = written.Object
	return true, nil
}

// SetAnnotation sets an annotation of an object in memory. An empty value removes it.
func SetAnnotation(object *unstructured.Unstructured, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, object.GetAnnotations())
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}

// Annotate sets one annotation, whatever else changed since the object was read. It ignores an object that no longer
// exists.
func (c *Client) Annotate(ctx context.Context, kind Kind, object *unstructured.Unstructured, key, value string) error {
	_, err := c.merge(ctx, kind, object, "annotate", map[string]any{"annotations": map[string]string{key: value}})
	return err
}

// Note sets labels and annotations of an object that was read, and removes those that are nil. If the object changed since it was
// read, IsConflict is true for the error. It ignores an object that no longer exists.
func (c *Client) Note(ctx context.Context, kind Kind, object *unstructured.Unstructured, labels, annotations map[string]any) error {
	_, err := c.merge(ctx, kind, object, "note", map[string]any{
		"labels": labels, "annotations": annotations, "resourceVersion": object.GetResourceVersion(),
	})
	return err
}

// Unfinalize removes one finalizer from an object that was read, and reports whether it did. Other finalizers stay. If
// the object changed since it was read, IsConflict is true for the error. It ignores an object that no longer exists.
func (c *Client) Unfinalize(ctx context.Context, kind Kind, object *unstructured.Unstructured, finalizer string) (bool, error) {
	all := object.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == finalizer })
	if len(left) == len(all) {
		return false, nil
	}
	return c.merge(ctx, kind, object, "remove finalizer",
		map[string]any{"finalizers": left, "resourceVersion": object.GetResourceVersion()})
}

// merge merges fields into the metadata of an object, and reports whether the object still exists. what is the operation's
// name in the error.
func (c *Client) merge(ctx context.Context, kind Kind, object *unstructured.Unstructured, what string,
	metadata map[string]any) (bool, error) {
	return c.mergeFields(ctx, kind, object, what, map[string]any{"metadata": metadata})
}

// mergeFields is merge for any fields of an object.
func (c *Client) mergeFields(ctx context.Context, kind Kind, object *unstructured.Unstructured, what string,
	fields map[string]any) (bool, error) {
	patch, err := json.Marshal(fields)
	if err == nil {
		_, err = c.in(kind, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: ownership.FieldManager})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("%s: %s: %w", Subject(object), what, err)
	}
	return err == nil, nil
}

// Taint gives a node that was read these taints, and no others. If the node changed since it was read, IsConflict is true for the
// error. It ignores a node that no longer exists.
func (c *Client) Taint(ctx context.Context, node *unstructured.Unstructured, taints []any) error {
	_, err := c.mergeFields(ctx, Node, node, "taint", map[string]any{
		"metadata": map[string]any{"resourceVersion": node.GetResourceVersion()}, "spec": map[string]any{"taints": taints},
	})
	return err
}

// Ours lists the objects of a kind that carry the rack's label, including those being deleted.
func (c *Client) Ours(ctx context.Context, kind Kind, rack string) ([]unstructured.Unstructured, error) {
	return c.List(ctx, kind, "", ownership.TagRack+"="+rack)
}

// Prune deletes the objects of a kind that carry the rack's label and are not wanted by name. It deletes nothing else,
// and returns the subjects of the deleted objects.
func (c *Client) Prune(ctx context.Context, kind Kind, rack string, wanted []string) ([]string, error) {
	objects, err := c.Ours(ctx, kind, rack)
	if err != nil {
		return nil, err
	}
	var deleted []string
	for i := range objects {
		object := &objects[i]
		if slices.Contains(wanted, object.GetName()) || object.GetDeletionTimestamp() != nil {
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
func (c *Client) Delete(ctx context.Context, kind Kind, object metav1.Object) error {
	uid := object.GetUID()
	err := c.in(kind, object.GetNamespace()).Delete(ctx, object.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: delete: %w", kind.subject(object.GetNamespace(), object.GetName()), err)
	}
	return nil
}
