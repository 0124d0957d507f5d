package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/sawhorse-io/sawhorse/sandbox/functionlog"
)

// Audited ticks the schedule for a rack in order: its audit is one call of one function and writes nothing, also while
// the status tells of a change or of an incident. A manual change in AWS, and each in the cluster, starts a pass of just the
// steps concerned.
func Audited(s *Script) {
	const policies = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes " +
		"--query 'sort(AttachedPolicies[].PolicyName)' --output text"
	const ofController = "audit controller report resync"
	s.Chapter("A rack in order", func() {
		s.Reconciled(s.Put("karpenter_cpu_limit", "1100"))
		s.Check("NodePool's CPU limit", cpuLimit, "1100")
		s.Says("pool workload is changed")
		nothingDue(s)
	})
	for _, edit := range []struct{ what, command, restored, called string }{
		{"A manual change in AWS", "aws iam attach-role-policy --role-name demo-karpenter-nodes " +
			"--policy-arn arn:aws:iam::aws:policy/AdministratorAccess",
			policies, "access audit infrastructure report resync"}, // access checks first that nobody else has Karpenter's names
		{"A changed port of Karpenter's Service", `kubectl -n kube-system patch service karpenter --type json -p ` +
			`'[{"op":"replace","path":"/spec/ports/0/port","value":9999}]'`,
			"kubectl -n kube-system get service karpenter -o jsonpath='{.spec.ports}'", ofController},
		{"A rule taken out of Karpenter's ClusterRole", `kubectl patch clusterrole karpenter-core --type json -p ` +
			`'[{"op":"remove","path":"/rules/0"}]'`,
			"kubectl get clusterrole karpenter-core -o jsonpath='{.rules}'", ofController},
		{"A changed argument of Karpenter's Deployment", "kubectl -n kube-system set env deployment/karpenter BATCH_MAX_DURATION=1s",
			`kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.template.spec.containers[0].env}'`, ofController},
		{"A deleted PodDisruptionBudget of Karpenter's", "kubectl -n kube-system delete pdb karpenter",
			"kubectl -n kube-system get pdb karpenter -o jsonpath='{.spec}'", ofController},
		{"A manual change in the cluster", `kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"cpu":"7"}}}'`,
			cpuLimit, "audit nodepools report resync"},
	} {
		s.Chapter(edit.what, func() {
			before := s.Output(edit.restored)
			s.Type(edit.command)
			s.resetCalls()
			audit(s)
			s.Reconciled()
			s.Check("what was changed", edit.restored, before)
			s.Equal("functions that were called", s.functions(), edit.called)
		})
	}
	s.Chapter("The status reports what has happened", func() {
		s.Says("NodePool/workload was changed by somebody else")
		nothingDue(s)
	})
}

// nothingDue audits a rack in order, and checks that the audit requests no pass and writes nothing.
func nothingDue(s *Script) {
	s.resetCalls()
	began := time.Now()
	s.Equal("steps that the audit finds due", audit(s), "[]")
	s.Equal("functions that were called", s.functions(), "audit resync")
	s.Equal("writes of the audit", slices.DeleteFunc(s.writes(), func(call string) bool { return !strings.HasPrefix(call, "audit ") }), "[]")
	s.Equal("executions", s.executions(began), 0)
}

// functions returns the functions that have made calls since resetCalls, without rollout, whose own schedule may call it
// meanwhile.
func (s *Script) functions() string {
	called := map[string]bool{}
	for _, c := range s.counted().Calls {
		if c.Function != "" && c.Function != "state-machine" && c.Function != "rollout" {
			called[c.Function] = true
		}
	}
	return joined(called)
}

// auditInOrder audits the rack between two changes. The audit needs what a pass needs to read the parameters.
func auditInOrder(s *Script, why string) {
	s.Say("%s", why)
	s.Equal("steps that the audit finds due", audit(s), "[]")
}

// audit ticks the schedule until the tick of the rack demo, waits until its audit has ended, and returns the steps that
// are due. If there are some, Served waits for the pass that the audit requests.
func audit(s *Script) (due []string) {
	began, skipped := time.Now(), 0
	tick(s)
	s.Await("the audit has ended", func() string {
		lines, err := functionlog.Since(s.ctx, s.env, "audit", began)
		if err != nil {
			return err.Error()
		}
		answer, skips := "no line about rack demo", 0
		for _, line := range lines {
			var entry struct {
				Msg, Rack, Skipped string
				Due                []string
			}
			if json.Unmarshal([]byte(line.Text), &entry) != nil || entry.Msg != "audit" || entry.Rack != "demo" {
				continue
			}
			if due, answer = entry.Due, entry.Skipped; answer != "" {
				skips++
			}
		}
		if skips > skipped { // a pass had the rack
			skipped = skips
			tick(s)
		}
		return answer
	}, "", 2*time.Minute)
	s.Say("The audit finds due: %v", due)
	if len(due) > 0 {
		s.wrote(Write{Rack: "demo", Source: "sawhorse", At: began})
	}
	return due
}

// tick calls the function resync for the schedule's ticks of an hour, until that of the rack demo.
func tick(s *Script) { tickOf(s, "demo") }

// tickOf calls the function resync for the schedule's ticks of an hour, until that of a rack. Each rack has one.
func tickOf(s *Script, rack string) {
	functions := lambda.NewFromConfig(s.env.AWS())
	s.Say("The schedule ticks every minute, and each rack has one tick an hour.")
	for minute := range 60 {
		out, err := functions.Invoke(s.ctx, &lambda.InvokeInput{FunctionName: aws.String("Sawhorse-resync:live"),
			Payload: fmt.Appendf(nil, `{"detail-type":"Scheduled Resync","time":"2026-01-02T03:%02d:00Z"}`, minute)})
		switch {
		case err != nil:
			s.fail("function resync: %v", err)
		case out.FunctionError != nil:
			s.fail("function resync: %s", out.Payload)
		case strings.Contains(string(out.Payload), `"`+rack+`"`):
			return
		}
	}
	s.fail("no tick of the hour is that of rack %s", rack)
}
