package k8s_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func reading(t *testing.T, cluster *k8stest.Cluster) *k8s.Client {
	t.Helper()
	c, err := client(t, cluster.Config).ReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every write of the client is refused, whatever the caller's rights.
func TestAReadOnlyClientWritesNothing(t *testing.T) {
	cluster := k8stest.New(t)
	c := reading(t, cluster)
	live := cluster.Create(account("read-only", "demo", nil))
	wanted := live.DeepCopy()
	wanted.SetAnnotations(map[string]string{"a": "1"})
	wanted.SetFinalizers([]string{"example.com/a"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	for what, call := range map[string]func() error{
		"update":     func() error { _, err := c.Update(ctx, k8s.ServiceAccount, live, wanted); return err },
		"annotate":   func() error { return c.Annotate(ctx, k8s.ServiceAccount, live, "a", "1") },
		"unfinalize": func() error { _, err := c.Unfinalize(ctx, k8s.ServiceAccount, wanted, "example.com/a"); return err },
		"delete":     func() error { return c.Delete(ctx, k8s.ServiceAccount, live) },
		"prune":      func() error { _, err := c.Prune(ctx, k8s.ServiceAccount, "demo", nil); return err },
		"delete pod": func() error { return c.Delete(ctx, k8s.Pod, pod) },
		"evict": func() error {
			_, err := c.Evict(ctx, &unstructured.Unstructured{Object: map[string]any{
				"kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "default"},
			}})
			return err
		},
		"create":          func() error { _, err := c.Create(ctx, account("read-only-too", "demo", nil)); return err },
		"create by apply": func() error { _, err := c.Apply(ctx, "demo", account("read-only-too", "demo", nil)); return err },
		"change by apply": func() error {
			_, err := c.Apply(ctx, "demo", account("read-only", "demo", map[string]any{"a": "1"}))
			return err
		},
	} {
		if err := call(); !errors.Is(err, readonly.ErrWouldWrite) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := cluster.Get(account("read-only", "demo", nil)); after.GetResourceVersion() != live.GetResourceVersion() {
		t.Error("something was written")
	}
	if changed, err := c.Update(ctx, k8s.ServiceAccount, live, live.DeepCopy()); changed || err != nil {
		t.Errorf("an update that changes nothing: %v, %v", changed, err)
	}
}

// A manifest that is made from a live object has its version. Somebody may write another field before it is compared.
func TestAManifestOfAnEarlierVersionIsCompared(t *testing.T) {
	cluster := k8stest.New(t)
	c := reading(t, cluster)
	live := cluster.Create(account("earlier", "demo", map[string]any{"a": "1"}))
	manifest := account("earlier", "demo", map[string]any{"a": "1"})
	manifest["metadata"].(map[string]any)["resourceVersion"] = live.GetResourceVersion()
	cluster.Change(manifest, func(object *unstructured.Unstructured) { object.SetFinalizers([]string{"example.com/theirs"}) })
	if applied, err := c.Apply(ctx, "demo", manifest); err != nil || applied.Action != k8s.Unchanged {
		t.Errorf("%v, %v", applied.Action, err)
	}
	if manifest["metadata"].(map[string]any)["resourceVersion"] != live.GetResourceVersion() {
		t.Error("the manifest was changed")
	}
}

func TestReadOnlyConnectsOnce(t *testing.T) {
	calls := 0
	connect := k8s.ReadOnly(func(context.Context, plan.Cluster) (*k8s.Client, error) {
		calls++
		return nil, k8s.ErrGone
	})
	for range 2 {
		if _, err := connect(ctx, plan.Cluster{}); !errors.Is(err, k8s.ErrGone) {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("connected %d times", calls)
	}
}

// workload is a Deployment and a Service with what an API server defaults, sorts and normalizes.
func workload() []plan.Object {
	meta := map[string]any{"name": "compare", "namespace": "default", "labels": map[string]any{ownership.TagRack: "demo"}}
	pod := map[string]any{"app": "compare"}
	return []plan.Object{{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": map[string]any{"replicas": 2, "selector": map[string]any{"matchLabels": pod}, "template": map[string]any{
			"metadata": map[string]any{"labels": pod, "creationTimestamp": nil},
			"spec": map[string]any{
				"hostNetwork": false, "securityContext": map[string]any{},
				"tolerations": []any{map[string]any{"key": "a", "operator": "Exists"}},
				"volumes":     []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}},
				"containers": []any{map[string]any{
					"name": "main", "image": "example.com/main:1", "args": []any{"--a", "--b"},
					"ports":        []any{map[string]any{"name": "http", "containerPort": 8080}},
					"env":          []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "EMPTY", "value": ""}},
					"resources":    map[string]any{"requests": map[string]any{"cpu": 1, "memory": "1024Mi"}, "limits": map[string]any{"cpu": "1500m"}},
					"volumeMounts": []any{map[string]any{"name": "tmp", "mountPath": "/tmp", "readOnly": false}},
				}},
			}}},
	}, {
		"apiVersion": "v1", "kind": "Service", "metadata": meta,
		"spec": map[string]any{"selector": pod, "ports": []any{map[string]any{"name": "http", "port": 80, "targetPort": "http"}}},
	}}
}

