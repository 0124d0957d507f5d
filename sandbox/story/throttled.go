package story

import "github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"

// ThrottledSteps turns Karpenter on, for which every step runs, while DynamoDB throttles the first six calls that each
// function of the passes makes: two more than one call of the function tries. So the state machine calls each of them again.
func ThrottledSteps(s *Script) {
	s.Chapter("Each function in turn is throttled, while Karpenter is turned on", func() {
		var faults []fault.Fault
		functions := []string{"validate", "access", "network", "nodegroups", "infrastructure", "queue", "controller", "nodepools", "proof",
			"autoscaler", "report"}
		for _, function := range functions {
			faults = append(faults, fault.Fault{Call: fault.Call{Function: function, Service: "dynamodb"}, Nth: 1, Times: 6,
				Kind: fault.Throttle})
		}
		before := s.Status().version
		s.inject(faults...)
		s.Put("karpenter_auth_mode", "true")
		s.Reconciled(s.Put("karpenter_enabled", "true"))
		s.Check("NodePool workload is Ready", ready, "True")
		refused := map[string]int{}
		for _, f := range s.counted().Fired {
			refused[f.Function]++
		}
		for _, function := range functions {
			s.Equal("throttled calls of "+function, refused[function], 6)
		}
		s.inject()
		s.Equal("states meanwhile", s.states(before), "Reconciled")
		unchanged(s)
	})
}

// ReadingRefused refuses what a pass reads: the object of a parameter, by S3, whose answer is the same where the key of its
// encryption is what the function may not use; and the parameters themselves. The status names the parameter, or the path, and
// the right, and nothing changes until it is back.
func ReadingRefused(s *Script) {
	const (
		object    = "s3://sawhorse-demo/racks/demo/refused.json"
		pools     = "kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.generation}'"
		userData  = "kubectl get ec2nodeclass workload -o jsonpath='{.spec.userData}'"
		parameter = "karpenter_config"
	)
	s.Chapter("An object that may not be read", func() {
		s.Type("aws s3 mb s3://sawhorse-demo")
		s.Type("echo " + quoted(`{"ec2NodeClass":{"userData":"#!/bin/sh"}}`) + " | aws s3 cp - " + object)
		before := s.Output(pools)
		s.inject(fault.Fault{Call: fault.Call{Function: "validate", Service: "s3"}, Nth: 1, Seconds: 600,
			Kind: fault.Refuse, Code: "AccessDenied"})
		s.Put(parameter, object)
		s.Rejected(parameter+` is "`+object+`", which does not exist, or which the function validate may not read`,
			"s3:GetObject", "kms:Decrypt")
		s.Check("the objects", pools, before)
		s.inject()
		s.Reconciled(s.Request())
		s.Check("the user data of the class", userData, "#!/bin/sh")
	})

	s.Chapter("Parameters that may not be read", func() {
		before := s.Output(pools)
		s.inject(fault.Fault{Call: fault.Call{Function: "validate", Service: "ssm", Action: "GetParametersByPath"}, Nth: 1, Seconds: 600,
			Kind: fault.Refuse, Code: "AccessDeniedException"})
		s.Put("karpenter_cpu_limit", "212")
		s.Failed("parameters below "+folder("demo")+"params: read: ", "GetParametersByPath", "AccessDeniedException")
		s.Check("the objects", pools, before)
		s.inject()
		s.Reconciled(s.Request())
		s.Check("NodePool's CPU limit", cpuLimit, "212")
	})

	s.Chapter("And away again", func() {
		s.inject()
		s.Unset(parameter, "karpenter_cpu_limit")
		s.Reconciled()
		s.Type("aws s3 rb --force s3://sawhorse-demo")
	})
}
