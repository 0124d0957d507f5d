package autoscaler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const discoveryTag = "k8s.io/cluster-autoscaler/"

// Auto Scaling groups that EKS does not know stay targets of Cluster Autoscaler, whether auto-discovery found them or
// --nodes named them. The groups of managed node groups, and those that another cluster's Cluster Autoscaler scales, do
// not become targets.
func TestGroupsThatEKSDoesNotKnowStayTargets(t *testing.T) {
	s, o := begin(t), autoscaler("ca", image)
	s.Create(o)
	s.Create(node("True"))
	s.RolledOut(o)
	s.plan.Cluster.Name = "east"
	s.plan.Autoscaler.Managed = []string{"eks-build"}
	found := s.shape(o)
	enabled, own := discoveryTag+"enabled=true", discoveryTag+"east=owned"
	s.scaling.Group("spark", 0, 9, enabled, own)
	s.scaling.Group("eks-build", 1, 3, enabled, own)
	s.scaling.Group("eks-newer", 1, 3, enabled, own, "eks:cluster-name=east", "eks:nodegroup-name=newer")
	s.scaling.Group("west", 1, 3, enabled, discoveryTag+"west=owned")
	s.scaling.Group("adhoc", 2, 4, own, enabled)

	progress := s.run(plan.AutoscalerOff, true)
	if len(progress.Warnings) != 1 || !strings.Contains(progress.Warnings[0].Message, "adhoc, spark;") {
		t.Errorf("warnings %+v", progress.Warnings)
	}
	want := "1 [./cluster-autoscaler --v=4 --nodes=2:4:adhoc --nodes=0:9:spark --balance-similar-node-groups] [] "
	if got := s.settled(o, plan.AutoscalerOff); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}

	t.Log("beside the additional groups, and what it scaled before is still known")
	s.scaling.Groups = s.scaling.Groups[:4]
	if progress := s.run(plan.AutoscalerGroups, true); len(progress.Warnings) != 1 ||
		!strings.Contains(progress.Warnings[0].Message, "no managed node group: spark;") {
		t.Errorf("warnings %+v", progress.Warnings)
	}
	want = "1 [./cluster-autoscaler --v=4 --nodes=1:5:eks-extra-1 --nodes=0:2:eks-extra-2 --nodes=0:9:spark --balance-similar-node-groups] [] "
	if got := s.settled(o, plan.AutoscalerGroups); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}

	t.Log("without any it is stopped, and off again it is as it was")
	s.scaling.Groups = nil
	if progress := s.run(plan.AutoscalerOff, true); len(progress.Warnings) != 0 {
		t.Errorf("warnings %+v", progress.Warnings)
	}
	if got := s.settled(o, plan.AutoscalerOff); !strings.HasPrefix(got, "0 ") {
		t.Error(got)
	}
	s.run(plan.AutoscalerBaseline, true)
	s.RolledOut(o)
	s.run(plan.AutoscalerBaseline, false)
	if got := s.shape(o); got != found {
		t.Errorf("back: %s\nwant  %s", got, found)
	}
}

// with returns a Cluster Autoscaler with these arguments.
func with(arguments ...any) object {
	o := autoscaler("ca", image)
	containers := o["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)
	containers[1].(object)["command"] = append([]any{"./cluster-autoscaler"}, arguments...)
	return o
}

// A group that --nodes named keeps the size given there. A group that no longer exists is no target.
func TestNamedGroups(t *testing.T) {
	arguments := []any{"--nodes", "2:7:managed"}
	for i := range 60 {
		arguments = append(arguments, fmt.Sprintf("--nodes=1:3:asg-%02d", i))
	}
	s, o := begin(t), with(arguments...)
	s.Create(o)
	s.Create(node("True"))
	s.RolledOut(o)
	s.plan.Autoscaler.Managed = []string{"managed"}
	s.scaling.Group("asg-07", 0, 1)
	s.scaling.Group("asg-55", 0, 1)
	s.scaling.Group("managed", 0, 1)
	s.run(plan.AutoscalerOff, true)
	if got := s.shape(o); !strings.HasPrefix(got, "1 [./cluster-autoscaler --nodes=1:3:asg-07 --nodes=1:3:asg-55] [] ") {
		t.Error(got)
	}
}

// If Cluster Autoscaler scales only managed node groups, the step makes no calls to EC2 Auto Scaling.
func TestNothingToLookFor(t *testing.T) {
	s, o := begin(t), with("--nodes=2:7:managed")
	s.Create(o)
	s.RolledOut(o)
	s.plan.Autoscaler.Managed = []string{"managed"}
	s.run(plan.AutoscalerOff, true)
	if s.scaling.Asked != 0 {
		t.Errorf("asked %d times", s.scaling.Asked)
	}
}