// An object that was applied, and to which others have added what is theirs, is as its manifest says.
func TestWhatWasAppliedIsAsItShouldBe(t *testing.T) {
	cluster := k8stest.New(t)
	writer, c := client(t, cluster.Config), reading(t, cluster)
	for _, object := range workload() {
		t.Cleanup(func() { cluster.Remove(object) })
		if _, err := writer.Apply(ctx, "demo", object); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Change(workload()[0], func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"theirs": "1"})
		edit(o, func(container map[string]any) {
			container["env"] = append([]any{map[string]any{"name": "THEIRS", "value": "1"}}, container["env"].([]any)...)
		})
		containers, _, _ := unstructured.NestedSlice(o.Object, template("containers")...)
		sidecar := map[string]any{"name": "sidecar", "image": "example.com/sidecar:1"}
		_ = unstructured.SetNestedSlice(o.Object, append([]any{sidecar}, containers...), template("containers")...)
	})
	for _, object := range workload() {
		if applied, err := c.Apply(ctx, "demo", object); err != nil || applied.Action != k8s.Unchanged || applied.Live == nil {
			t.Errorf("%s: %s, %v", applied.Subject, applied.Action, err)
		}
	}
}

func template(field string) []string { return []string{"spec", "template", "spec", field} }

// edit changes the first container.
func edit(o *unstructured.Unstructured, change func(container map[string]any)) {
	containers, _, _ := unstructured.NestedSlice(o.Object, template("containers")...)
	change(containers[0].(map[string]any))
	_ = unstructured.SetNestedSlice(o.Object, containers, template("containers")...)
}

// What somebody else has changed or taken away is found, and named.
func TestWhatWasChangedIsFound(t *testing.T) {
	cluster := k8stest.New(t)
	writer, c := client(t, cluster.Config), reading(t, cluster)
	object := workload()[0]
	t.Cleanup(func() { cluster.Remove(object) })
	for where, change := range map[string]func(*unstructured.Unstructured){
		".spec.replicas": func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
		},
		".containers[main].image": func(o *unstructured.Unstructured) {
			edit(o, func(c map[string]any) { c["image"] = "example.com/main:2" })
		},
		".containers[main].args": func(o *unstructured.Unstructured) { edit(o, func(c map[string]any) { c["args"] = []any{"--a"} }) },
		".env[A].value": func(o *unstructured.Unstructured) {
			edit(o, func(c map[string]any) { c["env"].([]any)[0].(map[string]any)["value"] = "2" })
		},
		".env[EMPTY]": func(o *unstructured.Unstructured) {
			edit(o, func(c map[string]any) { c["env"] = c["env"].([]any)[:1] })
		},
		".ports[8080 TCP]":           func(o *unstructured.Unstructured) { edit(o, func(c map[string]any) { delete(c, "ports") }) },
		".resources.requests.memory": func(o *unstructured.Unstructured) { edit(o, func(c map[string]any) { request(c, "memory", "2Gi") }) },
		".volumeMounts[/tmp]":        func(o *unstructured.Unstructured) { edit(o, func(c map[string]any) { delete(c, "volumeMounts") }) },
		".spec.tolerations": func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, template("tolerations")...)
		},
		".spec.tolerations[0].key": func(o *unstructured.Unstructured) { tolerate(o, "b") },
	} {
		if _, err := writer.Apply(ctx, "demo", object); err != nil {
			t.Fatal(err)
		}
		cluster.Change(object, change)
		_, err := c.Apply(ctx, "demo", object)
		if !errors.Is(err, readonly.ErrWouldWrite) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func request(container map[string]any, resource, quantity string) {
	_ = unstructured.SetNestedField(container, quantity, "resources", "requests", resource)
}

func tolerate(o *unstructured.Unstructured, key string) {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"key": key, "operator": "Exists"}}, template("tolerations")...)
}

// Removing an object that is being deleted already is no write.
func TestWhatIsBeingDeleted(t *testing.T) {
	cluster := k8stest.New(t)
	object := account("terminating", "demo", nil)
	object["metadata"].(map[string]any)["finalizers"] = []any{"example.com/a"}
	live := cluster.Create(object)
	if err := client(t, cluster.Config).Delete(ctx, k8s.ServiceAccount, live); err != nil {
		t.Fatal(err)
	}
	if applied, err := reading(t, cluster).Apply(ctx, "demo", object); err != nil || applied.Action != k8s.Terminating {
		t.Errorf("%s, %v", applied.Action, err)
	}
}
