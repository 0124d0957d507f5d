package observe

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
)

// associated returns an EKS with Pod Identity associations of service accounts in kube-system.
func associated(accounts ...string) *awsfake.EKS {
	eks := awsfake.New().EKS
	for _, account := range accounts {
		eks.Associations["a-"+account] = &types.PodIdentityAssociation{Namespace: new("kube-system"), ServiceAccount: &account}
	}
	return eks
}

const (
	identity = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
	token    = "AWS_WEB_IDENTITY_TOKEN_FILE"
	daemons  = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"
	account  = "/api/v1/namespaces/kube-system/serviceaccounts/aws-node"
)

// agents adds pods of the CNI, each with a variable, or with none if it is empty.
func agents(s *k8sfake.Server, variables ...string) {
	for i, variable := range variables {
		container := map[string]any{"name": "aws-node", "env": []any{map[string]any{"name": "WARM_ENI_TARGET", "value": "1"}}}
		if variable != "" {
			container["env"] = append(container["env"].([]any), map[string]any{"name": variable, "value": "somewhere"})
		}
		s.Put(fmt.Sprintf("/api/v1/namespaces/kube-system/pods/aws-node-%d", i), "v1", "Pod", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"k8s-app": "aws-node"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "aws-eks-nodeagent"}, container}},
		})
	}
}

// vpcCNI is a cluster with the VPC CNI.
func vpcCNI(t *testing.T) *k8sfake.Server {
	s := k8sfake.New(t)
	s.Put(daemons, "apps/v1", "DaemonSet", map[string]any{
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"k8s-app": "aws-node"}}}})
	s.Put(account, "v1", "ServiceAccount", map[string]any{})
	s.Put("/api/v1/namespaces/kube-system/pods/other", "v1", "Pod", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"k8s-app": "kube-proxy"}}})
	return s
}

func annotate(s *k8sfake.Server) {
	s.Objects[account].SetAnnotations(map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/cni"})
}

// Credentials count if a pod was admitted with them and the service account still has the role that they are of.
func TestWhereTheCNIGetsItsCredentials(t *testing.T) {
	own := associated("aws-node")
	for what, c := range map[string]struct {
		eks  *awsfake.EKS
		live func(*k8sfake.Server)
		want plan.CNI
	}{
		"no VPC CNI": {own, func(s *k8sfake.Server) { delete(s.Objects, daemons) }, plan.CNI{}},
		"no pods":    {own, func(*k8sfake.Server) {}, plan.CNI{OwnRole: true}},
		"nodes' role": {associated("karpenter"), func(s *k8sfake.Server) { agents(s, "", "") },
			plan.CNI{Pods: 2, Lacking: 2}},
		"Pod Identity": {own, func(s *k8sfake.Server) { agents(s, identity, identity) }, plan.CNI{Pods: 2, OwnRole: true}},
		"IRSA": {associated(), func(s *k8sfake.Server) { annotate(s); agents(s, token) },
			plan.CNI{Pods: 1, OwnRole: true}},
		"from IRSA to Pod Identity": {own, func(s *k8sfake.Server) { annotate(s); agents(s, identity, token) },
			plan.CNI{Pods: 2, OwnRole: true}},
		"admitted too early": {own, func(s *k8sfake.Server) { agents(s, identity, "") },
			plan.CNI{Pods: 2, OwnRole: true, Lacking: 1}},
		"an association that is gone": {associated(), func(s *k8sfake.Server) { agents(s, identity) },
			plan.CNI{Pods: 1, Lacking: 1}},
		"an annotation that is gone": {own, func(s *k8sfake.Server) { agents(s, token) },
			plan.CNI{Pods: 1, OwnRole: true, Lacking: 1}},
		"a variable of another container of the pod": {own, func(s *k8sfake.Server) { sidecar(s) },
			plan.CNI{Pods: 1, OwnRole: true, Lacking: 1}},
		"an evicted pod": {own, func(s *k8sfake.Server) {
			agents(s, identity, "")
			s.Objects["/api/v1/namespaces/kube-system/pods/aws-node-1"].Object["status"] = map[string]any{"phase": "Failed"}
		}, plan.CNI{Pods: 1, OwnRole: true}},
	} {
		t.Run(what, func(t *testing.T) {
			s := vpcCNI(t)
			c.live(s)
			client, err := s.Dial(t.Context(), plan.Cluster{Name: "demo"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := CNI(t.Context(), c.eks, client, "demo"); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
			if len(s.Writes) > 0 {
				t.Errorf("wrote %v", s.Writes)
			}
		})
	}
}

func sidecar(s *k8sfake.Server) {
	agents(s, "")
	pod := s.Objects["/api/v1/namespaces/kube-system/pods/aws-node-0"]
	pod.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"] = []any{
		map[string]any{"name": identity, "value": "somewhere"}}
}

// What cannot be read is an error, and no decision.
func TestACNIThatCannotBeObserved(t *testing.T) {
	denied := associated()
	denied.Fail("EKS.ListPodIdentityAssociations", errors.New("denied"))
	for what, c := range map[string]struct {
		eks  *awsfake.EKS
		harm func(*k8sfake.Server)
	}{
		"EKS":          {denied, func(*k8sfake.Server) {}},
		"no right":     {associated(), func(s *k8sfake.Server) { s.Forbidden = true }},
		"DaemonSet":    {associated(), func(s *k8sfake.Server) { s.FailAt = 1 }},
		"the account":  {associated(), func(s *k8sfake.Server) { s.FailAt = 2 }},
		"the pods":     {associated(), func(s *k8sfake.Server) { s.FailAt = 3 }},
		"the selector": {associated(), func(s *k8sfake.Server) { s.Objects[daemons].Object["spec"] = "x" }},
	} {
		s := vpcCNI(t)
		agents(s, identity)
		c.harm(s)
		client, err := s.Dial(t.Context(), plan.Cluster{Name: "demo"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CNI(t.Context(), c.eks, client, "demo"); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
