package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// parameterStore is a fake of three services. It answers as SSM when parameters are read or created; as EKS for the
// clusters among the values ("cluster NAME", with the rack that the cluster's tag allows in); and as Step Functions,
// without a running pass, unless "no stack" is among the values. It returns the environment that makes the command use
// the fake.
func parameterStore(t *testing.T, values map[string]string) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/clusters/") || strings.HasPrefix(r.URL.Path, "/tags/") {
			clusters(t, w, r, values)
			return
		}
		var asked struct{ Name, Path, Value string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		answer := map[string]any{}
		switch action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSSM."); action {
		case "GetParameter":
			if values[asked.Name] == "" {
				w.WriteHeader(http.StatusBadRequest)
				answer["__type"] = "ParameterNotFound"
			}
			answer["Parameter"] = map[string]any{"Name": asked.Name, "Type": "String", "Value": values[asked.Name]}
		case "GetParametersByPath":
			var list []any
			for name := range values {
				if strings.HasPrefix(name, asked.Path+"/") {
					list = append(list, map[string]any{"Name": name, "Type": "String", "Value": values[name], "Version": 1})
				}
			}
			answer["Parameters"] = list
		case "AWSStepFunctions.ListStateMachines":
			if answer["stateMachines"] = []any{}; values["no stack"] == "" {
				answer["stateMachines"] = []any{theMachine}
			}
		case "AWSStepFunctions.ListExecutions":
			answer["executions"] = []any{}
		case "AWSStepFunctions.DescribeExecution":
			w.WriteHeader(http.StatusBadRequest)
			answer["__type"] = "ExecutionDoesNotExist"
		case "DescribeParameters":
			answer["Parameters"] = []any{}
		case "PutParameter":
			values[asked.Name], answer["Version"] = asked.Value, 1
		default:
			t.Errorf("the command calls %s", action)
			w.WriteHeader(http.StatusInternalServerError)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return credentialsFor(t, server.URL)
}

// credentialsFor returns the environment that makes the command use a fake.
func credentialsFor(t *testing.T, url string) []string {
	nowhere := t.TempDir() + "/none"
	return []string{
		"AWS_ENDPOINT_URL=" + url, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere,
		"AWS_EC2_METADATA_DISABLED=true", "SAWHORSE_PREFIX=", "SAWHORSE_STACK=",
	}
}

// clusters answers DescribeCluster and TagResource.
func clusters(t *testing.T, w http.ResponseWriter, r *http.Request, values map[string]string) {
	name := "cluster " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	in, known := values[name]
	switch {
	case !known:
		w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		var asked struct{ Tags map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		values[name] = asked.Tags["sawhorse.dev/rack"]
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"cluster": map[string]any{
			"arn": "arn:aws:eks:eu-central-1:123456789012:" + strings.Replace(name, " ", "/", 1), "tags": map[string]string{"sawhorse.dev/rack": in},
		}})
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
	paused = store.Status{
		Rack: "prod", State: outcome.StatePaused, Generation: 10, Time: "2026-11-21T05:00:00Z", Steps: []string{"nodepools"},
		Brakes: []string{"karpenter_freeze", "paused"},
	}
)

func TestStatus(t *testing.T) {
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
		{"degraded", statusText(t, degradedPools), `Degraded  generation 11  2026-11-21T06:00:00Z  0.0 s
pool     gpu  0 nodes, not Ready since 2026-11-21T05:58:00Z: EC2NodeClass/gpu: SubnetsReady=False
pool     workload  12 nodes, 3 outdated since 2026-11-21T05:50:00Z
`, "sawhorse: rack prod is Degraded: a pool is not Ready, or its nodes do not register\n", 1},
		{"garbled", "x", "",
			"sawhorse: parameter /sawhorse/racks/prod/status: decode: invalid character 'x' looking for beginning of value\n", 3},
	} {
		t.Run(c.what, func(t *testing.T) {
			env := parameterStore(t, map[string]string{"/sawhorse/racks/prod/status": c.text})
			if got := inCloud(t, env, "status", "prod"); got.code != c.code || got.stdout != c.stdout || got.stderr != c.stderr {
				t.Errorf("%+v\nwant %+v", got, ran{c.code, c.stdout, c.stderr})
			}
		})
	}
}

