package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// controller returns a Deployment as a chart makes it, with further annotations and variables of the container.
func controller(annotations map[string]any, variables ...string) plan.Object {
	env := []any{}
	for _, name := range variables {
		env = append(env, map[string]any{"name": name, "value": "1"})
	}
	labels := map[string]any{ownership.TagRack: "demo", "app.kubernetes.io/managed-by": ownership.ManagedBy}
	if annotations != nil {
		labels["app.kubernetes.io/managed-by"], labels["of-helm"] = "Helm", "x"
	}
	selected := map[string]any{"app": "karpenter"}
	return plan.Object{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "karpenter", "namespace": "kube-system", "labels": labels, "annotations": annotations},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": selected},
			"template": map[string]any{"metadata": map[string]any{"labels": selected},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "env": env}}}}}}
}

// ofRelease are Helm's annotations.
func ofRelease() map[string]any {
	return map[string]any{"meta.helm.sh/release-name": "karpenter", "meta.helm.sh/release-namespace": "kube-system", "theirs": "x"}
}

// install writes an object as a Helm of a version does, by apply or by update.
func install(t *testing.T, cluster *k8stest.Cluster, manager string, apply bool, object plan.Object) {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("kube-system")
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if apply {
		_, err = resource.Patch(ctx, "karpenter", types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager})
	} else {
		made := &unstructured.Unstructured{}
		if err := made.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		_, err = resource.Create(ctx, made, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Remove(object) })
}

// An object of a Helm release becomes Sawhorse's, whichever Helm has made it: what only Helm has set goes, what others have set
// stays, and a template that is the same stays, and so do its pods.
func TestAdopt(t *testing.T) {
	for _, of := range []struct {
		manager string
		apply   bool
	}{{"helm", true}, {"helm", false}, {"terraform-provider-helm", false}, {ownership.FieldManager, true}} {
		t.Run(fmt.Sprint(of.manager, of.apply), func(t *testing.T) {
			cluster := k8stest.New(t)
			c := client(t, cluster.Config)
			install(t, cluster, of.manager, of.apply, controller(ofRelease(), "A"))
			was := cluster.Change(controller(nil), func(o *unstructured.Unstructured) {
				labels := o.GetLabels()
				labels["of-somebody"] = "y"
				o.SetLabels(labels)
			})
			reader, err := c.ReadOnly()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Adopt(ctx, "demo", "karpenter", controller(nil, "A")); !errors.Is(err, readonly.ErrWouldWrite) {
				t.Errorf("an audit: %v", err)
			}
			applied, err := c.Adopt(ctx, "demo", "karpenter", controller(nil, "A"))
			if err != nil || !applied.Adopted || len(applied.Contested) > 0 {
				t.Fatalf("%+v, %v", applied, err)
			}
			is := cluster.Get(controller(nil))
			want := map[string]string{ownership.TagRack: "demo", "app.kubernetes.io/managed-by": "Sawhorse", "of-somebody": "y"}
			if is.GetUID() != was.GetUID() || !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) || len(is.GetAnnotations()) > 0 ||
				!maps.Equal(is.GetLabels(), want) {
				t.Errorf("%v, before %v, annotations %v, labels %v", is.Object["spec"], was.Object["spec"], is.GetAnnotations(), is.GetLabels())
			}
			for _, entry := range is.GetManagedFields() {
				ours := entry.Manager == ownership.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
				if !ours && entry.Manager != "somebody" {
					t.Errorf("managed by %s (%s)", entry.Manager, entry.Operation)
				}
			}
			applied, err = c.Adopt(ctx, "demo", "karpenter", controller(nil, "A"))
			if err != nil || applied.Adopted || applied.Action != k8s.Unchanged {
				t.Errorf("again: %+v, %v", applied, err)
			}
			t.Log("a field that the manifest does not have any more")
			if _, err := c.Adopt(ctx, "demo", "karpenter", controller(nil)); err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(cluster.Get(controller(nil)).Object["spec"]); strings.Contains(text, "env") {
				t.Error(text)
			}
		})
	}
}

