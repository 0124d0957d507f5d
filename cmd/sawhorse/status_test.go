package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// holding returns an account with these parameters and the stack, in which no pass runs.
func holding(values map[string]string) *awsfake.Cloud {
	cloud := awsfake.New()
	maps.Copy(cloud.SSM.Values, values)
	return cloud
}

// environment returns the variables that make the command use an account. The command must not call more than the fake has.
func environment(t *testing.T, cloud *awsfake.Cloud) []string {
	t.Helper()
	server := httptest.NewServer(cloud)
	t.Cleanup(func() {
		server.Close()
		if len(cloud.Unserved) > 0 {
			t.Errorf("the command calls %q", cloud.Unserved)
		}
	})
	return variables(t, server.URL)
}

// variables returns the environment that makes the command use an endpoint.
func variables(t *testing.T, url string) []string {
	nowhere := t.TempDir() + "/none"
	return []string{
		"AWS_ENDPOINT_URL=" + url, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere,
		"AWS_EC2_METADATA_DISABLED=true", "SAWHORSE_PREFIX=", "SAWHORSE_STACK=",
	}
}

func statusText(t *testing.T, s store.Status) string {
	t.Helper()
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var (
	reconciled = store.Status{
		Rack: "prod", State: outcome.StateReconciled, Generation: 7, Time: "2026-11-21T03:55:42Z", DurationSeconds: 26.46, Karpenter: "1.10.0",
		Warnings: []params.Problem{{Parameter: "additional_karpenter_nodepools_config", Path: "[0].taints", Message: "nothing tolerates it"}},
		Effects:  []string{"pool workload is changed: its 3 nodes stay"}, Changed: []string{"NodePool/workload updated"}, Omitted: 2,
	}
	rejected = store.Status{
		Rack: "prod", State: outcome.StateRejected, Generation: 8, Time: "2026-11-21T03:55:54Z", DurationSeconds: 1.3,
		Problems: []params.Problem{{Parameter: "karpenter_auth_mode",
			Message: "karpenter_auth_mode is false, but it has been applied and EKS cannot go back to the CONFIG_MAP access mode; write true " +
				"(karpenter_enabled=false is what turns Karpenter off)"}},
	}
	failed = store.Status{
		Rack: "prod", State: outcome.StateFailed, Generation: 9, Time: "2026-11-21T04:00:00Z",
		Failure: &store.Failure{Step: "queue", Error: "ServiceError", Reason: "queue prod-karpenter: create: AccessDenied",
			Remedy: "Look at the function's role."},
	}
	unplaced = store.Status{
		Rack: "prod", State: outcome.StateFailed, Generation: 9, Time: "2026-11-21T04:00:00Z",
		Failure: &store.Failure{Error: "ABORTED", Reason: "somebody stopped the execution", Remedy: "Nothing is lost."},
	}
	degradedPools = store.Status{
		Rack: "prod", State: outcome.StateDegraded, Generation: 11, Time: "2026-11-21T06:00:00Z", Pools: store.Pools{
			{Pool: "gpu", Since: "2026-11-21T05:58:00Z", Reason: "EC2NodeClass/gpu: SubnetsReady=False"},
			{Pool: "workload", Nodes: 12, Ready: true, Outdated: 3, Since: "2026-11-21T05:50:00Z"},
		},
	}
	changed = store.Status{
		Rack: "prod", State: outcome.StateReconciled, Generation: 12, Time: "2026-11-21T07:00:00Z",
		Change: &store.ChangeStatus{Version: 3, Outcome: store.ChangeRefused, Note: "more room",
			Problems: []params.Problem{{Parameter: "node_disk", Message: "no"}}},
	}
	paused = store.Status{
		Rack: "prod", State: outcome.StatePaused, Generation: 10, Time: "2026-11-21T05:00:00Z", Steps: []string{"nodepools"},
		Brakes: []string{"karpenter_freeze", "paused"},
	}
)

var waitingPods = store.Status{
	Rack: "prod", State: outcome.StateDegraded, Generation: 11, Time: "2026-11-21T06:00:00Z", Waiting: store.Waiting{
		{Cause: events.CauseLimit, Pods: 3, Oldest: "shop/web", Since: "2026-11-21T05:45:00Z", Reason: "limits"},
		{Cause: events.CauseUnfit, Pods: 1, Oldest: "shop/gpu", Since: "2026-11-21T05:48:00Z", Reason: "taint"},
	},
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, text, stdout, stderr string
		code                       int
	}{
		{"reconciled", statusText(t, reconciled), `Reconciled  generation 7  2026-11-21T03:55:42Z  26.5 s  Karpenter 1.10.0
warning  additional_karpenter_nodepools_config [0].taints: nothing tolerates it
pool workload is changed: its 3 nodes stay
changed  NodePool/workload updated
and 2 more, complete in the rack's records
`, "", 0},
		{"rejected", statusText(t, rejected),
			"Rejected  generation 8  2026-11-21T03:55:54Z  1.3 s\nproblem  karpenter_auth_mode: " + rejected.Problems[0].Message + "\n",
			"sawhorse: rack prod is Rejected\n", 1},
		{"failed", statusText(t, failed), "Failed  generation 9  2026-11-21T04:00:00Z  0.0 s\n" +
			"failure  step queue: ServiceError: queue prod-karpenter: create: AccessDenied\n         Look at the function's role.\n",
			"sawhorse: rack prod is Failed\n", 1},
		{"failed nobody knows where", statusText(t, unplaced),
			"Failed  generation 9  2026-11-21T04:00:00Z  0.0 s\nfailure  ABORTED: somebody stopped the execution\n         Nothing is lost.\n",
			"sawhorse: rack prod is Failed\n", 1},
		{"paused", statusText(t, paused),
			"Paused  generation 10  2026-11-21T05:00:00Z  0.0 s\nbrake    karpenter_freeze\nbrake    paused\ndue      nodepools\n", "", 0},
		{"a change that was refused", statusText(t, changed), "Reconciled  generation 12  2026-11-21T07:00:00Z  0.0 s\n" +
			"change   version 3  Refused  more room\n          node_disk: no\n", "", 0},
		{"what would garble the terminal, or look like something else", statusText(t, store.Status{
			Rack: "prod", State: outcome.StateReconciled, Generation: 12, Time: "2026-11-21T07:00:00Z",
			Change: &store.ChangeStatus{Version: 3, Outcome: store.ChangeWritten, Note: "x\nfailure  step queue"},
			Pools:  store.Pools{{Pool: "gpu", Ready: true, Held: "no\x1b[2J", Reason: "a\nb"}},
		}), "Reconciled  generation 12  2026-11-21T07:00:00Z  0.0 s\n" + `change   version 3  Written  "x\nfailure  step queue"
pool     gpu  0 nodes: "a\nb", held: "no\x1b[2J"
`, "", 0},
		{"degraded", statusText(t, degradedPools), `Degraded  generation 11  2026-11-21T06:00:00Z  0.0 s
pool     gpu  0 nodes, not Ready since 2026-11-21T05:58:00Z: EC2NodeClass/gpu: SubnetsReady=False
pool     workload  12 nodes, 3 outdated since 2026-11-21T05:50:00Z
`, "sawhorse: rack prod is Degraded: a pool is not Ready, its nodes do not register, or pods wait for nodes that cannot be launched\n", 1},
		{"pods that wait", statusText(t, waitingPods), `Degraded  generation 11  2026-11-21T06:00:00Z  0.0 s
waiting  3 pods have waited for a node for ten minutes, shop/web since 2026-11-21T05:45:00Z: the limit of the pool is reached: limits
waiting  pod shop/gpu has waited for a node since 2026-11-21T05:48:00Z: no pool fits: taint
`, "sawhorse: rack prod is Degraded: a pool is not Ready, its nodes do not register, or pods wait for nodes that cannot be launched\n", 1},
		{"garbled", "x", "",
			"sawhorse: parameter /sawhorse/racks/prod/status: decode: invalid character 'x' looking for beginning of value\n", 3},
	} {
		t.Run(c.what, func(t *testing.T) {
			env := environment(t, holding(map[string]string{statusName: c.text}))
			if got := inCloud(t, env, "status", "prod"); got.code != c.code || got.stdout != c.stdout || got.stderr != c.stderr {
				t.Errorf("%+v\nwant %+v", got, ran{c.code, c.stdout, c.stderr})
			}
		})
	}
}