func TestStatusOfAStackWithAnotherPrefix(t *testing.T) {
	env := parameterStore(t, map[string]string{"/other/racks/prod/status": statusText(t, reconciled)})
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
	values := map[string]string{"cluster prod-eu": ""}
	got := inCloud(t, parameterStore(t, values), "register", "prod", "--all", "--cluster", "prod-eu", "--rate", "10000").ends(t, 0)
	want := fmt.Sprintf("%-40s tagged sawhorse.dev/rack=prod\n", "cluster prod-eu")
	for _, p := range params.Table {
		want += fmt.Sprintf("%-40s created\n", p.Name)
		value := "unset"
		if p.Name == "cluster_name" {
			value = "prod-eu"
		}
		if name := "/sawhorse/racks/prod/params/" + p.Name; values[name] != value {
			t.Errorf("%s is %q, want %q", name, values[name], value)
		}
	}
	if got.stdout != want || got.stderr != "" || values["cluster prod-eu"] != "prod" {
		t.Errorf("%+v\nwant\n%s", got, want)
	}
}

// If another person has to act, the command prints that and succeeds, because the parameters are registered. If the
// cluster belongs to another rack, the command fails and writes nothing.
func TestRegisterWithoutItsCluster(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		code   int
		stderr string
	}{
		{map[string]string{}, 0, "sawhorse: whether cluster prod lets rack prod in is not known: there is no EKS cluster of that name"},
		{map[string]string{"cluster prod": "other"}, 1, "sawhorse: cluster prod carries the tag sawhorse.dev/rack=other"},
	} {
		got := inCloud(t, parameterStore(t, c.values), "register", "prod", "--rate", "10000")
		if wrote := c.values["/sawhorse/racks/prod/params/karpenter_enabled"] != ""; got.code != c.code ||
			!strings.HasPrefix(got.stderr, c.stderr) || wrote != (c.code == 0) {
			t.Errorf("%+v, wrote %v", got, wrote)
		}
	}
}

// An earlier status is not the final result while a pass runs, or before a pass has seen the last write: exit 3.
func TestStatusWhileAPassRuns(t *testing.T) {
	s := settled(t, outcome.StateReconciled)
	e := s.begins("second").reads("Planned", true, "nodepools")
	s.now = s.now.Add(time.Minute)
	e.takes("nodepools", "wait", "1 NodeClaim(s) draining")
	w := s.watcher()
	server := httptest.NewServer(s)
	defer server.Close()
	text := inCloud(t, credentialsFor(t, server.URL), "status", "prod")
	if want := "a pass is running since 2026-11-21T09:50:00Z: step nodepools since 2026-11-21T09:51:00Z: " +
		"1 NodeClaim(s) draining\nReconciled "; text.code != 3 || !strings.HasPrefix(text.stdout, want) {
		t.Errorf("%+v, want %q", text, want)
	}
	data := inCloud(t, credentialsFor(t, server.URL), "status", "prod", "-o", "json")
	at := time.Date(2026, 11, 21, 9, 50, 0, 0, time.UTC)
	if got := decoded[standing](t, data.stdout); data.code != 3 || got.Running == nil ||
		*got.Running != (running{executionARN + "second", at, "nodepools", at.Add(time.Minute), "1 NodeClaim(s) draining"}) {
		t.Errorf("%+v", data)
	}
	if err := w.status(t.Context()); !errors.As(err, new(undecided)) {
		t.Errorf("%v", err)
	}
	e.ends()
	concludes(t, w.status(t.Context()), "")
	s.parameters["karpenter_enabled"]++
	if err := w.status(t.Context()); !errors.As(err, new(undecided)) {
		t.Errorf("after a write: %v", err)
	}
	data = inCloud(t, credentialsFor(t, server.URL), "status", "prod", "-o", "json")
	if got := decoded[standing](t, data.stdout); data.code != 3 || got.Running != nil ||
		!slices.Equal(got.Unseen, []string{"karpenter_enabled version 2"}) {
		t.Errorf("%+v", data)
	}
	s.parameters["karpenter_enabled"]--
	s.reports(e, outcome.StateRejected)
	concludes(t, w.status(t.Context()), "rack prod is Rejected")
}

