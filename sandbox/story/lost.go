package story

import (
	"fmt"
	"time"
)

// LostRight removes a statement from the role of validate, which begins a pass, one from the role of audit, which begins
// a full pass, and one from the role of a step, which a repair needs. Each pass fails and names the missing permission.
// Once it is restored, the next event repairs everything.
func LostRight(t *Teller) {
	for _, lost := range []struct{ function, action, first, request string }{
		{"validate", "eks:ListNodegroups", "eks:ListNodegroups", event},
		{"audit", "eks:ListNodegroups", "eks:ListNodegroups", fullPass},
		{"queue", "events:PutRule", "events:DescribeRule", fullPass},
	} {
		t.Chapter("A statement less for " + lost.function + ": the one with " + lost.action)
		back := take(t, lost.function, lost.action)
		t.Type("aws events disable-rule --name demo-karpenter")
		t.Check("request", lost.request, "0")
		t.Until("status", state, "Failed", time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Contains("it names the right", status, "is not authorized to perform: "+lost.first)
		t.Contains("and the remedy", "sawhorse status demo", "A right is missing")
		t.Check("rule", queueRule, "DISABLED")
		back()
		t.Check("request", lost.request, "0")
		t.Until("the next event: rule", queueRule, "ENABLED", time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Check("status", state, "Reconciled")
	}
}

// take removes the statement with an action from a function's role. The returned function restores it.
func take(t *Teller, function, action string) (back func()) {
	role := "--role-name " + roleOf(function)
	policy := " --policy-name " + t.Ask("aws iam list-role-policies --query 'PolicyNames[0]' --output text "+role) + " " + role
	document := "aws iam get-role-policy --query PolicyDocument --output json" + policy
	whole, put := t.Ask(document), "aws iam put-role-policy"+policy+" --policy-document "
	t.Type(put + `"$(` +
		document + fmt.Sprintf(` | python3 -c 'import json,sys; d = json.load(sys.stdin); `+
		`d["Statement"] = [s for s in d["Statement"] if "%s" not in s["Action"]]; print(json.dumps(d))')"`, action))
	return func() {
		if said := t.Ask(put + "'" + whole + "'"); said != "" {
			t.fail("put the statement back: %s", said)
		}
		t.Say("The statement is back.")
	}
}