func TestStatusOfAStackWithAnotherPrefix(t *testing.T) {
	t.Parallel()
	env := environment(t, holding(map[string]string{"/other/racks/prod/status": statusText(t, reconciled)}))
	if got := inCloud(t, append(env, "SAWHORSE_PREFIX=/other"), "status", "prod").ends(t, 0); !strings.HasPrefix(got.stdout, "Reconciled") {
		t.Errorf("%+v", got)
	}
}

// inCloud runs the command with the environment of a fake.
func inCloud(t *testing.T, env []string, args ...string) ran {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = slices.Concat(os.Environ(), []string{asCommand + "=1"}, env)
	return execute(t, command, "")
}

func TestRegister(t *testing.T) {
	t.Parallel()
	cloud := awsfake.New()
	cloud.EKS.Other("prod-eu", nil)
	got := inCloud(t, environment(t, cloud), "register", "prod", "--all", "--cluster", "prod-eu", "--rate", "10000").ends(t, 0)
	want := fmt.Sprintf("%-40s tagged sawhorse.dev/rack=prod\n", "cluster prod-eu")
	for _, p := range params.Table {
		want += fmt.Sprintf("%-40s created\n", p.Name)
		value := "unset"
		if p.Name == "cluster_name" {
			value = "prod-eu"
		}
		if got := cloud.SSM.Values[folder+p.Name]; got != value {
			t.Errorf("%s is %q, want %q", p.Name, got, value)
		}
	}
	if got.stdout != want || got.stderr != "" || cloud.EKS.Others["prod-eu"].Tags[ownership.TagRack] != "prod" {
		t.Errorf("%+v\nwant\n%s", got, want)
	}
}