// What Helm alone has set in the pods goes with the adoption.
func TestAdoptRemovesWhatOnlyHelmHasSet(t *testing.T) {
	cluster := k8stest.New(t)
	install(t, cluster, "helm", false, controller(ofRelease(), "A", "B"))
	if _, err := client(t, cluster.Config).Adopt(ctx, "demo", "karpenter", controller(nil, "B")); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(cluster.Get(controller(nil)).Object["spec"]); strings.Contains(text, "name:A") || !strings.Contains(text, "name:B") {
		t.Error(text)
	}
}

// A Helm release of somebody who has not handed it over stays as it is, and so does another release's object.
func TestAdoptsOnlyWhatIsTheRacks(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	theirs := controller(ofRelease())
	delete(theirs["metadata"].(map[string]any)["labels"].(map[string]any), ownership.TagRack)
	install(t, cluster, "helm", true, theirs)
	was := cluster.Get(theirs)
	var unmanaged *k8s.Unmanaged
	if _, err := c.Adopt(ctx, "demo", "karpenter", controller(nil)); !errors.As(err, &unmanaged) {
		t.Errorf("%v", err)
	}
	if is := cluster.Get(theirs); is.GetResourceVersion() != was.GetResourceVersion() {
		t.Error("it was changed")
	}
}

// Only Helm's records of the release go.
func TestForgetRelease(t *testing.T) {
	cluster := k8stest.New(t)
	secret := func(name, release, namespace string) plan.Object {
		return plan.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": namespace,
			"labels": map[string]any{"owner": "helm", "name": release}}}
	}
	records := []plan.Object{
		secret("sh.helm.release.v1.karpenter.v1", "karpenter", "kube-system"),
		secret("sh.helm.release.v1.karpenter.v2", "karpenter", "kube-system"),
	}
	others := []plan.Object{
		secret("sh.helm.release.v1.karpenter-crd.v1", "karpenter-crd", "kube-system"), secret("a-password", "karpenter", "kube-system"),
		secret("sh.helm.release.v1.karpenter.v1", "karpenter", "default"),
	}
	for _, object := range append(records, others...) {
		cluster.Create(object)
	}
	c := client(t, cluster.Config)
	for _, want := range []bool{true, false} {
		if any, err := c.ForgetRelease(ctx, "karpenter"); err != nil || any != want {
			t.Errorf("%v, %v", any, err)
		}
	}
	for _, object := range records {
		if cluster.Get(object) != nil {
			t.Errorf("%v is there", object["metadata"])
		}
	}
	for _, object := range others {
		if cluster.Get(object) == nil {
			t.Errorf("%v is gone", object["metadata"])
		}
	}
}

// Everybody with an identity may ask which APIs there are.
func TestServes(t *testing.T) {
	cluster := k8stest.New(t)
	config := cluster.As("system:authenticated")
	for api, want := range map[string]bool{"apps/v1": true, plan.MonitorAPI: false, "apps/v9": false} {
		if serves, err := client(t, config).Serves(context.Background(), api); err != nil || serves != want {
			t.Errorf("%s: %v, %v", api, serves, err)
		}
	}
	config.Host = "https://127.0.0.1:1"
	if _, err := client(t, config).Serves(ctx, "apps/v1"); err == nil {
		t.Error("an API server that does not answer serves nothing")
	}
}

// The API server's own defaults of RollingUpdate, which nobody owns, keep no Deployment from becoming one of the type Recreate.
func TestAdoptFromRollingUpdateToRecreate(t *testing.T) {
	cluster := k8stest.New(t)
	with := func(strategy map[string]any) plan.Object {
		object := controller(nil)
		object["spec"].(map[string]any)["strategy"] = strategy
		return object
	}
	t.Cleanup(func() { cluster.Remove(controller(nil)) })
	for _, strategy := range []map[string]any{
		{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": 1}}, {"type": "Recreate"},
		{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": 1}},
	} {
		applied, err := client(t, cluster.Config).Adopt(ctx, "demo", "karpenter", with(strategy))
		if err != nil {
			t.Fatalf("%v: %v", strategy, err)
		}
		live, _, _ := unstructured.NestedString(applied.Live.Object, "spec", "strategy", "type")
		if live != strategy["type"] {
			t.Errorf("%v: %s", strategy, live)
		}
	}
}
