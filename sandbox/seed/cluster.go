package seed

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

//go:embed cluster.yaml
var manifests []byte

//go:embed standin.yaml
var standIn []byte

// resources are the kinds in the manifests, by their names in the API.
var resources = map[string]schema.GroupVersionResource{
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"Node":               {Version: "v1", Resource: "nodes"},
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"ConfigMap":          {Version: "v1", Resource: "configmaps"},
	"Deployment":         {Group: "apps", Version: "v1", Resource: "deployments"},
}

// Objects returns the objects of a cluster.
func Objects(cluster string) ([]*unstructured.Unstructured, error) {
	objects, err := decode(bytes.ReplaceAll(manifests, []byte("$(CLUSTER)"), []byte(cluster)))
	if err != nil {
		return nil, fmt.Errorf("seed: cluster.yaml: %w", err)
	}
	return objects, nil
}

// StandIn returns the objects of a cluster whose API server is a stand-in.
func StandIn(cluster string) ([]*unstructured.Unstructured, error) {
	own, err := decode(standIn)
	if err != nil {
		return nil, fmt.Errorf("seed: standin.yaml: %w", err)
	}
	objects, err := Objects(cluster)
	return append(own, objects...), err
}

// Cluster applies the objects of the cluster that every sandbox has, and waits until every Deployment is Available.
func Cluster(ctx context.Context, cfg *rest.Config) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("seed: cluster client: %w", err)
	}
	objects, err := Objects(ClusterName)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := apply(ctx, client, object); err != nil {
			return fmt.Errorf("seed: %s %s/%s: apply: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
	}
	return available(ctx, cfg)
}

func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if _, ok := resources[object.GetKind()]; !ok {
			return nil, fmt.Errorf("no resource known for kind %q", object.GetKind())
		}
		objects = append(objects, object)
	}
}

// apply is server-side apply, as `kubectl apply --server-side` by the user who created the cluster.
func apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource := client.Resource(resources[object.GetKind()])
	options := metav1.ApplyOptions{FieldManager: "kubectl", Force: true}
	var err error
	if namespace := object.GetNamespace(); namespace != "" {
		_, err = resource.Namespace(namespace).Apply(ctx, object.GetName(), object, options)
	} else {
		_, err = resource.Apply(ctx, object.GetName(), object, options)
	}
	return err
}

func available(ctx context.Context, cfg *rest.Config) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("seed: cluster client: %w", err)
	}
	waiting := "no Deployment seen yet"
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if d := &list.Items[i]; !ready(d) {
				waiting = d.Namespace + "/" + d.Name
				return false, nil
			}
		}
		return len(list.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("seed: wait for Deployments (%s): %w", waiting, err)
	}
	return nil
}

func ready(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Spec.Replicas != nil &&
		d.Status.AvailableReplicas == *d.Spec.Replicas
}