// If another person has to act, the command prints that and succeeds, because the parameters are registered. If the
// cluster belongs to another rack, the command fails and writes nothing.
func TestRegisterWithoutItsCluster(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tags   map[string]string // of cluster prod, if it exists
		code   int
		stderr string
	}{
		{nil, 0, "sawhorse: whether cluster prod lets rack prod in is not known: there is no EKS cluster of that name"},
		{map[string]string{ownership.TagRack: "other"}, 1, "sawhorse: cluster prod carries the tag sawhorse.dev/rack=other"},
	} {
		cloud := awsfake.New()
		if c.tags != nil {
			cloud.EKS.Other("prod", c.tags)
		}
		got := inCloud(t, environment(t, cloud), "register", "prod", "--rate", "10000")
		if wrote := cloud.SSM.Values[folder+"karpenter_enabled"] != ""; got.code != c.code ||
			!strings.HasPrefix(got.stderr, c.stderr) || wrote != (c.code == 0) {
			t.Errorf("%+v, wrote %v", got, wrote)
		}
	}
}

// An earlier status is not the final result while a pass runs, or before a pass has seen the last write: exit 3.
func TestStatusWhileAPassRuns(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	e := s.begins("second").reads("Planned", true, "nodepools")
	s.now = s.now.Add(time.Minute)
	e.takes("nodepools", "wait", "1 NodeClaim(s) draining")
	w := s.watcher()
	env := environment(t, s.cloud)
	text := inCloud(t, env, "status", "prod")
	if want := "a pass is running since 2026-11-21T09:50:00Z: step nodepools since 2026-11-21T09:51:00Z: " +
		"1 NodeClaim(s) draining\nReconciled "; text.code != 3 || !strings.HasPrefix(text.stdout, want) {
		t.Errorf("%+v, want %q", text, want)
	}
	data := inCloud(t, env, "status", "prod", "-o", "json")
	at := time.Date(2026, 11, 21, 9, 50, 0, 0, time.UTC)
	if got := decoded[standing](t, data.stdout); data.code != 3 || got.Running == nil ||
		*got.Running != (store.Running{Execution: awsfake.ExecutionARN + "second", Started: at, Step: "nodepools", Since: at.Add(time.Minute),
			Note: "1 NodeClaim(s) draining"}) {
		t.Errorf("%+v", data)
	}
	if err := w.status(t.Context()); !errors.As(err, new(undecided)) {
		t.Errorf("%v", err)
	}
	e.ends()
	concludes(t, w.status(t.Context()), "")
	s.parameter("karpenter_enabled", 2)
	if err := w.status(t.Context()); !errors.As(err, new(undecided)) {
		t.Errorf("after a write: %v", err)
	}
	data = inCloud(t, env, "status", "prod", "-o", "json")
	if got := decoded[standing](t, data.stdout); data.code != 3 || got.Running != nil ||
		!slices.Equal(got.Unseen, []string{"karpenter_enabled version 2"}) {
		t.Errorf("%+v", data)
	}
	s.parameter("karpenter_enabled", 1)
	s.reports(e, outcome.StateRejected)
	concludes(t, w.status(t.Context()), "rack prod is Rejected")
}

