package story

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/seed"
)

const (
	checkout = `cd "$(git rev-parse --show-toplevel)" && `
	// inForce prints the version of the state machine that its alias names.
	inForce = "aws stepfunctions describe-state-machine-alias --state-machine-alias-arn " + machine + `":live"` +
		" --query 'routingConfiguration[0].stateMachineVersionArn' --output text | sed 's/.*://'"
	controllerMemory = "kubectl -n kube-system get deployment karpenter " +
		"-o jsonpath='{.spec.template.spec.containers[0].resources.requests.memory}'"
	hopLimit      = "kubectl get ec2nodeclass workload -o jsonpath='{.spec.metadataOptions.httpPutResponseHopLimit}'"
	recordsFormat = "aws dynamodb update-item --table-name " + table + ` --key '{"pk":{"S":"rack#demo"},"sk":{"S":"records"}}' ` +
		`--update-expression 'SET #f = :f' --expression-attribute-names '{"#f":"format"}' --expression-attribute-values '{":f":{"N":"%s"}}'`
)

// Releases deploys another release over this one, whose template is in a folder, as docs/operate.md says: one rack goes first,
// the other one is held until what its audits say has been looked at. A pass that runs meanwhile goes on with the functions
// with which it began. Then it goes back to this release with make rollback, and forward again.
func Releases(s *Script, next string) {
	var before string
	s.Chapter("Two racks, of which one is held", func() {
		if err := seed.AWS(s.ctx, s.env.AWS(), "second"); err != nil {
			s.fail("cluster second: %v", err)
		}
		s.PutOf("second", "karpenter_auth_mode", "true")
		s.PutOf("second", "karpenter_enabled", "true")
		s.Served()
		s.Equal("state of rack second", s.statusOf("second").State, "Reconciled")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "workload")
		s.Type("aws ssm put-parameter --type String --name /sawhorse/hold " +
			`--value '{"racks": ["*"], "except": ["demo"], "reason": "upgrade of Sawhorse"}'`)
		before = s.Output(inForce)
	})

	s.Chapter("Deployed in mid-pass", func() {
		s.Say("The pods of a new controller find no node, and the pass waits for them, before its step nodepools.")
		s.Type("kubectl get nodes -o name | xargs kubectl cordon")
		s.Change(map[string]string{"karpenter_controller_config": `{"logLevel":"debug"}`, "karpenter_cpu_limit": "140"})
		s.Until("steps that the pass is at", "sawhorse status demo 2>&1 | grep -c 'step controller/release'", "1", time.Minute)
		execution, began := s.owner(), time.Now()
		stack(s, "deploy --require-approval never --app "+next)
		s.Equal("another version of the state machine is in force", s.Output(inForce) != before, true)
		s.Equal("the pass", s.executionStatus(execution), "RUNNING")
		s.Type("kubectl get nodes -o name | xargs kubectl uncordon")
		s.Reconciled()
		s.Equal("the pass", s.executionStatus(execution), "SUCCEEDED")
		s.Check("NodePool's CPU limit", cpuLimit, "140")
		s.Check("memory of the controller, as the release has it with which the pass began", controllerMemory, "256Mi")
		for _, function := range []string{"controller", "nodepools"} {
			s.Equal("versions of the function "+function, s.versions(function, began), s.named(function, before))
		}
	})

	s.Chapter("The rack that goes first", func() {
		began := time.Now()
		s.FullPass()
		s.State("Reconciled")
		s.Check("memory of the controller, as the new release has it", controllerMemory, "257Mi")
		s.Equal("versions of the function controller", s.versions("controller", began), s.named("controller", s.Output(inForce)))
		s.Say("No node is replaced because of the release.")
		s.Check("hop limit of the nodes' metadata", hopLimit, "1")
		s.Says("new-defaults")
	})

	s.Chapter("What the audits say of the rack that is held", func() {
		s.resetCalls()
		tickOf(s, "second")
		s.Until("steps that are due", "aws ssm get-parameter --name /sawhorse/racks/second/status --query Parameter.Value --output text | "+
			"jq -c '[.state, (.steps // [] | index(\"controller/release\") != null)]'", `["Paused",true]`, time.Minute)
		s.Equal("changes meanwhile", s.writes(), "[]")
		s.Type("sawhorse status second --wait")
	})

	s.Chapter("Let go", func() {
		s.Type("aws ssm delete-parameter --name /sawhorse/hold")
		tickOf(s, "second")
		s.Await("rack second", func() string { return s.statusOf("second").State }, "Reconciled", 3*time.Minute)
		s.Equal("its controller is of the new release", s.statusOf("second").says("Deployment/kube-system/karpenter"), true)
	})

	var after string
	s.Chapter("Back, in one command", func() {
		after = s.Output(inForce)
		s.Type(checkout + "make rollback")
		s.Check("version in force", inForce, before)
		began := time.Now()
		s.Say("This release takes back what the other one has made.")
		s.Equal("steps that the audit finds due", slices.Contains(audit(s), "controller/release"), true)
		s.Reconciled()
		s.Check("memory of the controller", controllerMemory, "256Mi")
		for _, function := range []string{"resync", "audit", "controller", "report"} {
			s.Equal("versions of the function "+function, s.versions(function, began), s.named(function, before))
		}
		s.Refused(checkout+"make rollback TO=99", "the state machine has no version 99")
	})

	s.Chapter("A record of a release that this one does not know", func() {
		s.Type(fmt.Sprintf(recordsFormat, "9"))
		s.Request()
		s.Failed("a later version of Sawhorse wrote them (format 9", "deploy that version again")
		s.Type(fmt.Sprintf(recordsFormat, "2"))
		s.Request()
		s.Reconciled()
	})

	s.Chapter("Forward again", func() {
		s.Type(checkout + "make rollback TO=" + after)
		s.Check("version in force", inForce, after)
		s.Force("new-defaults")
		s.Reconciled()
		s.Check("memory of the controller", controllerMemory, "257Mi")
		s.Check("hop limit of the nodes' metadata, with force", hopLimit, "2")
	})

	s.Chapter("Earlier versions are deleted", func() {
		s.Type(checkout + "tools/prune.sh 0")
		s.Refused(checkout+"make rollback", "no release comes before it")
		s.FullPass()
		s.State("Reconciled")
	})
	single.end(s)
}

// versions returns the versions of a function that have been called since a time, as its log names them.
func (s *Script) versions(function string, since time.Time) string {
	log := s.Output(fmt.Sprintf("aws logs filter-log-events --log-group-name /aws/lambda/Sawhorse-%s --start-time %d "+
		"--query 'events[].message' --output text", function, since.UnixMilli()))
	found := map[string]bool{}
	for _, version := range regexp.MustCompile(`START RequestId: \S+ Version: (\S+)`).FindAllStringSubmatch(log, -1) {
		found[version[1]] = true
	}
	return joined(found)
}

// named returns the version of a function that the definition of a version of the state machine names.
func (s *Script) named(function, version string) string {
	return s.Output("aws stepfunctions describe-state-machine --state-machine-arn " + machine + ":" + version +
		" --query definition --output text | grep -o ':function:Sawhorse-" + function + ":[0-9]*' | sed 's/.*://'")
}
