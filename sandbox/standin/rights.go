package standin

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// attributes returns the attributes that RBAC evaluates.
func attributes(who user.Info, info *request.RequestInfo) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResourceRequest, Path: info.Path,
	}
}

// grants gives RBAC a cluster's roles and bindings.
type grants struct{ *cluster }

func (g grants) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	return one[rbacv1.Role](g, roles, namespace, name)
}

func (g grants) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	return one[rbacv1.ClusterRole](g, clusterRoles, "", name)
}

func (g grants) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return all[rbacv1.RoleBinding](g, roleBindings, namespace)
}

func (g grants) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return all[rbacv1.ClusterRoleBinding](g, clusterRoleBindings, "")
}

func one[T any](g grants, k kind, namespace, name string) (*T, error) {
	object, err := g.get(k, namespace, name)
	if err != nil {
		return nil, err
	}
	return typed[T](object)
}

func all[T any](g grants, k kind, namespace string) ([]*T, error) {
	var found []*T
	for _, object := range g.list(k, namespace, labels.Everything()) {
		t, err := typed[T](object)
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}

func typed[T any](object *unstructured.Unstructured) (*T, error) {
	t := new(T)
	return t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t)
}
