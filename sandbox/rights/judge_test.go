// Package rights tests the check of the functions' permissions (judge.py) on a small stack with one role, whose
// calls are defined here. It is named after the first of the two functions that share it.
package rights

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	template = `{"Resources": {"Resync": {"Properties": {"FunctionName": "Sawhorse-resync", "Role": {"Fn::GetAtt": ["ResyncRole", ` +
		`"Arn"]}}, "Type": "AWS::Lambda::Function"}, ` +
		`"Shares": {"Properties": {"FunctionName": "Sawhorse-shares", "Role": {"Fn::GetAtt": ["ResyncRole", "Arn"]}}, ` +
		`"Type": "AWS::Lambda::Function"}}}`
	racks   = "arn:aws:ssm:us-east-1:000000000000:parameter/sawhorse/racks/"
	machine = "arn:aws:states:us-east-1:000000000000:stateMachine:Sawhorse-reconcile"
	queues  = "arn:aws:sqs:us-east-1:000000000000:"
	lost    = queues + "Sawhorse-Undelivered0A1B2C3D-0123456789ABC" // the dead-letter queue
)

type statement struct {
	SID          string         `json:"sid"`
	Effect       string         `json:"effect"`
	Actions      []string       `json:"actions"`
	NotActions   []string       `json:"not_actions"`
	Resources    []string       `json:"resources"`
	NotResources []string       `json:"not_resources"`
	Conditions   map[string]any `json:"conditions"`
}

// play is the record that a package of scripts has left.
type play struct {
	template   string
	statements []statement
	calls      []string // as the sandbox writes them
}

func allow(resource string, actions ...string) statement {
	return statement{Effect: "Allow", Actions: actions, Resources: []string{resource}}
}

func called(script, action, resource, decision string, denied bool) string {
	return fmt.Sprintf(`{"script": %q, "role": "ResyncRole", "decision": %q, "denied": %v, "context": {"principal_arn": `+
		`"arn:aws:sts::000000000000:assumed-role/r/s", "principal_type": "AssumedRole",
		"principal_account": "000000000000", "action": %q, "resource_arn": %q, "region": "us-east-1", "source_ip": "127.0.0.1",
			"secure_transport": true, "request_tags": {}, "tag_keys": [],
		"service_context": {}, "principal_keys": {}}}`, script, decision, denied, action, resource)
}

