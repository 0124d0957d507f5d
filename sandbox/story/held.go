package story

import (
	"strings"
	"time"
)

// Held holds all racks but one by the stack's hold. Passes and the audit of a held rack say what is due and change nothing,
// also where Karpenter is to be turned off; a pass that runs stops; the other rack is served. A hold that is not understood
// holds all, and a rack that is let go converges.
func Held(s *Script) {
	const (
		parameter = "/sawhorse/hold"
		objects   = "kubectl get nodepools,ec2nodeclasses -o name; " +
			"kubectl get nodepool workload -o jsonpath='{.metadata.generation} {.metadata.labels}'"
	)
	before := ""
	hold := func(text string) {
		s.Type("aws ssm put-parameter --overwrite --type String --name " + parameter + " --value " + quoted(text))
	}
	brakes := func(rack, want string) {
		s.Equal("brakes of rack "+rack, strings.Join(s.statusOf(rack).Brakes, " "), want)
	}
	second := func(name, value, brake string) {
		s.Served(s.PutOf("second", name, value))
		s.Equal("its state", s.statusOf("second").State, "Rejected") // the cluster is the other rack's
		brakes("second", brake)
	}
	s.Chapter("All racks are held but demo", func() {
		hold(`{"racks": ["*"], "except": ["demo"], "reason": "try the new version in demo"}`)
		s.PutOf("second", "cluster_name", "demo")
		s.PutOf("second", "karpenter_enabled", "true")
		second("karpenter_auth_mode", "true", "hold")
		s.Equal("its status has the reason", s.statusOf("second").says("the rack is held (try the new version in demo)"), true)
		s.Reconciled(s.Put("karpenter_cpu_limit", "120"))
		s.Check("NodePool's CPU limit", cpuLimit, "120")
		before = s.Output(objects)
		brakes("demo", "")
	})

	s.Chapter("All racks are held but the other", func() {
		hold(`{"racks": ["*"], "except": ["second"], "reason": "an incident"}`)
		s.Put("karpenter_cpu_limit", "130")
		s.Paused()
		brakes("demo", "hold")
		s.Says("the rack is held (an incident)", `"nodepools"`)
		s.Check("NodePool's CPU limit", cpuLimit, "120")
		second("node_disk", "30", "")
	})

	s.Chapter("The other rack gets nothing in a cluster that is not its own", func() {
		s.Equal("its status has the reason", s.statusOf("second").says(
			"does not carry the tag sawhorse.dev/rack=second, by which its owner lets the rack in"), true)
		s.Refused("aws iam get-role --role-name second-karpenter", "NoSuchEntity")
		s.Refused("aws sqs get-queue-url --queue-name second-karpenter", "NonExistentQueue")
		s.Check("the first rack's objects", objects, before)
	})

	s.Chapter("The audit says what would be due", func() {
		s.Omits(`"queue"`)
		s.Type("aws events disable-rule --name demo-karpenter")
		s.Equal("steps that the audit finds due", audit(s), "[status]")
		s.Until("the status has the step queue", status+" | jq '.steps | index(\"queue\") != null'", "true", time.Minute)
		s.State("Paused")
		s.Check("the rule is not repaired", queueRule, "DISABLED")
	})

	s.Chapter("A hold reaches a pass that runs", func() {
		hold(`{"racks": ["second"]}`)
		s.Put("karpenter_controller_config", `{"logLevel":"debug"}`)
		s.Until("steps that the pass is at", "sawhorse status demo 2>&1 | grep -c 'step controller/release'", "1", time.Minute)
		hold(`{"racks": ["*"], "except": ["second"], "reason": "an incident"}`)
		s.Paused()
		s.Says(`"controller/release"`)
	})

	s.Chapter("Turning off is held too", func() {
		s.Put("karpenter_enabled", "false")
		s.Paused()
		s.Says("do not turn Karpenter off before that")
		s.Check("Karpenter's Deployment", controllerName, "deployment.apps/karpenter")
		s.Put("karpenter_enabled", "true")
		s.Paused()
	})

	s.Chapter("A hold that is not understood holds all", func() {
		hold(`{"rack": "demo"}`)
		second("node_disk", "31", "hold")
		s.Equal("its status says what to write", s.statusOf("second").says("is no field of it; did you mean racks?"), true)
		s.Request()
		s.Paused()
		s.Says("all racks are held, because its value")
		s.Type("sawhorse status demo")
	})

	s.Chapter("Let go", func() {
		s.Type("aws ssm delete-parameter --name " + parameter)
		tick(s)
		s.UntilState("Reconciled", 3*time.Minute)
		s.Check("NodePool's CPU limit", cpuLimit, "130")
		s.Check("the rule is repaired", queueRule, "ENABLED")
		brakes("demo", "")
	})

	s.Type("aws ssm delete-parameter --name " + parameter + " || true")
	for _, name := range []string{"cluster_name", "karpenter_auth_mode", "karpenter_enabled", "node_disk"} {
		s.Delete("second", name)
	}
	s.Unset("karpenter_cpu_limit", "karpenter_controller_config")
	s.Reconciled()
}
