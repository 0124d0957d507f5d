package k8s

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// roles lists what each function may do in the cluster. access and controller are missing because EKS makes them
// cluster admins: access grants rights, and controller installs a chart that grants rights.
var roles = map[string][]rbacv1.PolicyRule{
	"validate": {
		rule("karpenter.sh", "nodepools", "list"),  // what runs in them, for the warnings about limits
		rule("karpenter.sh", "nodeclaims", "list"), // which nodes a change replaces
	},
	"nodepools": {
		rule("karpenter.sh", "nodepools", "get", "list", "create", "patch", "delete"),
		rule("karpenter.k8s.aws", "ec2nodeclasses", "get", "list", "create", "patch", "delete"),
		// drain windows, and claims that Karpenter does not terminate in time
		rule("karpenter.sh", "nodeclaims", "list", "patch", "delete"),
		rule("", "nodes", "list", "patch", "delete"), // nodes of terminated instances
	},
	// Neither right can be limited to names: Cluster Autoscaler is found by its image, in any namespace and under any
	// name, and a parameter names the system Deployments.
	"autoscaler": {
		rule("apps", "deployments", "list", "update"),
		rule("", "nodes", "list"),
	},
	"nodegroups": {
		rule("apps", "deployments", "list", "update"),
		rule("", "pods", "list"),
		rule("", "pods/eviction", "create"),       // evicts from system node groups that are replaced
		rule("", "nodes", "list", "update"),       // cordons the nodes of build groups and of replaced groups
		rule("karpenter.sh", "nodepools", "list"), // the pools whose pods need capacity elsewhere
	},
	"rollout": {
		rule("karpenter.sh", "nodepools", "list"),
		rule("karpenter.sh", "nodeclaims", "list"),
		rule("karpenter.k8s.aws", "ec2nodeclasses", "list"),
	},
	// Everything that a step reads, and every object that a step applies. Not Secrets: Helm's records of releases hold
	// what a chart was installed with, and the right could not be limited to them.
	"audit": {
		rule("karpenter.sh", "nodepools", "get", "list"),
		rule("karpenter.sh", "nodeclaims", "list"),
		rule("karpenter.k8s.aws", "ec2nodeclasses", "get", "list"),
		rule("apps", "deployments", "get", "list"),
		rule("apps", "daemonsets", "get"),
		rule("", "nodes", "list"),
		rule("", "pods", "list"),
		rule("", "services", "get"),
		rule("", "serviceaccounts", "get"),
		rule("policy", "poddisruptionbudgets", "get", "list"),
		rule("monitoring.coreos.com", "servicemonitors", "get", "list"),
		rule("apiextensions.k8s.io", "customresourcedefinitions", "get"),
		rule(rbacGroup, "clusterroles", "get"),
		rule(rbacGroup, "clusterrolebindings", "get"),
		rule(rbacGroup, "roles", "get"),
		rule(rbacGroup, "rolebindings", "get"),
	},
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Roles returns the rules of one function, or nil if the function needs no role.
func Roles(function string) []rbacv1.PolicyRule { return roles[function] }

// Grants returns the manifests that give a function its rules: a ClusterRole, and its binding to the group of the
// function's access entry. Both are named ownership.Group(function).
func Grants(rack, function string) ([]plan.Object, error) {
	rules := Roles(function)
	if rules == nil {
		return nil, nil
	}
	meta := metav1.ObjectMeta{Name: ownership.Group(function), Labels: map[string]string{ownership.TagRack: rack}}
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: "ClusterRole"},
		ObjectMeta: meta, Rules: rules,
	}
	binding := rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacGroup, Kind: "Group", Name: meta.Name}},
	}
	var objects []plan.Object
	for _, typed := range []any{&role, &binding} {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, err
		}
		// A typed object's zero time becomes null, which server-side apply would treat as a value.
		unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
		objects = append(objects, object)
	}
	return objects, nil
}
