package k8stest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// Object is a decoded Kubernetes object.
type Object = map[string]any

// Cluster gives a test access to the API server, as an admin and in place of the controllers.
type Cluster struct {
	t       *testing.T
	Config  *rest.Config
	dynamic dynamic.Interface
}

// New returns the running API server for one test.
func New(t *testing.T) *Cluster {
	t.Helper()
	config := Config(t)
	config.QPS, config.Burst = 1000, 1000
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{t: t, Config: config, dynamic: client}
}

// As returns the configuration of a user who is in that group and in no other.
func (c *Cluster) As(group string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "test-" + group, Groups: []string{group}}
	return config
}

func (c *Cluster) in(object *unstructured.Unstructured) dynamic.ResourceInterface {
	version := object.GroupVersionKind()
	plural := strings.ToLower(version.Kind) + "s"
	if strings.HasSuffix(version.Kind, "Class") {
		plural = strings.ToLower(version.Kind) + "es"
	}
	resource := c.dynamic.Resource(version.GroupVersion().WithResource(plural))
	if object.GetNamespace() == "" {
		return resource
	}
	return resource.Namespace(object.GetNamespace())
}

// Create creates an object and its status as another manager, and removes it when the test ends.
func (c *Cluster) Create(object Object) *unstructured.Unstructured {
	c.t.Helper()
	wanted := copied(c.t, object)
	made, err := c.in(wanted).Create(context.Background(), wanted, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		c.t.Fatalf("%s/%s: create: %v", wanted.GetKind(), wanted.GetName(), err)
	}
	c.t.Cleanup(func() { c.Remove(object) })
	if status, ok := object["status"]; ok {
		return c.Status(object, status)
	}
	return made
}

// Get reads an object by its kind and name. It returns nil if there is none.
func (c *Cluster) Get(object Object) *unstructured.Unstructured {
	c.t.Helper()
	wanted := copied(c.t, object)
	live, err := c.in(wanted).Get(context.Background(), wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return live
}

// Change edits an object as another manager.
func (c *Cluster) Change(object Object, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
	c.t.Helper()
	live := c.Get(object)
	edit(live)
	changed, err := c.in(live).Update(context.Background(), live, metav1.UpdateOptions{FieldManager: "somebody"})
	if err != nil {
		c.t.Fatal(err)
	}
	return changed
}

// Status writes an object's status like its controller would.
func (c *Cluster) Status(object Object, status any) *unstructured.Unstructured {
	c.t.Helper()
	live := c.Get(object)
	live.Object["status"] = copied(c.t, Object{"kind": "x", "status": status}).Object["status"]
	changed, err := c.in(live).UpdateStatus(context.Background(), live, metav1.UpdateOptions{FieldManager: "controller"})
	if err != nil {
		c.t.Fatal(err)
	}
	return changed
}

// RolledOut writes the status of a Deployment whose rollout is complete.
func (c *Cluster) RolledOut(object Object) {
	c.t.Helper()
	live := c.Get(object)
	replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	c.Status(object, Object{"observedGeneration": live.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas})
}

// Remove deletes an object, with or without finalizers. It ignores an object that does not exist.
func (c *Cluster) Remove(object Object) {
	c.t.Helper()
	live := c.Get(object)
	if live == nil {
		return
	}
	if len(live.GetFinalizers()) > 0 {
		_, err := c.in(live).Patch(context.Background(), live.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			c.t.Fatal(err)
		}
	}
	zero := int64(0)
	err := c.in(live).Delete(context.Background(), live.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &zero})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

// List reads all objects of a resource in all namespaces.
func (c *Cluster) List(group, version, resource string) []unstructured.Unstructured {
	c.t.Helper()
	list, err := c.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).
		List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// InstallCRDs installs the CustomResourceDefinitions of Karpenter's default version, and waits until they are established.
func (c *Cluster) InstallCRDs() {
	c.t.Helper()
	if established && c.Get(Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "nodepools.karpenter.sh"}}) != nil {
		return
	}
	crds, err := karpenter.Default().CRDs()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, text := range crds {
		var object Object
		if err := yaml.Unmarshal(text, &object); err != nil {
			c.t.Fatal(err)
		}
		if c.Get(object) == nil {
			wanted := copied(c.t, object)
			if _, err := c.in(wanted).Create(context.Background(), wanted, metav1.CreateOptions{}); err != nil {
				c.t.Fatal(err)
			}
		}
		Eventually(c.t, func() bool {
			established, _ := k8s.Established(c.Get(object))
			return established
		})
	}
	established = true
}

// established reports whether an earlier test of this process, which has one API server, has installed the CRDs.
var established bool

// ReplaceCRDs replaces installed CustomResourceDefinitions by others of the same names, given in YAML, and waits until the
// API server accepts an object under them.
func (c *Cluster) ReplaceCRDs(crds map[string][]byte, probe Object) {
	c.t.Helper()
	for name, text := range crds {
		var object Object
		if err := yaml.Unmarshal(text, &object); err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		if c.Get(object) == nil {
			continue // a kind that plans have no objects of
		}
		Eventually(c.t, func() bool {
			live := c.Get(object)
			live.Object["spec"] = object["spec"]
			_, err := c.in(live).Update(context.Background(), live, metav1.UpdateOptions{})
			if err != nil && !apierrors.IsConflict(err) { // the API server itself writes the status
				c.t.Fatalf("%s: %v", name, err)
			}
			return err == nil
		})
	}
	var last error
	c.t.Cleanup(func() {
		if last != nil {
			c.t.Logf("the last answer about the new CRDs: %v", last)
		}
	})
	Eventually(c.t, func() bool {
		wanted := copied(c.t, probe)
		_, last = c.in(wanted).Apply(context.Background(), wanted.GetName(), wanted,
			metav1.ApplyOptions{FieldManager: "probe", Force: true, DryRun: []string{metav1.DryRunAll}})
		return last == nil
	})
}

// Eventually polls until done returns true, for what the API server does with a delay.
func Eventually(t *testing.T, done func() bool) {
	t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("not within 30 s")
}

func copied(t *testing.T, object Object) *unstructured.Unstructured {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return made
}