// A user who may read parameters but not executions still gets the status, and is told which permission may be missing.
func TestStatusWithoutTheRightToSeePasses(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateRejected)
	w := s.watcher()
	s.denied = "StepFunctions"
	concludes(t, w.status(t.Context()), "rack prod is Rejected")
	s.status.Running = &store.Running{Execution: "e", Started: s.now, Step: "access", Since: s.now, Note: "EKS changes it"}
	if err := w.status(t.Context()); !errors.As(err, new(undecided)) {
		t.Errorf("while a pass waits: %v", err)
	}
	s.status = &store.Status{Rack: "prod", Running: s.status.Running} // of the first pass
	concludes(t, w.status(t.Context()), "AccessDenied")
	s.status = nil
	concludes(t, w.status(t.Context()), "AccessDenied")
}

// The JSON has the status as it is stored, also if it is not known whether a pass is running.
func TestStatusAsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values map[string]string
		gone   bool // the stack
		args   []string
		code   int
		want   *store.Status
	}{
		{map[string]string{statusName: statusText(t, reconciled)}, false, nil, 0, &reconciled},
		{map[string]string{statusName: statusText(t, reconciled)}, false, []string{"--wait"}, 0, &reconciled},
		{map[string]string{statusName: statusText(t, rejected)}, false, nil, 1, &rejected},
		{map[string]string{statusName: statusText(t, reconciled)}, true, nil, 3, &reconciled},
		{map[string]string{statusName: statusText(t, rejected)}, true, nil, 1, &rejected},
		{map[string]string{folder + "karpenter_enabled": "unset"}, false, nil, 1, nil},
	} {
		cloud := holding(c.values)
		cloud.States.Gone = c.gone
		got := inCloud(t, environment(t, cloud), append([]string{"status", "prod", "--output", "json"}, c.args...)...)
		s := decoded[standing](t, got.stdout)
		if got.code != c.code || s.Rack != "prod" || !reflect.DeepEqual(s.Status, c.want) || (s.Unknown != "") != c.gone {
			t.Errorf("%+v", got)
		}
	}
}

func TestStatusWaits(t *testing.T) {
	t.Parallel()
	env := environment(t, holding(map[string]string{statusName: statusText(t, reconciled)}))
	got := inCloud(t, env, "status", "prod", "--wait").ends(t, 0)
	if !strings.HasPrefix(got.stdout, "Reconciled  generation 7") {
		t.Errorf("%+v", got)
	}
}

