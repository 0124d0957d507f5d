package kube

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sawhorse-io/sawhorse/sandbox/authenticator"
)

// grantAccessPolicies binds the groups that the authenticator assigns for access policies. EKS has an authorizer of its
// own for access policies; here RBAC takes its place.
func grantAccessPolicies(ctx context.Context, client kubernetes.Interface) error {
	view := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: authenticator.AdminViewGroup},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, view, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ClusterRole %s: create: %w", view.Name, err)
	}
	for group, role := range map[string]string{authenticator.ClusterAdminGroup: "cluster-admin", authenticator.AdminViewGroup: view.Name} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("ClusterRoleBinding %s: create: %w", binding.Name, err)
		}
	}
	return nil
}
