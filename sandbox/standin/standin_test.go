package standin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var ctx = context.Background()

// scene is a stand-in and its clock.
type scene struct {
	*testing.T
	url   string
	clock time.Time
}

// begin starts a stand-in in which a token is the bearer's group, and "admins" may do everything.
func begin(t *testing.T) *scene {
	s := &scene{T: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server := httptest.NewServer(New(Config{
		Now:   func() time.Time { return s.clock },
		Front: func(next http.Handler) http.Handler { return next },
		Objects: func(cluster string) ([]*unstructured.Unstructured, error) {
			return []*unstructured.Unstructured{
				object("rbac.authorization.k8s.io/v1", "ClusterRole", "all", map[string]any{"rules": []any{map[string]any{
					"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}}}),
				binding("admins", "all"),
				object("v1", "Node", cluster+"-node", nil),
				in("kube-system",
					object("v1", "ConfigMap", "aws-auth", map[string]any{"data": map[string]any{"mapRoles": "of " + cluster}})),
			}, nil
		},
		Review: func(_ context.Context, cluster, token string, awsAuth func() map[string]string) (authentication.TokenReviewStatus, error) {
			if token == "" || awsAuth()["mapRoles"] != "of "+cluster {
				return authentication.TokenReviewStatus{}, errors.New("unknown")
			}
			who := authentication.UserInfo{Username: token, Groups: []string{token}}
			return authentication.TokenReviewStatus{Authenticated: true, User: who}, nil
		},
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// as returns a client's configuration.
func (s *scene) as(group, cluster string) *rest.Config {
	return &rest.Config{Host: s.url + Prefix + cluster, BearerToken: group, UserAgent: "test/1"}
}

func (s *scene) dynamic(group, cluster string) *dynamic.DynamicClient {
	return dynamic.NewForConfigOrDie(s.as(group, cluster))
}

func object(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}},
	}
	for key, value := range fields {
		o.Object[key] = value
	}
	return o
}

func in(namespace string, o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetNamespace(namespace)
	return o
}

func binding(group, role string) *unstructured.Unstructured {
	return object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", group, map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "Group", "name": group}},
	})
}

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

var nodeResource = nodes.GroupVersionResource

func TestClustersAreKeptApart(t *testing.T) {
	s := begin(t)
	for _, cluster := range []string{"a", "b"} {
		list := must[*unstructured.UnstructuredList](t)(s.dynamic("admins", cluster).Resource(nodeResource).List(ctx, metav1.ListOptions{}))
		if len(list.Items) != 1 || list.Items[0].GetName() != cluster+"-node" {
			t.Errorf("cluster %s has %v", cluster, list.Items)
		}
	}
}

func TestRights(t *testing.T) {
	s := begin(t)
	if _, err := s.dynamic("", "a").Resource(nodeResource).List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a token: %v", err)
	}
	readers := s.dynamic("readers", "a").Resource(nodeResource)
	if _, err := readers.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a binding: %v", err)
	}
	create := func(k kind, o *unstructured.Unstructured) {
		t.Helper()
		must[*unstructured.Unstructured](t)(s.dynamic("admins", "a").Resource(k.GroupVersionResource).Create(ctx, o,
			metav1.CreateOptions{}))
	}
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "read", map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"list"}}}})
	create(clusterRoles, role)
	create(clusterRoleBindings, binding("readers", "read"))
	must[*unstructured.UnstructuredList](t)(readers.List(ctx, metav1.ListOptions{}))
	if err := readers.Delete(ctx, "a-node", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a reader deletes: %v", err)
	}
}

