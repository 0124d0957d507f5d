package main

import (
	"bytes"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// emptyAccount is an account that denies everything, except that it answers that there are no parameters and no cluster.
func emptyAccount(t *testing.T) []string {
	t.Helper()
	return denying(t, "SSM.GetParametersByPath", "EKS.DescribeCluster")
}

// denying is an account without parameters and clusters that only answers these calls.
func denying(t *testing.T, answered ...string) []string {
	t.Helper()
	cloud := awsfake.New()
	cloud.EKS.Cluster = nil
	cloud.Before = func(call string) error {
		if name, _, _ := strings.Cut(call, " "); !slices.Contains(answered, name) {
			return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
		}
		return nil
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return append(variables(t, server.URL), "AWS_MAX_ATTEMPTS=1")
}

// If a check fails, the command exits with 1 and still prints the whole report.
func TestDoctor(t *testing.T) {
	t.Parallel()
	env := emptyAccount(t)
	got := inCloud(t, env, "doctor", "prod").ends(t, 1)
	for _, want := range []string{
		"fails    parameters: cluster_name: there is no EKS cluster \"prod\" in this account and region; create it",
		"info     parameters: rack prod has no parameters yet",
		"         $ sawhorse register prod\n",
		"budgets, single-replicas, bare-pods, do-not-disrupt: there is no EKS cluster",
		"unknown  rule-quota: Service Quotas GetServiceQuota: AccessDeniedException: no\n",
		"Rack prod, cluster prod: 1 fail, 0 warn, 1 to know, ",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%s\nhas no %q", got.stdout, want)
		}
	}
	if asked := inCloud(t, env, "doctor", "prod", "--kubernetes", "1.36").ends(t, 1).stdout; !strings.Contains(asked, "kubernetes-upgrade") ||
		strings.Contains(got.stdout, "kubernetes-upgrade") {
		t.Errorf("with --kubernetes: %s\nwithout: %s", asked, got.stdout)
	}
	report := decoded[doctor.Report](t, inCloud(t, env, "doctor", "-o", "json", "prod").ends(t, 1).stdout)
	if report.Rack != "prod" || report.Findings[0].Check != "parameters" || report.Count(doctor.Unknown) < 15 {
		t.Errorf("%+v", report)
	}
}

// A check that could not be made does not count as good: the command exits with 3 if nothing else fails.
func TestDoctorThatMayNotLook(t *testing.T) {
	t.Parallel()
	env := denying(t)
	if got := inCloud(t, env, "doctor", "prod").ends(t, 3); !strings.Contains(got.stdout, ": 0 fail, 0 warn, 0 to know, ") {
		t.Errorf("%s", got.stdout)
	}
	report := decoded[doctor.Report](t, inCloud(t, env, "doctor", "-o", "json", "prod").ends(t, 3).stdout)
	if report.Count(doctor.Unknown) != len(report.Findings) || len(report.Findings) == 0 {
		t.Errorf("%+v", report)
	}
}

func TestDoctorIsUsedWrongly(t *testing.T) {
	t.Parallel()
	env := emptyAccount(t)
	for _, args := range [][]string{{}, {"-o", "yaml", "prod"}, {"Prod"}, {"prod", "test"}, {"prod", "--fix"},
		{"prod", "--kubernetes", "1.36.1"}, {"prod", "--kubernetes", "v1.36"}, {"prod", "--kubernetes", "2.0"}} {
		inCloud(t, env, append([]string{"doctor"}, args...)...).ends(t, 2)
	}
	for _, name := range []string{"status", "watch", "doctor", "register"} {
		got := inCloud(t, append(env, "AWS_REGION=", "AWS_DEFAULT_REGION="), name, "prod")
		if code := map[bool]int{true: 1, false: 3}[name == "register"]; got.code != code || got.stdout != "" ||
			!strings.HasPrefix(got.stderr, "sawhorse: AWS region: ") {
			t.Errorf("%s without a region: %+v", name, got)
		}
	}
	got := inCloud(t, append(env, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="), "doctor", "prod")
	if got.code != 3 || got.stdout != "" || !strings.HasPrefix(got.stderr, "sawhorse: AWS credentials: ") {
		t.Errorf("without credentials: %+v", got)
	}
}

// One cause may prevent many checks. It is printed once.
func TestReport(t *testing.T) {
	t.Parallel()
	f := func(check string, severity doctor.Severity, what string, commands ...string) doctor.Finding {
		return doctor.Finding{Check: check, Severity: severity, What: what, Why: "It matters.", Do: "Do it.", Commands: commands}
	}
	var out bytes.Buffer
	if err := printReport(&out, doctor.Report{
		Rack: "prod", Cluster: "prod-eu", Good: []string{"cluster", "subnets"}, Findings: []doctor.Finding{
			f("budgets", doctor.Fails, "A budget.", "kubectl patch", "kubectl get"), f("bare-pods", doctor.Warns, "A pod."),
			f("dns", doctor.Unknown, "Refused."), f("encryption", doctor.Unknown, "Not there."), f("budgets", doctor.Unknown, "Refused."),
		},
	}); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", out.String())
}
