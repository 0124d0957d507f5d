package story

import (
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/seed"
)

// UpdatesFail lets a rack into a cluster of its own, where EKS accepts the change of the access mode, and later that of a node
// group's label, and does not make them. Each time the pass fails with EKS's words, after one update, and the next one goes on.
func UpdatesFail(s *Script) {
	rack := fmt.Sprintf("updates-%d", time.Now().Unix())
	group := " --cluster-name " + rack + " --nodegroup-name "
	mode := "aws eks describe-cluster --query cluster.accessConfig.authenticationMode --output text --name " + rack
	label := `aws eks describe-nodegroup --query 'nodegroup.labels."convox.io/system-node"' --output text` + group + "system"
	failed := func(step, action, words string) {
		status := s.statusOf(rack)
		s.Equal("state and step", status.State+" "+status.Failure.Step, "Failed "+step)
		s.Equal("the status has EKS's words", status.says(" ended as Failed: "+words+": ordered by the sandbox"), true)
		updates := 0
		for _, c := range s.counted().Calls {
			if c.Action == action {
				updates += c.Count
			}
		}
		s.Equal(action, updates, 1)
	}
	s.Chapter("EKS does not change the access mode", func() {
		if err := seed.AWS(s.ctx, s.env.AWS(), rack); err != nil {
			s.fail("cluster %s: %v", rack, err)
		}
		s.inject(
			fault.Fault{Call: fault.Call{Function: "access", Service: "eks", Action: "UpdateClusterConfig"}, Nth: 1,
				Kind: fault.Fail, Code: "AccessDenied"},
			fault.Fault{Call: fault.Call{Function: "nodegroups", Service: "eks", Action: "UpdateNodegroupConfig"}, Nth: 1,
				Kind: fault.Fail, Code: "NodeCreationFailure"})
		s.Served(s.PutOf(rack, "karpenter_auth_mode", "true"))
		failed("access", "UpdateClusterConfig", "AccessDenied")
		s.Check("access mode", mode, "CONFIG_MAP")
		s.Refused("aws eks list-access-entries --cluster-name "+rack, "authentication mode")
	})

	s.Chapter("The next pass changes it, and EKS does not label the group", func() {
		s.Served(s.Event(reconcileRequested, object{"rack": rack}))
		failed("nodegroups/labels", "UpdateNodegroupConfig", "NodeCreationFailure")
		s.Check("access mode", mode, "API_AND_CONFIG_MAP")
		s.Check("the label", label, "None")
	})

	s.Chapter("The one after it does", func() {
		s.inject()
		s.Served(s.Event(reconcileRequested, object{"rack": rack}))
		s.Equal("state", s.statusOf(rack).State, "Reconciled")
		s.Check("the label", label, "true")
	})

	s.Chapter("And away with it", func() {
		s.Served(s.Delete(rack, "karpenter_auth_mode"))
		for _, name := range []string{"system", "build"} {
			s.Type("aws eks delete-nodegroup --query nodegroup.status --output text" + group + name)
		}
		s.Until("its node groups", "aws eks list-nodegroups --query nodegroups --output text --cluster-name "+rack, "", time.Minute)
		s.Type("aws eks delete-cluster --query cluster.status --output text --name " + rack)
	})
}
