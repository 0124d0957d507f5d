package validate

import (
	"testing"

	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

func TestALostLaunchTemplateHoldsNothingUp(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	s.cloud.EKS.Groups["system"].LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: new("lt-1"), Version: new("3")}
	s.cloud.EC2.TemplateGroups["lt-1/3"] = []string{"sg-node"}
	if got := s.pass(false); got.Outcome != outcome.PassPlanned {
		t.Fatal(got)
	}
	delete(s.cloud.EC2.TemplateGroups, "lt-1/3")
	s.write("karpenter_enabled=false")
	if got := s.pass(false); got.Outcome != outcome.PassPlanned {
		t.Errorf("off: %v", got)
	}
}

func TestCredentialsStayAsChosen(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	if got := s.pass(false); got.Outcome != outcome.PassPlanned || s.records().Credentials != "podidentity" {
		t.Fatal(got, s.records().Credentials)
	}
	for _, status := range []ekstypes.AddonStatus{ekstypes.AddonStatusDegraded, ekstypes.AddonStatusDeleting} {
		s.cloud.EKS.Addons["eks-pod-identity-agent"] = status
		limits := map[ekstypes.AddonStatus]string{ekstypes.AddonStatusDegraded: "50", ekstypes.AddonStatusDeleting: "60"}
		s.write("karpenter_cpu_limit=" + limits[status])
		if got := s.pass(false); got.Outcome != outcome.PassPlanned || stepNames(got.Steps) != "nodepools" ||
			s.records().Credentials != "podidentity" {
			t.Errorf("%s: %v, credentials %s", status, got, s.records().Credentials)
		}
	}
}
