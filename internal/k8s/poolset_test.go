package k8s_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func labelled(name, rack string) map[string]any {
	meta := map[string]any{"name": name}
	if rack != "" {
		meta["labels"] = map[string]any{ownership.TagRack: rack}
	}
	return meta
}

func nodePool(name, rack string) plan.Object {
	return plan.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": labelled(name, rack), "spec": map[string]any{
		"template": map[string]any{"spec": nodeSpec(name)}}}
}

func nodeSpec(class string) map[string]any {
	return map[string]any{"requirements": []any{map[string]any{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64"}}},
		"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class}}
}

func nodeClass(name, rack string) plan.Object {
	term := []any{map[string]any{"tags": map[string]any{"a": "b"}}}
	return plan.Object{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": labelled(name, rack),
		"spec": map[string]any{
			"role": "r", "amiSelectorTerms": []any{
				map[string]any{"alias": "al2023@latest"},
			}, "subnetSelectorTerms": term, "securityGroupSelectorTerms": term}}
}

func nodeClaim(name, pool, class string) plan.Object {
	return plan.Object{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": nodeSpec(class),
		"metadata": map[string]any{"name": name, "labels": map[string]any{ownership.LabelPool: pool}}}
}

func TestFleetTellsOursFromTheirs(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	if set, err := c.PoolSet(ctx, "demo"); err != nil || len(set.Pools)+len(set.Classes)+len(set.Unmanaged) > 0 {
		t.Errorf("without the CRDs: %+v, %v", set, err)
	}
	cluster.InstallCRDs()
	for _, object := range []plan.Object{
		nodePool("workload", "demo"), nodePool("build", "other"), nodePool("theirs", ""), nodeClass("workload", "demo"),
		nodeClass("gone", "demo"), nodeClass("theirs", ""),
		nodeClaim("of-pool", "workload", "x"), nodeClaim("of-class", "renamed", "gone"), nodeClaim("known", "earlier", "x"),
		nodeClaim("foreign", "theirs", "theirs"), nodeClaim("foreign-on-our-class", "theirs", "workload"),
		nodeClaim("foreign-with-our-name", "build", "x"), nodeClaim("stranger", "s", "s"),
	} {
		cluster.Create(object)
	}
	set, err := c.PoolSet(ctx, "demo", "earlier")
	if err != nil || len(set.Pools) != 1 || len(set.Classes) != 2 || !slices.Equal(set.Unmanaged, []string{"build", "theirs"}) {
		t.Fatalf("%+v, %v", set, err)
	}
	if got := strings.Join(set.Names(), " "); got != "earlier gone workload" || !set.Has("gone") || set.Has("build") {
		t.Errorf("names %s", got)
	}
	claims, err := c.Claims(ctx, set)
	var ours []string
	for _, claim := range claims {
		ours = append(ours, claim.GetName())
	}
	if err != nil || strings.Join(ours, " ") != "known of-class of-pool" {
		t.Errorf("%v, %v", ours, err)
	}
	if foreign, err := c.UnmanagedNodePools(ctx, "demo"); err != nil || !slices.Equal(foreign, set.Unmanaged) {
		t.Errorf("%v, %v", foreign, err)
	}
}

func TestUnfinalizeTakesOneFinalizer(t *testing.T) {
	cluster := k8stest.New(t)
	c := client(t, cluster.Config)
	object := account("finalized", "", nil)
	object["metadata"].(map[string]any)["finalizers"] = []any{"sawhorse.dev/ours", "sawhorse.dev/theirs"}
	first := cluster.Create(object)
	if changed, err := c.Unfinalize(ctx, k8s.ServiceAccount, first, "sawhorse.dev/none"); changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if changed, err := c.Unfinalize(ctx, k8s.ServiceAccount, first, "sawhorse.dev/ours"); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if left := cluster.Get(object).GetFinalizers(); !slices.Equal(left, []string{"sawhorse.dev/theirs"}) {
		t.Errorf("finalizers %v", left)
	}
	// first is outdated now: writing its list of finalizers must not restore one
	if _, err := c.Unfinalize(ctx, k8s.ServiceAccount, first, "sawhorse.dev/theirs"); !k8s.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
	last := cluster.Get(object)
	if err := c.Delete(ctx, k8s.ServiceAccount, last); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.Unfinalize(ctx, k8s.ServiceAccount, cluster.Get(object), "sawhorse.dev/theirs"); !changed || err != nil ||
		cluster.Get(object) != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if changed, err := c.Unfinalize(ctx, k8s.ServiceAccount, last, "sawhorse.dev/theirs"); changed || err != nil {
		t.Errorf("gone: %v, %v", changed, err)
	}
}

func TestEachReadsPageByPage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		name, next := "first", "more"
		if r.URL.Query().Get("continue") != "" {
			name, next = "second", ""
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{"continue": next},
			"items": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}}}})
	}))
	defer server.Close()
	var names []string
	err := client(t, &rest.Config{Host: server.URL}).Each(ctx, k8s.Pod, "", "a=b", func(o *unstructured.Unstructured) error {
		names = append(names, o.GetName())
		return nil
	})
	if err != nil || strings.Join(names, " ") != "first second" || len(asked) != 2 ||
		!strings.HasPrefix(asked[0], "labelSelector=a%3Db&limit=200") ||
		!strings.HasPrefix(asked[1], "continue=more&labelSelector=a%3Db&limit=200") {
		t.Errorf("%v, %v, %v", names, asked, err)
	}
}
