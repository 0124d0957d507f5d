package story

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Failing removes a permission, so that every pass fails, and writes a parameter again and again. It checks that no
// failure repeats itself, restores the permission, and checks that the next event repairs everything.
func Failing(s *Script) {
	s.Chapter("Writes while passes fail", func() {
		deny(s, "nodepools", "dynamodb:GetItem")
		defer allow(s, "nodepools")
		began := time.Now()
		for n := range 40 { // an iteration fails a few tenths of a second after it has recorded what was requested
			err := s.env.Put(s.ctx, "demo", "karpenter_cpu_limit", fmt.Sprint(150+n)) // the AWS CLI would be too slow
			if err != nil {
				s.fail("%v", err)
			}
			s.wait(100 * time.Millisecond)
		}
		s.Put("karpenter_cpu_limit", "206")
		s.Failed()
		s.Contains("the remedy", "sawhorse status demo", "A right is missing")
		// Those of the writes came while passes failed, and the schedule's audit may have come too.
		s.Equal("executions that failures have started", s.executionsBeside(began, func(in input) bool {
			return in.Source == "aws.ssm" || in.Detail.Reason == "schedule"
		}), 0)
	})

	s.Chapter("The permission is back", func() {
		s.Reconciled(s.Put("karpenter_cpu_limit", "207"))
		s.Check("NodePool's CPU limit", cpuLimit, "207")
	})
}

// LastStepFails turns Karpenter off while the last step fails. The full pass after it looks at what is removed already,
// instances and instance profiles among it, and takes only the step that is left.
func LastStepFails(s *Script) {
	s.Chapter("The last step fails", func() {
		s.inject(fault.Fault{Call: fault.Call{Function: "nodegroups", Service: "kubernetes", Action: "update deployments.apps"},
			Nth: 1, Seconds: 600, Kind: fault.Error})
		s.Put("karpenter_enabled", "false")
		s.Failed("ordered by the sandbox")
		s.Equal("the step that failed", s.Status().Failure.Step, "nodegroups/placement")
		s.inject()
	})

	s.Chapter("A full pass takes what is left", func() {
		s.resetCalls()
		s.Reconciled(s.Request("full"))
		called := strings.TrimSuffix(s.functions(), " resync") // a tick of the schedule may come meanwhile
		s.Equal("functions that were called", called, "audit nodegroups report")
		withoutKarpenter(s)
	})
}

// LostEvents loses Parameter Store's event for a write. The schedule's next audit finds the write, and its pass applies
// it. Then two events arrive in the wrong order.
func LostEvents(s *Script) {
	s.Reconciled(s.Put("karpenter_cpu_limit", "207"))
	s.Chapter("An event that never arrives", func() {
		s.sandbox(http.MethodPost, "change-events?order=drop&count=1", nil, nil)
		began := time.Now()
		s.Type(put + "karpenter_cpu_limit --value 208")
		s.Equal("executions since", s.executions(began), 0)
		s.Check("NodePool's CPU limit", cpuLimit, "207")
		s.Equal("something is due", len(audit(s)) > 0, true)
		s.Reconciled()
		s.Check("NodePool's CPU limit", cpuLimit, "208")
	})

	s.Chapter("Events that come in another order", func() {
		s.sandbox(http.MethodPost, "change-events?order=delay&count=1", nil, nil)
		s.Put("karpenter_cpu_limit", "209")
		s.Reconciled(s.Put("karpenter_memory_limit_gb", "403"))
		s.Check("NodePool's limits", "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu} {.spec.limits.memory}'", "209 403Gi")
	})
}

// deny denies a function an action, until allow.
func deny(s *Script, function, action string) {
	s.Type("aws iam put-role-policy --role-name " + s.role(function) + " --policy-name denied --policy-document " + argument(denying(action)))
}

func allow(s *Script, function string) {
	s.Type("aws iam delete-role-policy --policy-name denied --role-name " + s.role(function))
}