// The clients of the built-in kinds, which Helm uses to store its releases, send protobuf.
func TestTypedClients(t *testing.T) {
	s := begin(t)
	core := kubernetes.NewForConfigOrDie(s.as("admins", "a")).CoreV1()
	secrets := core.Secrets("kube-system")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"owner": "helm"}},
		Data:       map[string][]byte{"release": {0, 1, 255}}, Type: "helm.sh/release.v1",
	}
	made := must[*corev1.Secret](t)(secrets.Create(ctx, secret, metav1.CreateOptions{}))
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one of that name: %v", err)
	}
	read := must[*corev1.Secret](t)(secrets.Get(ctx, "one", metav1.GetOptions{}))
	same := string(read.Data["release"]) == "\x00\x01\xff" && read.Type == secret.Type
	if !same || read.UID == "" || !read.CreationTimestamp.Time.Equal(s.clock) {
		t.Errorf("read %+v", read)
	}
	read.Labels["status"] = "deployed"
	must[*corev1.Secret](t)(secrets.Update(ctx, read, metav1.UpdateOptions{}))
	if _, err := secrets.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write of what was read before the last one: %v", err)
	}
	for selector, want := range map[string]int{"owner=helm,status in (deployed,failed)": 1, "status=failed": 0} {
		if list := must[*corev1.SecretList](t)(secrets.List(ctx, metav1.ListOptions{LabelSelector: selector})); len(list.Items) != want {
			t.Errorf("%s: %d", selector, len(list.Items))
		}
	}
	for namespace, want := range map[string]int{"": 1, "default": 0} {
		if list := must[*corev1.SecretList](t)(core.Secrets(namespace).List(ctx, metav1.ListOptions{})); len(list.Items) != want {
			t.Errorf("in namespace %q: %d", namespace, len(list.Items))
		}
	}
	if err := secrets.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := secrets.Get(ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
}

func TestApply(t *testing.T) {
	s := begin(t)
	accounts := s.dynamic("admins",
		"a").Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace("default")
	apply := func(manager string, force bool, annotations map[string]any) (*unstructured.Unstructured, error) {
		o := object("v1", "ServiceAccount", "x", nil)
		o.Object["metadata"].(map[string]any)["annotations"] = annotations
		return accounts.Apply(ctx, "x", o, metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	first := must[*unstructured.Unstructured](t)(apply("ours", false, map[string]any{"a": "1", "b": "2"}))
	// does nothing
	s.clock = s.clock.Add(time.Minute)
	again := must[*unstructured.Unstructured](t)(apply("ours", false, map[string]any{"a": "1", "b": "2"}))
	if again.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("the same once more was a write")
	}
	// keeps the fields that others add
	theirs := []byte(`{"metadata":{"annotations":{"theirs":"x","b":"3"}}}`)
	must[*unstructured.Unstructured](t)(accounts.Patch(ctx, "x", types.MergePatchType, theirs,
		metav1.PatchOptions{FieldManager: "somebody"}))
	// rejects fields that another manager has set, and names the manager, unless it is forced
	_, err := apply("ours", false, map[string]any{"a": "1", "b": "2"})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsConflict(err) {
		t.Fatalf("a contested field: %v", err)
	}
	if causes := status.Status().Details.Causes; len(causes) != 1 || !strings.Contains(causes[0].Message, "somebody") {
		t.Errorf("a contested field: %v", causes)
	}
	forced := must[*unstructured.Unstructured](t)(apply("ours", true, map[string]any{"b": "2"}))
	if got := forced.GetAnnotations(); got["b"] != "2" || got["theirs"] != "x" || len(got) != 2 || forced.GetUID() != first.GetUID() {
		t.Errorf("annotations %v, uid %s", got, forced.GetUID())
	}
}

func TestControllersWorkIsDoneInAMoment(t *testing.T) {
	s := begin(t)
	client := s.dynamic("admins", "a")
	pools := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	pool := object("karpenter.sh/v1", "NodePool", "workload", map[string]any{"spec": map[string]any{"weight": int64(1)}})
	apply := func() (*unstructured.Unstructured, error) {
		return pools.Apply(ctx, "workload", pool, metav1.ApplyOptions{FieldManager: "ours"})
	}
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh", map[string]any{"spec": map[string]any{
		"group": "karpenter.sh", "scope": "Cluster", "names": map[string]any{"plural": "nodepools", "kind": "NodePool"},
		"versions": []any{map[string]any{"name": "v1"}}}})
	must[*unstructured.Unstructured](t)(client.Resource(crds.GroupVersionResource).Create(ctx, crd, metav1.CreateOptions{}))
	if _, err := apply(); !apierrors.IsNotFound(err) {
		t.Fatalf("a kind that is not established: %v", err)
	}
	s.clock = s.clock.Add(settling)
	made := must[*unstructured.Unstructured](t)(apply())
	if made.Object["status"] != nil {
		t.Errorf("it has the status %v at once", made.Object["status"])
	}
	// Ready refers to the generation that the controller has seen
	pool.Object["spec"] = map[string]any{"weight": int64(2)}
	s.clock = s.clock.Add(settling)
	changed := must[*unstructured.Unstructured](t)(apply())
	if observed := generation(changed); changed.GetGeneration() != 2 || observed != 1 {
		t.Errorf("generation %d, observed %d", changed.GetGeneration(), observed)
	}
	s.clock = s.clock.Add(settling)
	settled := must[*unstructured.Unstructured](t)(apply())
	if observed := generation(settled); settled.GetGeneration() != 2 || observed != 2 {
		t.Errorf("generation %d, observed %d", settled.GetGeneration(), observed)
	}
	if settled.GetResourceVersion() == changed.GetResourceVersion() {
		t.Error("its status came without another version")
	}
	// and applying again changes nothing
	if again := must[*unstructured.Unstructured](t)(apply()); again.GetResourceVersion() != settled.GetResourceVersion() {
		t.Error("the same once more was a write")
	}
}

