package k8s_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

var ctx = context.Background()

func client(t *testing.T, config *rest.Config) *k8s.Client {
	t.Helper()
	c, err := k8s.New("test", config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func account(name, rack string, annotations map[string]any) plan.Object {
	meta := map[string]any{"name": name, "namespace": "default", "annotations": annotations}
	if rack != "" {
		meta["labels"] = map[string]any{ownership.TagRack: rack}
	}
	return plan.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
}

func TestApply(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	apply := func(object plan.Object, want string) k8s.Applied {
		t.Helper()
		applied, err := c.Apply(ctx, "demo", object)
		if err != nil {
			t.Fatal(err)
		}
		if applied.Action != want || applied.Subject != "ServiceAccount/default/apply" {
			t.Fatalf("%s %s, want %s", applied.Subject, applied.Action, want)
		}
		return applied
	}
	object := account("apply", "demo", map[string]any{"a": "1", "b": "2"})
	t.Cleanup(func() { cluster.Remove(object) })

	// creates
	first := apply(object, k8s.Created)
	// does nothing
	if again := apply(object, k8s.Unchanged); again.Live.GetResourceVersion() != first.Live.GetResourceVersion() || again.Changed() {
		t.Error("the second apply wrote something")
	}
	// keeps what others add
	cluster.Change(object, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"a": "1", "b": "2", "theirs": "x"})
	})
	apply(object, k8s.Unchanged)
	// changes only what differs, and removes what is no longer in the manifest
	changed := apply(account("apply", "demo", map[string]any{"a": "3"}), k8s.Updated)
	got := changed.Live.GetAnnotations()
	if got["a"] != "3" || got["theirs"] != "x" || len(got) != 2 {
		t.Errorf("the annotations are %v", got)
	}
	// sets back a field that another manager has set, and reports it
	cluster.Change(object, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "no"}) })
	contested := apply(account("apply", "demo", map[string]any{"a": "3"}), k8s.Updated)
	if len(contested.Contested) != 1 || contested.Contested[0].Manager != "somebody" ||
		contested.Live.GetAnnotations()["a"] != "3" {
		t.Errorf("contested: %+v, annotations %v", contested.Contested, contested.Live.GetAnnotations())
	}
}

func TestApplyWaitsForAnObjectOnItsWayOut(t *testing.T) {
	cluster := k8stest.New(t)
	object := account("leaving", "demo", nil)
	object["metadata"].(map[string]any)["finalizers"] = []any{"sawhorse.dev/test"}
	live := cluster.Create(object)
	c := client(t, cluster.Config)
	if err := c.Delete(ctx, k8s.ServiceAccount, live); err != nil {
		t.Fatal(err)
	}
	applied, err := c.Apply(ctx, "demo", object)
	if err != nil || applied.Action != k8s.Terminating || applied.Changed() {
		t.Errorf("%+v, %v", applied, err)
	}
}

func TestApplyLeavesForeignObjectsAlone(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	for name, owner := range map[string]string{"unlabelled": "", "neighbours": "other"} {
		before := cluster.Create(account(name, owner, nil))
		_, err := c.Apply(ctx, "demo", account(name, "demo", map[string]any{"a": "1"}))
		var foreign *k8s.Unmanaged
		if !errors.As(err, &foreign) || foreign.Owner != owner || foreign.Subject != "ServiceAccount/default/"+name {
			t.Errorf("%s: the error is %v", name, err)
		}
		if after := cluster.Get(account(name, owner, nil)); after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := c.Apply(ctx, "demo", account("nobody", "", nil)); err == nil {
		t.Error("a manifest without the rack's label was applied")
	}
}

func TestPruneDeletesOnlyWhatIsOurs(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	for name, owner := range map[string]string{"keep": "demo", "drop": "demo", "theirs": "other", "nobodys": ""} {
		object := account(name, owner, nil)
		// so that a deleted object stays with a deletion timestamp
		object["metadata"].(map[string]any)["finalizers"] = []any{"sawhorse.dev/test"}
		cluster.Create(object)
	}
	wanted := []string{"keep"}
	deleted, err := c.Prune(ctx, k8s.ServiceAccount, "demo", wanted)
	if err != nil || len(deleted) != 1 || deleted[0] != "ServiceAccount/default/drop" {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if deleted, err := c.Prune(ctx, k8s.ServiceAccount, "demo", wanted); err != nil || len(deleted) != 0 {
		t.Errorf("the second prune deleted %v, %v", deleted, err)
	}
}

func TestConnectIsRefusedWithoutAnAccessEntry(t *testing.T) {
	cluster := k8stest.New(t)
	c, err := dial(t, amazon(types.Cluster{Arn: new(clusterARN), Endpoint: &cluster.Config.Host,
		CertificateAuthority: &types.Certificate{Data: new(base64.StdEncoding.EncodeToString(cluster.Config.CAData))}}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Get(ctx, k8s.Deployment, "kube-system", "x")
	if !outcome.IsNotYet(err, outcome.Unready) || !strings.HasPrefix(err.Error(), "Deployment/kube-system/x: get: ") {
		t.Errorf("the error is %v", err)
	}
	// a known user without rights
	_, err = client(t, cluster.As("nobody")).Get(ctx, k8s.Deployment, "kube-system", "x")
	if !k8s.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
}

func TestUpdateWritesOnlyADifference(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	live := cluster.Create(account("update", "", nil))
	if written, err := c.Update(ctx, k8s.ServiceAccount, live, live.DeepCopy()); written || err != nil {
		t.Errorf("written %v, %v", written, err)
	}
	wanted := live.DeepCopy()
	wanted.SetAnnotations(map[string]string{"a": "1"})
	stale := wanted.DeepCopy()
	if written, err := c.Update(ctx, k8s.ServiceAccount, live, wanted); !written || err != nil {
		t.Errorf("written %v, %v", written, err)
	}
	// live is outdated now, wanted is not
	if _, err := c.Update(ctx, k8s.ServiceAccount, live, stale); !k8s.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
	if written, err := c.Update(ctx, k8s.ServiceAccount, wanted, live); !k8s.IsConflict(err) {
		t.Errorf("the older form over the newer one: written %v, %v", written, err)
	}
	next := wanted.DeepCopy()
	next.SetAnnotations(nil)
	if written, err := c.Update(ctx, k8s.ServiceAccount, wanted, next); !written || err != nil {
		t.Errorf("written %v, %v", written, err)
	}
}