// denying is a policy that denies an action.
func denying(action string) object {
	return object{"Version": "2012-10-17", "Statement": []object{{"Effect": "Deny", "Action": action, "Resource": "*"}}}
}

// role returns the name of a function's role.
func (s *Script) role(function string) string {
	return s.Output("basename $(aws lambda get-function-configuration --function-name Sawhorse-" + function + " --query Role --output text)")
}

// Throttled turns Karpenter on while all calls of a service are throttled for half a minute: those of DynamoDB when the
// pass begins, including the state machine's own, and those of IAM when roles are created.
func Throttled(s *Script) {
	s.Reconciled(s.Put("karpenter_auth_mode", "true"))
	s.Equal("goal", s.Status().Goal, "access")
	s.Chapter("Throttled for 30 s, twice, while Karpenter is turned on", func() {
		before := s.Status().version
		s.inject(fault.Fault{Call: fault.Call{Service: "dynamodb"}, Nth: 1, Seconds: 30, Kind: fault.Throttle},
			fault.Fault{Call: fault.Call{Service: "iam"}, Nth: 1, Seconds: 30, Kind: fault.Throttle})
		s.Reconciled(s.Put("karpenter_enabled", "true"))
		s.Check("NodePool workload is Ready", ready, "True")
		fired := map[string]int{}
		for _, f := range s.counted().Fired {
			fired[f.Service]++
		}
		for _, service := range []string{"dynamodb", "iam"} {
			// One call overcomes 4 throttled tries by itself.
			s.Equal("more than 4 calls were throttled: "+service, fired[service] > 4, true)
		}
		s.inject()
		s.Equal("states meanwhile", s.states(before), "Reconciled")
	})
}

// LostRight removes a statement from the role of validate, which begins a pass, one from the role of audit, which begins
// a full pass, and one from the role of a step, which a repair needs. Each pass fails and names the missing permission.
// Once it is restored, the next event repairs everything.
func LostRight(s *Script) {
	for _, lost := range []struct {
		function, action, first string
		options                 []string
	}{
		{"validate", "eks:ListNodegroups", "eks:ListNodegroups", nil},
		{"audit", "eks:ListNodegroups", "eks:ListNodegroups", []string{"full"}},
		{"queue", "events:PutRule", "events:DescribeRule", []string{"full"}},
	} {
		s.Chapter("A statement less for "+lost.function+": the one with "+lost.action, func() {
			restore := removeStatement(s, lost.function, lost.action)
			s.Type("aws events disable-rule --name demo-karpenter")
			s.Request(lost.options...)
			s.Failed("is not authorized to perform: " + lost.first)
			s.Contains("and the remedy", "sawhorse status demo", "A right is missing")
			s.Check("rule", queueRule, "DISABLED")
			restore()
			s.Reconciled(s.Request(lost.options...))
			s.Check("rule", queueRule, "ENABLED")
			s.Says("rule demo-karpenter repaired")
		})
	}
}

// removeStatement removes the statement with an action from a function's role. The returned function restores it.
func removeStatement(s *Script, function, action string) (restore func()) {
	role := " --role-name " + s.role(function)
	policy := " --policy-name " + s.Output("aws iam list-role-policies --query 'PolicyNames[0]' --output text"+role) + role
	read := "aws iam get-role-policy --query PolicyDocument --output json" + policy
	whole := s.Output(read)
	document := JSON[struct {
		Version   string
		Statement []object
	}](s, read)
	document.Statement = slices.DeleteFunc(document.Statement, func(statement object) bool {
		actions, several := statement["Action"].([]any)
		return statement["Action"] == action || several && slices.Contains(actions, any(action))
	})
	put := func(document string) {
		s.Type("aws iam put-role-policy" + policy + " --policy-document " + quoted(document))
	}
	put(encoded(document))
	return func() { put(whole) }
}
