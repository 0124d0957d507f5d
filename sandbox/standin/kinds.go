package standin

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// kind is a kind of object and its place in the API.
type kind struct {
	schema.GroupVersionResource
	name       string
	namespaced bool
}

func (k kind) groupVersionKind() schema.GroupVersionKind { return k.GroupVersion().WithKind(k.name) }

const (
	rbacGroup = "rbac.authorization.k8s.io"
	crdGroup  = "apiextensions.k8s.io"
)

// Kinds that this package itself uses.
var (
	nodes               = builtin("", "nodes", "Node", false)
	pods                = builtin("", "pods", "Pod", true)
	configMaps          = builtin("", "configmaps", "ConfigMap", true)
	crds                = builtin(crdGroup, "customresourcedefinitions", "CustomResourceDefinition", false)
	roles               = builtin(rbacGroup, "roles", "Role", true)
	roleBindings        = builtin(rbacGroup, "rolebindings", "RoleBinding", true)
	clusterRoles        = builtin(rbacGroup, "clusterroles", "ClusterRole", false)
	clusterRoleBindings = builtin(rbacGroup, "clusterrolebindings", "ClusterRoleBinding", false)
)

// builtins are the kinds of every cluster: those that Sawhorse, Karpenter's charts and the sandbox's seed use.
var builtins = []kind{
	configMaps, crds, roles, roleBindings, clusterRoles, clusterRoleBindings,
	builtin("", "namespaces", "Namespace", false),
	builtin("", "events", "Event", true),
	nodes, pods,
	builtin("", "secrets", "Secret", true),
	builtin("", "services", "Service", true),
	builtin("", "serviceaccounts", "ServiceAccount", true),
	builtin("apps", "daemonsets", "DaemonSet", true),
	builtin("apps", "deployments", "Deployment", true),
	builtin("apps", "statefulsets", "StatefulSet", true),
	builtin("policy", "poddisruptionbudgets", "PodDisruptionBudget", true),
}

func builtin(group, resource, name string, namespaced bool) kind {
	return kind{schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, name, namespaced}
}

// kinds returns the built-in kinds and those of the established CRDs. The caller holds c.mu.
func (c *cluster) kinds() []kind {
	all := slices.Clone(builtins)
	for _, crd := range c.objects[crds.GroupResource()] {
		if !established(crd) {
			continue
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			version, _, _ := unstructured.NestedString(v.(map[string]any), "name")
			all = append(all, kind{
				schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, name, scope == "Namespaced",
			})
		}
	}
	return all
}

// kind returns the kind of a path or an object; false if the cluster does not have it.
func (c *cluster) kind(is func(kind) bool) (kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.kinds()
	if at := slices.IndexFunc(all, is); at >= 0 {
		return all[at], true
	}
	return kind{}, false
}

// discover answers the discovery paths. Clients that prefer aggregated discovery accept these answers too.
func (c *cluster) discover(path string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path = strings.Trim(path, "/"); path {
	case "version":
		return version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.3-standin"}, true
	case "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case "apis":
		return c.groups(), true
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range c.kinds() {
		list.GroupVersion = k.GroupVersion().String()
		if path == "apis/"+list.GroupVersion || k.Group == "" && path == "api/"+list.GroupVersion {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource, Kind: k.name, Namespaced: k.namespaced,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update"},
			})
		}
	}
	_, list.GroupVersion, _ = strings.Cut(path, "/")
	return list, len(list.APIResources) > 0
}

func (c *cluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range c.kinds() {
		known := slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group })
		if k.Group == "" || known {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
		})
	}
	return list
}

// serveDiscovery answers requests that are not for objects.
func (c *cluster) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	answer, found := c.discover(r.URL.Path)
	if !found {
		http.NotFound(w, r)
		return
	}
	respond(w, http.StatusOK, answer)
}
