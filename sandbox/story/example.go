package story

import "time"

// Example is a script to copy. It writes a parameter, waits for the pass, and checks the effect in the cluster and in the
// status. It starts from Enabled: Karpenter is on, and every other parameter has its default.
func Example(s *Script) {
	const limit = "kubectl get nodepool workload -o jsonpath='{.spec.limits.memory}'"
	s.Chapter("A limit reaches the NodePool", func() {
		// Waits until the pass that serves the write has ended, and checks the rack's state.
		s.Reconciled(s.Put("karpenter_memory_limit_gb", "256"))
		s.Check("NodePool's memory limit", limit, "256Gi")
	})

	s.Chapter("A value that the rack may not have changes nothing", func() {
		// Not one that the parameter's pattern refuses: where the rack is registered, Parameter Store does not take it.
		s.Put("karpenter_auth_mode", "false")
		s.Rejected("karpenter_auth_mode")
		s.Check("NodePool's memory limit", limit, "256Gi")
		s.Reconciled(s.Put("karpenter_auth_mode", "true"))
	})

	s.Chapter("A full pass puts a manual change back", func() {
		s.Type(`kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"memory":"7Gi"}}}'`)
		s.Reconciled(s.Request("full"))
		s.Check("NodePool's memory limit", limit, "256Gi")
	})

	s.Chapter("A pod runs", func() { // no pass does this, so Until waits for what a command prints
		s.Type("kubectl -n shop create deployment example --image public.ecr.aws/nginx/nginx:1.29")
		s.Until("pods that run", "kubectl -n shop get deployment example -o jsonpath='{.status.availableReplicas}'", "1", time.Minute)
		s.Type("kubectl -n shop delete deployment example")
	})

	s.Unset("karpenter_memory_limit_gb") // puts back what it has changed, also if a chapter has failed
	s.Reconciled()
}
