package story

import (
	"slices"
	"strings"
	"time"
)

// Doctor examines the rack with a read-only role. At first the API server does not know the role; the command prints
// the access entry that it needs. Then there is a PodDisruptionBudget that never allows an eviction, and then there is
// none. The operator applies each remedy exactly as printed.
func Doctor(s *Script) {
	const (
		arn    = "arn:aws:iam::000000000000:role/examiner"
		policy = " --role-name examiner --policy-arn arn:aws:iam::aws:policy/ReadOnlyAccess"
	)
	trust := object{"Version": "2012-10-17", "Statement": []object{
		{"Effect": "Allow", "Principal": object{"AWS": "arn:aws:iam::000000000000:root"}, "Action": "sts:AssumeRole"},
	}}
	s.Type("aws iam create-role --role-name examiner --query Role.Arn --assume-role-policy-document " + argument(trust))
	s.Type("aws iam attach-role-policy" + policy)
	examine := as(credentialsOf(s, arn))("sawhorse doctor demo")
	// The sandbox's AWS has no Service Quotas: what is about those stays unknown, and that is exit code 3.
	exit := func() { s.Check("exit code", examine+" > /dev/null; echo $?", "3") }
	budgets := func(severity string) {
		s.Await("budgets", func() string { return diagnose(s, examine).severity("budgets") }, severity, time.Minute)
	}
	apply := func() {
		commands := diagnose(s, examine).remedy("budgets")
		s.Equal("it has a remedy", len(commands) > 0, true)
		for _, command := range commands {
			s.Type(command)
		}
	}
	s.Chapter("Examined by somebody whom the API server does not know", func() {
		s.Contains("what could not be examined is reported", examine,
			"budgets, single-replicas, bare-pods, do-not-disrupt: the cluster's API server does not know the caller")
		exit()
		apply()
		budgets("good")
		if text := s.printed(examine); strings.Contains(text, "AccessDenied") {
			s.fail("wanted nothing refused to the role, got %s", text)
		}
	})

	s.Chapter("A PodDisruptionBudget that never allows an eviction", func() {
		guarded.start(s)
		s.Type(noEviction)
		budgets("fails")
		s.Refused(examine, "fails    budgets: PodDisruptionBudget shop/guarded allows no eviction, ever: maxUnavailable is 0 (pods: 1)")
		apply()
		budgets("good")
		exit()
		s.Contains("a Deployment with one pod is reported", examine, "Deployment shop/guarded")
	})

	s.Type("kubectl -n shop delete poddisruptionbudget guarded")
	guarded.end(s)
	s.Type("aws eks delete-access-entry --cluster-name demo --principal-arn " + arn)
	s.Type("aws iam detach-role-policy" + policy)
	s.Type("aws iam delete-role --role-name examiner")
}

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	Findings []struct {
		Check, Severity, What string
		Commands              []string
	}
	Good []string
}

// diagnose runs doctor, which may end with another exit code than 0.
func diagnose(s *Script, examine string) diagnosis {
	return JSON[diagnosis](s, examine+" -o json || true")
}

// severity returns the severity of the finding of a check, or "good".
func (d diagnosis) severity(check string) string {
	for _, f := range d.Findings {
		if f.Check == check {
			return f.Severity
		}
	}
	if slices.Contains(d.Good, check) {
		return "good"
	}
	return ""
}

// remedy returns the commands of a check's finding.
func (d diagnosis) remedy(check string) []string {
	for _, f := range d.Findings {
		if f.Check == check {
			return f.Commands
		}
	}
	return nil
}