// A pod that asks for a node of a NodePool gets one, which goes with it.
func TestAPodGetsItsNode(t *testing.T) {
	s := begin(t)
	client := s.dynamic("admins", "a")
	own := client.Resource(pods.GroupVersionResource).Namespace("default")
	pod := object("v1", "Pod", "asks", map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{labelPool: "workload"}}})
	must[*unstructured.Unstructured](t)(own.Create(ctx, in("default", pod), metav1.CreateOptions{}))
	s.clock = s.clock.Add(settling)
	live := must[*unstructured.Unstructured](t)(own.Get(ctx, "asks", metav1.GetOptions{}))
	name, _, _ := unstructured.NestedString(live.Object, "spec", "nodeName")
	listed := metav1.ListOptions{LabelSelector: labelPool + "=workload,karpenter.sh/registered=true"}
	if all := must[*unstructured.UnstructuredList](t)(client.Resource(nodeResource).List(ctx, listed)); len(all.Items) != 1 ||
		all.Items[0].GetName() != name {
		t.Errorf("the pod is on %q, the nodes are %v", name, all.Items)
	}
	if err := own.Delete(ctx, "asks", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if all := must[*unstructured.UnstructuredList](t)(client.Resource(nodeResource).List(ctx, listed)); len(all.Items) > 0 {
		t.Errorf("left: %v", all.Items)
	}
}

// generation returns the generation that an object's Ready condition refers to.
func generation(o *unstructured.Unstructured) int64 {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if len(all) == 0 {
		return 0
	}
	return all[0].(map[string]any)["observedGeneration"].(int64)
}

func TestDeploymentsAreAvailableInAMoment(t *testing.T) {
	s := begin(t)
	deployments := kubernetes.NewForConfigOrDie(s.as("admins", "a")).AppsV1().Deployments("kube-system")
	places := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	raw := s.dynamic("admins", "a").Resource(places).Namespace("kube-system")
	deployment := object("apps/v1", "Deployment", "karpenter", map[string]any{"spec": map[string]any{"replicas": int64(2)}})
	must[*unstructured.Unstructured](t)(raw.Create(ctx, deployment, metav1.CreateOptions{}))
	for _, want := range []int32{0, 2} {
		found, err := deployments.Get(ctx, "karpenter", metav1.GetOptions{})
		if err != nil || found.Status.AvailableReplicas != want || found.Status.UpdatedReplicas != want {
			t.Errorf("%+v, %v", found.Status, err)
		}
		s.clock = s.clock.Add(settling)
	}
}

func TestDiscovery(t *testing.T) {
	s := begin(t)
	client := discovery.NewDiscoveryClientForConfigOrDie(s.as("nobody", "a"))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for _, want := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"}, {Group: "apps", Version: "v1", Resource: "deployments"}, crds.GroupVersionResource,
	} {
		kind := slices.IndexFunc(builtins, func(k kind) bool { return k.GroupVersionResource == want })
		mapping, err := mapper.RESTMapping(builtins[kind].groupVersionKind().GroupKind(), "v1")
		if err != nil || mapping.Resource != want || (mapping.Scope.Name() == "namespace") != builtins[kind].namespaced {
			t.Errorf("%s: %+v, %v", want, mapping, err)
		}
	}
	version, err := client.ServerVersion()
	if err != nil || version.Minor != "35" {
		t.Errorf("version %v, %v", version, err)
	}
}
