package kubelet

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// simulationRole has the permissions that Karpenter's simulated EC2 needs in addition to the chart's own. It stores its
// instances in ConfigMaps, and creates and deletes their Nodes, as instances and the cloud controller do on AWS.
const simulationRole = "sandbox:simulated-instances"

// grantSimulation gives the pod's service account the permissions of the simulation.
func (w *worker) grantSimulation(ctx context.Context) error {
	rbac := w.client.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: simulationRole},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "nodes"},
			Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cluster role %s: create: %w", simulationRole, err)
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.pod.Namespace, Name: w.pod.Spec.ServiceAccountName}
	name := fmt.Sprintf("%s:%s:%s", simulationRole, account.Namespace, account.Name)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: simulationRole},
		Subjects:   []rbacv1.Subject{account},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cluster role binding %s: create: %w", name, err)
	}
	return nil
}
