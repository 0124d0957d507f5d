package k8s

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Grants returns the manifests that give a function its rights: a ClusterRole, a Role in each namespace that rights are
// limited to, and their bindings to the group of the function's access entry. All are named ownership.Group(function).
func Grants(rack, function string, rights []plan.Right) ([]plan.Object, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rules[r.Namespace] = append(rules[r.Namespace],
			rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
	}
	var objects []plan.Object
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		for _, typed := range grant(rack, function, namespace, rules[namespace]) {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			if err != nil {
				return nil, err
			}
			// A typed object's zero time becomes null, which server-side apply would treat as a value.
			unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// grant returns the role with these rules, and its binding. An empty namespace stands for the whole cluster.
func grant(rack, function, namespace string, rules []rbacv1.PolicyRule) []any {
	meta := metav1.ObjectMeta{Name: ownership.Group(function), Namespace: namespace, Labels: map[string]string{ownership.TagRack: rack}}
	kind := func(name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: name} }
	to := func(role string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacGroup, Kind: role, Name: meta.Name}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacGroup, Kind: "Group", Name: meta.Name}}
	if namespace == "" {
		return []any{
			&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: to("ClusterRole"), Subjects: subjects},
		}
	}
	return []any{
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta, RoleRef: to("Role"), Subjects: subjects},
	}
}