// A wrong region has no stack, and a wrong name has no parameters. A new rack has both, and no status.
func TestStatusOfARackThatThereIsNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		values map[string]string
		code   int
		stderr string
	}{
		{"the wrong name", map[string]string{"/sawhorse/racks/prod2/params/paused": "true"}, 1,
			"sawhorse: there is no rack prod in eu-central-1: it has no parameter below /sawhorse/racks/prod/params; check the name, " +
				"the region (AWS_REGION) and the prefix (SAWHORSE_PREFIX), or create the rack with `sawhorse register prod`\n"},
		{"the wrong region", nil, 3,
			"sawhorse: there is no stack Sawhorse in eu-central-1: no state machine is named Sawhorse-reconcile; choose another " +
				"region with AWS_REGION or another stack with SAWHORSE_STACK, or deploy this one\n"},
		{"a new rack", map[string]string{folder + "karpenter_enabled": "unset"}, 1,
			"sawhorse: rack prod has no status yet: no pass has had anything to do for it, or to say about it; " +
				"karpenter_auth_mode=true begins the work (parameters below /sawhorse/racks/prod/params: 1)\n"},
	} {
		cloud := holding(c.values)
		cloud.States.Gone = c.values == nil
		if got := inCloud(t, environment(t, cloud), "status", "prod"); got.code != c.code || got.stdout != "" || got.stderr != c.stderr {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

// The commands that change a rack, and those that wait, have one object on stdout too; their text is on stderr.
func TestTheOthersAsJSON(t *testing.T) {
	t.Parallel()
	cloud := awsfake.New()
	cloud.EKS.Other("prod", nil)
	made := decoded[registered](t, inCloud(t, environment(t, cloud), "register", "prod", "-o", "json", "--rate", "10000").ends(t, 0).stdout)
	if made.Rack != "prod" || made.Left != "" || !slices.Contains(made.Done, act{"karpenter_enabled", "created"}) {
		t.Errorf("register: %+v", made)
	}
	cloud = holding(map[string]string{statusName: statusText(t, reconciled), folder + "karpenter_cpu_limit": "100"})
	got := inCloud(t, environment(t, cloud), "watch", "prod", "-o", "json").ends(t, 0)
	if last := decoded[standing](t, got.stdout); !reflect.DeepEqual(last.Status, &reconciled) {
		t.Errorf("watch: %+v", got)
	}
	s := turnedOn(t)
	s.cloud.Before = func(call string) error {
		if strings.HasPrefix(call, "SSM.PutParameter") {
			s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeRefused,
				Problems: []params.Problem{{Parameter: "karpenter_cpu_limit", Message: "no"}}}
		}
		return s.before(call)
	}
	env := environment(t, s.cloud)
	for what, c := range map[string]struct {
		text string
		code int
		want func(carried) bool
	}{
		"written": {"karpenter_cpu_limit=200", 1, func(a carried) bool {
			return a.Accepted && len(a.Differs) == 1 && a.Change != nil && a.Change.Outcome == store.ChangeRefused
		}},
		"refused": {"karpenter_cpu_limit=many", 1, func(a carried) bool { return !a.Accepted && a.Change == nil }},
		"nothing": {"karpenter_cpu_limit=100", 0, func(a carried) bool { return a.Accepted && len(a.Differs) == 0 }},
	} {
		got := inCloud(t, env, "apply", "prod", file(t, c.text), "--yes", "-o", "json")
		if a := decoded[carried](t, got.stdout); got.code != c.code || a.Rack != "prod" || !c.want(a) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// Every line of a status is described in the handbook.
func TestTheLinesOfAStatusAreDocumented(t *testing.T) {
	t.Parallel()
	handbook, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []store.Status{reconciled, rejected, failed, paused} {
		got := inCloud(t, environment(t, holding(map[string]string{statusName: statusText(t, status)})), "status", "prod")
		for line := range strings.Lines(got.stdout) {
			// An indented line is the remedy of a failure.
			if first := strings.Fields(line)[0]; !strings.Contains(string(handbook), "\n| `"+first) && !strings.HasPrefix(line, "         ") {
				t.Errorf("docs/operate.md does not say what %q is", line)
			}
		}
	}
}
