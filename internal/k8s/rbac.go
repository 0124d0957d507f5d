package k8s

import (
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// roles is what each function may do in the cluster. access and controller are not here: EKS makes them cluster admins,
// because one hands out rights and the other installs a chart that does.
var roles = map[string][]rbacv1.PolicyRule{
	"validate": {
		rule("karpenter.sh", "nodepools", "list"),  // what runs in them, for the advice on limits
		rule("karpenter.sh", "nodeclaims", "list"), // which of them a change replaces
	},
	"nodepools": {
		rule("karpenter.sh", "nodepools", "get", "list", "create", "patch", "delete"),
		rule("karpenter.k8s.aws", "ec2nodeclasses", "get", "list", "create", "patch", "delete"),
		rule("karpenter.sh", "nodeclaims", "list", "patch", "delete"), // drain windows; what Karpenter does not end in time
		rule("", "nodes", "list", "patch", "delete"),                  // of instances that have ended
	},
	// A Cluster Autoscaler is found by its image, in whatever namespace and under whatever name it runs, and system
	// Deployments are named by a parameter: neither right can be narrowed by name beforehand.
	"autoscaler": {
		rule("apps", "deployments", "list", "update"),
		rule("", "nodes", "list"),
	},
	"nodegroups": {
		rule("apps", "deployments", "list", "update"),
		rule("", "pods", "list"),
		rule("", "pods/eviction", "create"),       // from system node groups that are replaced
		rule("", "nodes", "list", "update"),       // cordons the nodes of build groups, and of those that are replaced
		rule("karpenter.sh", "nodepools", "list"), // whose nodes must find room elsewhere
	},
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Roles are the rules of one function; none for a function that needs no role of its own.
func Roles(function string) []rbacv1.PolicyRule { return roles[function] }

// Grants are the manifests that give a function its rules: a ClusterRole and the binding to the group of the function's
// access entry, both named names.Group(function).
func Grants(rack, function string) ([]plan.Object, error) {
	rules := Roles(function)
	if rules == nil {
		return nil, nil
	}
	meta := metav1.ObjectMeta{Name: names.Group(function), Labels: map[string]string{names.TagRack: rack}}
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
	for _, typed := range []any{role, binding} {
		body, err := json.Marshal(typed)
		if err != nil {
			return nil, err
		}
		var object plan.Object
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, err
		}
		// The zero time of a typed object prints as null, which server-side apply would take for a value.
		delete(object["metadata"].(map[string]any), "creationTimestamp")
		objects = append(objects, object)
	}
	return objects, nil
}