// A user who may read parameters but not executions still gets the status, and is told which permission may be missing.
func TestStatusWithoutTheRightToSeePasses(t *testing.T) {
	s := settled(t, outcome.StateRejected)
	w := s.watcher()
	s.denied = "AWSStepFunctions"
	concludes(t, w.status(t.Context()), "rack prod is Rejected")
	s.status = nil
	concludes(t, w.status(t.Context()), "AccessDenied")
}

// The JSON has the status as it is stored, also if it is not known whether a pass is running.
func TestStatusAsJSON(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		args   []string
		code   int
		want   *store.Status
	}{
		{map[string]string{"/sawhorse/racks/prod/status": statusText(t, reconciled)}, nil, 0, &reconciled},
		{map[string]string{"/sawhorse/racks/prod/status": statusText(t, reconciled)}, []string{"--wait"}, 0, &reconciled},
		{map[string]string{"/sawhorse/racks/prod/status": statusText(t, rejected)}, nil, 1, &rejected},
		{map[string]string{"/sawhorse/racks/prod/status": statusText(t, reconciled), "no stack": "true"}, nil, 0, &reconciled},
		{map[string]string{"/sawhorse/racks/prod/params/karpenter_enabled": "unset"}, nil, 1, nil},
	} {
		got := inCloud(t, parameterStore(t, c.values), append([]string{"status", "prod", "--output", "json"}, c.args...)...)
		s := decoded[standing](t, got.stdout)
		if got.code != c.code || s.Rack != "prod" || !reflect.DeepEqual(s.Status, c.want) || (s.Unknown != "") != (c.values["no stack"] != "") {
			t.Errorf("%+v", got)
		}
	}
}

func TestStatusWaits(t *testing.T) {
	env := parameterStore(t, map[string]string{"/sawhorse/racks/prod/status": statusText(t, reconciled)})
	got := inCloud(t, env, "status", "prod", "--wait").ends(t, 0)
	if !strings.HasPrefix(got.stdout, "Reconciled  generation 7") {
		t.Errorf("%+v", got)
	}
}

// A wrong region has no stack, and a wrong name has no parameters. A new rack has both, and no status.
func TestStatusOfARackThatThereIsNot(t *testing.T) {
	for _, c := range []struct {
		what   string
		values map[string]string
		code   int
		stderr string
	}{
		{"the wrong name", map[string]string{"/sawhorse/racks/prod2/params/paused": "true"}, 1,
			"sawhorse: there is no rack prod in eu-central-1: it has no parameter below /sawhorse/racks/prod/params; check the name, " +
				"the region (AWS_REGION) and the prefix (SAWHORSE_PREFIX), or create the rack with `sawhorse register prod`\n"},
		{"the wrong region", map[string]string{"no stack": "true"}, 3,
			"sawhorse: there is no stack Sawhorse in eu-central-1: no state machine is named Sawhorse-reconcile; choose another " +
				"region with AWS_REGION or another stack with SAWHORSE_STACK, or deploy this one\n"},
		{"a new rack", map[string]string{"/sawhorse/racks/prod/params/karpenter_enabled": "unset"}, 1,
			"sawhorse: rack prod has no status yet: no pass has had anything to do for it, or to say about it; " +
				"karpenter_auth_mode=true begins the work (parameters below /sawhorse/racks/prod/params: 1)\n"},
	} {
		if got := inCloud(t, parameterStore(t, c.values), "status", "prod"); got.code != c.code || got.stdout != "" || got.stderr != c.stderr {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

// Every line of a status is described in the handbook.
func TestTheLinesOfAStatusAreDocumented(t *testing.T) {
	handbook, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []store.Status{reconciled, rejected, failed, paused} {
		got := inCloud(t, parameterStore(t, map[string]string{"/sawhorse/racks/prod/status": statusText(t, status)}), "status", "prod")
		for line := range strings.Lines(got.stdout) {
			// An indented line is the remedy of a failure.
			if first := strings.Fields(line)[0]; !strings.Contains(string(handbook), "\n| `"+first) && !strings.HasPrefix(line, "         ") {
				t.Errorf("docs/operate.md does not say what %q is", line)
			}
		}
	}
}
