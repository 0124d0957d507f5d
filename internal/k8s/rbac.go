package k8s

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Grants returns the manifests that give a function its rights: a ClusterRole, and its binding to the group of the
// function's access entry. Both are named ownership.Group(function).
func Grants(rack, function string, rights []plan.Right) ([]plan.Object, error) {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
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
