package doctor

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The commands give the VPC CNI a role, by its add-on if EKS manages it.
func TestTheCNIGetsARole(t *testing.T) {
	o := healthy()
	o.CNI, o.AddOns = plan.CNI{Pods: 2, Lacking: 2}, nil
	commands := func() string {
		for _, f := range Examine(o).Findings {
			if f.Check == "cni" {
				return strings.Join(f.Commands, "\n")
			}
		}
		return ""
	}
	for _, part := range []string{
		"create-addon --cluster-name prod --addon-name eks-pod-identity-agent", "create-role --role-name prod-aws-node",
		"arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy", "rollout restart daemonset aws-node",
		"create-pod-identity-association --cluster-name prod --namespace kube-system --service-account aws-node " +
			"--role-arn arn:aws:iam::111122223333:role/prod-aws-node"} {
		if got := commands(); !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
	o.AddOns = []AddOn{{Name: agent, Status: "ACTIVE"}, {Name: "vpc-cni", Status: "ACTIVE"}}
	got := commands()
	if !strings.Contains(got, "--addon-name vpc-cni --pod-identity-associations serviceAccount=aws-node,roleArn=") ||
		strings.Contains(got, "create-addon") || strings.Contains(got, "create-pod-identity-association") {
		t.Error(got)
	}
}
