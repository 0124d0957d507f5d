package story

import "time"

// Doctor examines the rack with a read-only role. At first the API server does not know the role; the command prints
// the access entry that it needs. Then there is a PodDisruptionBudget that never allows an eviction, and then there is
// none. The operator applies each remedy exactly as printed.
func Doctor(t *Teller) {
	const (
		arn   = "arn:aws:iam::000000000000:role/examiner"
		trust = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},` +
			`"Action":"sts:AssumeRole"}]}'`
		policy  = " --role-name examiner --policy-arn arn:aws:iam::aws:policy/ReadOnlyAccess"
		session = "aws sts assume-role --role-arn " + arn +
			" --role-session-name doctor --query Credentials.[AccessKeyId,SecretAccessKey,SessionToken] --output text"
		examine = `read -r id key token < <(` + session +
			`); AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$key AWS_SESSION_TOKEN=$token sawhorse doctor demo`
		exit   = examine + " > /dev/null; echo $?"
		failed = examine + ` -o json | python3 -c 'import json, sys; ` +
			`print(*[f["check"] for f in json.load(sys.stdin)["findings"] if f["severity"] == "fails"])'`
	)
	told := func(words string) string {
		return "{ " + examine + "; } | sed -n '/" + words + "/,/^[a-zR]/s/^ *\\$ //p' | bash -e > /dev/null"
	}
	budgets := func(severity string) string {
		return "{ " + examine + "; } | grep -c '^" + severity + " .*budgets' || true"
	}

	t.Chapter("Examined by somebody whom the API server does not know")
	t.Type("aws iam create-role --role-name examiner --query Role.Arn --output text --assume-role-policy-document " + trust)
	t.Type("aws iam attach-role-policy" + policy)
	t.Contains("what nobody could look at is said", examine,
		"budgets, single-replicas, bare-pods, do-not-disrupt: the cluster's API server does not know the caller")
	t.Check("and is no failure, nor a good end", exit, "3")
	t.Type(told("does not know the caller"))
	t.Until("budgets are good", budgets("good"), "1", time.Minute)
	t.Check("nothing is refused to the role", "{ "+examine+"; } | grep -c AccessDenied || true", "0")

	t.Chapter("A PodDisruptionBudget that never yields")
	guarded.start(t)
	t.Type(noEviction)
	t.Until("it is found", budgets("fails"), "1", time.Minute)
	t.Refused(examine, "fails    budgets: PodDisruptionBudget shop/guarded allows no eviction, ever: maxUnavailable is 0 (pods: 1)")
	t.Check("in JSON too", failed, "budgets")
	t.Type(told("shop.guarded allows"))
	t.Until("budgets are good again", budgets("good"), "1", time.Minute)
	t.Check("nothing fails", failed, "")
	t.Say("The sandbox's AWS has no Service Quotas: what is about those stays unknown.")
	t.Check("and the exit code tells", exit, "3")
	t.Contains("that it has one pod is said", examine, "Deployment shop/guarded")

	t.Type("kubectl -n shop delete poddisruptionbudget guarded")
	guarded.end(t)
	t.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + arn)
	t.Type("aws iam detach-role-policy" + policy)
	t.Type("aws iam delete-role --role-name examiner")
}
