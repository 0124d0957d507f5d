package k8s

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of object that Sawhorse reads or writes. Kinds are listed here instead of discovered, because
// discovery costs requests on every cold start, and Sawhorse needs no others.
type Kind struct {
	Name       string
	resource   schema.GroupVersionResource
	namespaced bool
}

// The kinds, by group.
var (
	NodePool  = Kind{"NodePool", schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}, false}
	NodeClaim = Kind{"NodeClaim", schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}, false}

	EC2NodeClass = Kind{
		"EC2NodeClass", schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}, false,
	}

	Deployment  = Kind{"Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, true}
	StatefulSet = Kind{"StatefulSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, true}
	DaemonSet   = Kind{"DaemonSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, true}

	Node           = Kind{"Node", schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false}
	Pod            = Kind{"Pod", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}
	Secret         = Kind{"Secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true}
	Service        = Kind{"Service", schema.GroupVersionResource{Version: "v1", Resource: "services"}, true}
	ServiceAccount = Kind{"ServiceAccount", schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, true}
	Event          = Kind{"Event", schema.GroupVersionResource{Version: "v1", Resource: "events"}, true}
	Namespace      = Kind{"Namespace", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, false}

	PodDisruptionBudget = Kind{
		"PodDisruptionBudget", schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, true,
	}

	ServiceMonitor = Kind{
		"ServiceMonitor", schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"}, true,
	}

	Lease = Kind{"Lease", schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, true}

	CustomResourceDefinition = Kind{
		"CustomResourceDefinition",
		schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, false,
	}

	ClusterRole        = Kind{"ClusterRole", schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "clusterroles"}, false}
	ClusterRoleBinding = Kind{
		"ClusterRoleBinding", schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "clusterrolebindings"}, false,
	}
	Role        = Kind{"Role", schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "roles"}, true}
	RoleBinding = Kind{"RoleBinding", schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "rolebindings"}, true}
)

const rbacGroup = "rbac.authorization.k8s.io"

var kinds = []Kind{
	NodePool, NodeClaim, EC2NodeClass, Deployment, StatefulSet, DaemonSet, Node, Pod, Secret, Service, ServiceAccount, Event, Namespace,
	PodDisruptionBudget, ServiceMonitor, Lease, CustomResourceDefinition, ClusterRole, ClusterRoleBinding, Role, RoleBinding,
}

// kindOf returns the Kind of a manifest by its apiVersion and kind.
func kindOf(object *unstructured.Unstructured) (Kind, error) {
	for _, kind := range kinds {
		if kind.Name == object.GetKind() && kind.resource.GroupVersion().String() == object.GetAPIVersion() {
			return kind, nil
		}
	}
	return Kind{}, fmt.Errorf("%s: %s %s is not a kind that Sawhorse handles", object.GetName(), object.GetAPIVersion(), object.GetKind())
}

// is checks that an answer has the requested kind and a valid name, because what was read is named in notes and
// records.
func (k Kind) is(object *unstructured.Unstructured) error {
	version, name := object.GroupVersionKind(), object.GetName()
	if version.Kind != k.Name || version.GroupVersion() != k.resource.GroupVersion() {
		return fmt.Errorf("the API server answered with %.100q of %.100q; look at who answers in its place", version.Kind,
			version.GroupVersion())
	}
	if invalid := path.ValidatePathSegmentName(name, false); name == "" || len(name) > longestName || len(invalid) > 0 {
		return fmt.Errorf("the API server answered with the name %.100q, which no object can have; look at who answers in its place", name)
	}
	return nil
}

// longestName is the longest name of an object in characters.
const longestName = 253

// subject returns the name used in errors and changes: Kind/namespace/name, or Kind/name for an object without a
// namespace.
func (k Kind) subject(namespace, name string) string {
	if namespace == "" {
		return k.Name + "/" + name
	}
	return k.Name + "/" + namespace + "/" + name
}

// Subject returns Kind/namespace/name of an object that was read.
func Subject(object *unstructured.Unstructured) string {
	return Kind{Name: object.GetKind()}.subject(object.GetNamespace(), object.GetName())
}