// good is a stack with exactly the permissions that it needs.
func good() play {
	return play{
		template: template,
		statements: []statement{
			allow("*", "logs:CreateLogStream", "logs:PutLogEvents"), allow("*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"),
			allow(lost, "sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
			allow(racks+"*/status", "ssm:PutParameter", "ssm:DeleteParameter"),
			{Effect: "Deny", Actions: []string{"ssm:PutParameter"}, Resources: []string{racks + "*/params/*"}},
			allow(machine, "states:StartExecution"), allow("arn:aws:eks:us-east-1:000000000000:nodegroup/*", "eks:DescribeUpdate"),
		},
		calls: []string{
			called("Story", "ssm:PutParameter", racks+"demo/status", "Allow", false),
			called("Story", "ssm:DeleteParameter", racks+"demo/status", "Allow", false),
			called("Stopped", "ssm:PutParameter", racks+"other/status", "Allow", false),
			called("Stopped", "states:StartExecution", machine, "Allow", false),
		},
	}
}

// judge returns the output of judge.py for the play. The proof is that of a good play; without a
// proof, judge.py writes one.
func judge(t *testing.T, p *play, proof string) (string, error) {
	t.Helper()
	if _, err := os.Stat("judge.py"); err != nil { // so that go test runs again when it has changed
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	arguments := []string{"-B", "judge.py", "--template", write("template.json", template), "--proof"}
	if proof == "" {
		arguments = append(arguments, filepath.Join(dir, "proof.json"), "--update")
	} else {
		arguments = append(arguments, write("proof.json", proof))
	}
	if p != nil {
		first, err := json.Marshal(map[string]any{
			"template": fmt.Sprintf("%x", sha256.Sum256([]byte(p.template))), "roles": map[string]any{"ResyncRole": p.statements},
		})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, line := range slices.Concat([]string{string(first)}, p.calls, []string{string(first)}) { // MiniStack was restarted
			lines = append(lines, strings.ReplaceAll(line, "\n", " "))
		}
		write("e2e/decisions.jsonl", strings.Join(lines, "\n")+"\n")
	}
	said, err := exec.Command("../../.cache/ministack/bin/python",
		append(arguments, filepath.Join(dir, "e2e", "decisions.jsonl"))...).CombinedOutput()
	if proof == "" && err == nil {
		said, err = os.ReadFile(filepath.Join(dir, "proof.json"))
	}
	return string(said), err
}

// proofOf returns the proof that a good play results in.
func proofOf(t *testing.T) string {
	t.Helper()
	p := good()
	proof, err := judge(t, &p, "")
	if err != nil {
		t.Fatalf("%v: %s", err, proof)
	}
	return proof
}

func TestAGoodStack(t *testing.T) {
	p := good()
	said, err := judge(t, &p, proofOf(t))
	if err != nil || !strings.HasPrefix(said, "1 functions, 7 statements, 12 actions; 4 calls of 2 scripts") {
		t.Errorf("%v: %s", err, said)
	}
}

// A pass that the schedule starts may run during another script.
func TestAProofHoldsWhicheverScriptMakesTheCall(t *testing.T) {
	p := good()
	p.calls[3] = called("Failing", "states:StartExecution", machine, "Allow", false)
	if said, err := judge(t, &p, proofOf(t)); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func TestTheJudgeFinds(t *testing.T) {
	proof := proofOf(t)
	for _, c := range []struct {
		what string
		edit func(*play)
		says string
	}{
		{"a statement that nobody needs", func(p *play) { p.statements = append(p.statements, allow("*", "ssm:DescribeParameters")) },
			"ssm:DescribeParameters on *: no call is refused without this statement"},
		{"an action that nobody needs", func(p *play) { p.statements[5].Actions = append(p.statements[5].Actions, "states:StopExecution") },
			"no call is refused without states:StopExecution"},
		{"a resource that nobody needs", func(p *play) { p.statements[5].Resources = append(p.statements[5].Resources, machine+"-other") },
			"no call is refused without stateMachine:Sawhorse-reconcile-other"},
		{"a statement that another one makes idle",
			func(p *play) {
				p.statements = append(p.statements, allow("*", "states:StartExecution"))
			}, "states:StartExecution on stateMachine:Sawhorse-reconcile: no call is refused without this statement"},
		{"a call that its resource refused", func(p *play) {
			p.calls[3] = called("Stopped", "states:StartExecution", machine, "Allow", true)
		}, "Stopped: resync was refused states:StartExecution on stateMachine:Sawhorse-reconcile"},
		{"a right that is missing", func(p *play) {
			p.calls = append(p.calls, called("Story", "ssm:PutParameter", racks+"demo/outputs", "ImplicitDeny", true))
		}, "Story: resync was refused ssm:PutParameter on parameter/sawhorse/racks/demo/outputs"},
		{"a record that is not whole", func(p *play) {
			p.statements[5].Conditions = map[string]any{"Null": map[string]any{"aws:RequestTag/a": "false"}}
		}, "was Allow and is ImplicitDeny when judged again"},
		{"a right that is known for one that no call can need", func(p *play) {
			p.calls = append(p.calls, called("Story", "sqs:SendMessage", lost, "Allow", false))
		}, "sqs:SendMessage is listed as one that no call can need"},
		{"the same right for another queue", func(p *play) {
			p.statements = append(p.statements, allow(queues+"*", "sqs:GetQueueAttributes"))
		}, "sqs:GetQueueAttributes on *: no call is refused without this statement"},
		{"one that nobody has", func(p *play) { p.statements[1].Actions = p.statements[1].Actions[:1] },
			"xray:PutTelemetryRecords is listed as one that no call can need, and nobody has it"},
		{"a denying statement that denies nothing", func(p *play) { p.statements[4].Resources = []string{racks + "*/else/*"} },
			"the statement that denies ssm:PutParameter keeps nobody from"},
		{"another stack", func(p *play) { p.template = strings.Replace(template, "Resync\"", "Other\"", 1) },
			"e2e: its scripts ran with another stack"},
		{"a proof that holds no more", func(p *play) {
			p.calls[1] = called("Story", "ssm:DeleteParameter", racks+"other/status", "Allow", false)
		},
			"ssm:DeleteParameter was needed by Story: parameter/sawhorse/racks/demo/status, and is not any more"},
		{"a right without a proof", func(p *play) {
			p.statements = append(p.statements, allow("*", "ssm:DescribeParameters"))
			p.calls = append(p.calls, called("Story", "ssm:DescribeParameters", "*", "Allow", false))
		}, "proof.json is not what was found"},
	} {
		p := good()
		c.edit(&p)
		if said, err := judge(t, &p, proof); err == nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v, without %q: %s", c.what, err, c.says, said)
		}
	}
	if said, err := judge(t, nil, proof); err == nil || !strings.Contains(said, "e2e: no script of it has run") {
		t.Errorf("nothing played: %v: %s", err, said)
	}
}
