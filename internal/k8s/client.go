// Package k8s reaches the API server of a rack's cluster and does there what the steps share: apply, prune, and read
// conditions. It returns what it did and never waits or logs; its errors open with Kind/namespace/name and the phase.
package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// Client talks to one cluster's API server.
type Client struct {
	config  *rest.Config
	dynamic dynamic.Interface
}

// New makes a client of a configuration that has address and credentials, and sets the limits.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.UserAgent = 100, 200, names.FieldManager
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client: %w", config.Host, err)
	}
	// client-go shares connections between clients. One that slept while the Lambda was frozen may be dead without anyone
	// having told us: start with a new one.
	utilnet.CloseIdleConnectionsFor(client.Transport)
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client: %w", config.Host, err)
	}
	return &Client{config: config, dynamic: objects}, nil
}

// Config is a copy of the client's configuration, for Helm, which makes its own clients.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.config) }

func (c *Client) in(kind Kind, namespace string) dynamic.ResourceInterface {
	if !kind.namespaced {
		return c.dynamic.Resource(kind.resource)
	}
	return c.dynamic.Resource(kind.resource).Namespace(namespace)
}

// Get reads one object; nil where there is none, or where the cluster does not know the kind.
func (c *Client) Get(ctx context.Context, kind Kind, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := c.in(kind, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil {
		err = kind.is(object)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: get: %w", kind.subject(namespace, name), err)
	}
	return object, nil
}

// Update writes the wanted form of an object that was read, if it differs; true if it was written, and wanted is then what the
// API server has. An object that changed since is an error for which IsConflict is true.
func (c *Client) Update(ctx context.Context, kind Kind, live, wanted *unstructured.Unstructured) (bool, error) {
	if equality.Semantic.DeepEqual(live.Object, wanted.Object) {
		return false, nil
	}
	written, err := c.in(kind, live.GetNamespace()).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: names.FieldManager})
	if err != nil {
		return false, fmt.Errorf("%s: update: %w", Subject(live), err)
	}
	wanted.Object = written.Object
	return true, nil
}

// Annotate sets one annotation, whatever else changed meanwhile. An object that has gone is no error.
func (c *Client) Annotate(ctx context.Context, kind Kind, object *unstructured.Unstructured, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("%s: annotate: %w", Subject(object), err)
	}
	_, err = c.in(kind, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: annotate: %w", Subject(object), err)
	}
	return nil
}

// Unfinalize takes one finalizer off an object that was read; true if it was there. Those of others stay. An object that
// changed since is an error for which IsConflict is true; one that has gone is no error.
func (c *Client) Unfinalize(ctx context.Context, kind Kind, object *unstructured.Unstructured, finalizer string) (bool, error) {
	all := object.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == finalizer })
	if len(left) == len(all) {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": object.GetResourceVersion()}})
	if err != nil {
		return false, fmt.Errorf("%s: remove finalizer: %w", Subject(object), err)
	}
	_, err = c.in(kind, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("%s: remove finalizer: %w", Subject(object), err)
	}
	return err == nil, nil
}
