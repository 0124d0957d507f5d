package k8s

import (
	"fmt"

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
	NodePool     = Kind{"NodePool", v1("karpenter.sh", "nodepools"), false}
	NodeClaim    = Kind{"NodeClaim", v1("karpenter.sh", "nodeclaims"), false}
	EC2NodeClass = Kind{"EC2NodeClass", v1("karpenter.k8s.aws", "ec2nodeclasses"), false}
	NodeOverlay  = Kind{"NodeOverlay", schema.GroupVersionResource{
		Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays",
	}, false}

	Deployment  = Kind{"Deployment", v1("apps", "deployments"), true}
	StatefulSet = Kind{"StatefulSet", v1("apps", "statefulsets"), true}
	DaemonSet   = Kind{"DaemonSet", v1("apps", "daemonsets"), true}

	Node           = Kind{"Node", v1("", "nodes"), false}
	Pod            = Kind{"Pod", v1("", "pods"), true}
	Secret         = Kind{"Secret", v1("", "secrets"), true}
	Service        = Kind{"Service", v1("", "services"), true}
	ServiceAccount = Kind{"ServiceAccount", v1("", "serviceaccounts"), true}
	Event          = Kind{"Event", v1("", "events"), true}
	Namespace      = Kind{"Namespace", v1("", "namespaces"), false}

	PodDisruptionBudget = Kind{"PodDisruptionBudget", v1("policy", "poddisruptionbudgets"), true}
	ServiceMonitor      = Kind{"ServiceMonitor", v1("monitoring.coreos.com", "servicemonitors"), true}
	PriorityClass       = Kind{"PriorityClass", v1("scheduling.k8s.io", "priorityclasses"), false}
	Lease               = Kind{"Lease", v1("coordination.k8s.io", "leases"), true}

	CustomResourceDefinition = Kind{"CustomResourceDefinition", v1("apiextensions.k8s.io", "customresourcedefinitions"), false}

	ClusterRole        = Kind{"ClusterRole", v1(rbacGroup, "clusterroles"), false}
	ClusterRoleBinding = Kind{"ClusterRoleBinding", v1(rbacGroup, "clusterrolebindings"), false}
	Role               = Kind{"Role", v1(rbacGroup, "roles"), true}
	RoleBinding        = Kind{"RoleBinding", v1(rbacGroup, "rolebindings"), true}
)

func v1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

const rbacGroup = "rbac.authorization.k8s.io"

var kinds = []Kind{
	NodePool, NodeClaim, EC2NodeClass, NodeOverlay, Deployment, StatefulSet, DaemonSet, Node, Pod, Secret, Service, ServiceAccount, Event,
	Namespace, PodDisruptionBudget, ServiceMonitor, Lease, CustomResourceDefinition, ClusterRole, ClusterRoleBinding, Role, RoleBinding,
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
