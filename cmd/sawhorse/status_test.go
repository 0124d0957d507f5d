package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// parameterStore answers as SSM does where parameters are read, and created for the first time, and as EKS does for the clusters that
// are among the values: "cluster NAME", with the rack that the cluster's tag lets in. It gives the environment that leads the command there.
func parameterStore(t *testing.T, values map[string]string) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/clusters/") || strings.HasPrefix(r.URL.Path, "/tags/") {
			clusters(t, w, r, values)
			return
		}
		var asked struct{ Name, Value string }
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
	nowhere := t.TempDir() + "/none"
	return []string{
		"AWS_ENDPOINT_URL=" + server.URL, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=", "AWS_PROFILE=",
		"AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere, "AWS_EC2_METADATA_DISABLED=true", "SAWHORSE_PREFIX=", "SAWHORSE_STACK=",
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

func statusText(t *testing.T, s rack.Status) string {
	t.Helper()
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var (
	reconciled = rack.Status{
		Rack: "prod", State: rack.Reconciled, Generation: 7, Time: "2026-11-21T03:55:42Z", DurationSeconds: 26.46,
		Warnings: []params.Problem{{Parameter: "additional_karpenter_nodepools_config", Path: "[0].taints", Message: "nothing tolerates it"}},
		Pools:    []string{"pool workload is changed: its 3 nodes stay"}, Changed: []string{"NodePool/workload updated"}, Omitted: 2,
	}
	rejected = rack.Status{
		Rack: "prod", State: rack.Rejected, Generation: 8, Time: "2026-11-21T03:55:54Z", DurationSeconds: 1.3,
		Problems: []params.Problem{{Parameter: "karpenter_auth_mode", Message: "karpenter_auth_mode is false, but it has been applied and EKS cannot go back to the CONFIG_MAP access mode; write true (karpenter_enabled=false is what turns Karpenter off)"}},
	}
	failed = rack.Status{
		Rack: "prod", State: rack.Failed, Generation: 9, Time: "2026-11-21T04:00:00Z",
		Failure: &rack.Failure{Step: "queue", Error: "ServiceError", Reason: "queue prod-karpenter: create: AccessDenied", Remedy: "Look at the function's role."},
	}
	unplaced = rack.Status{
		Rack: "prod", State: rack.Failed, Generation: 9, Time: "2026-11-21T04:00:00Z",
		Failure: &rack.Failure{Error: "ABORTED", Reason: "somebody stopped the execution", Remedy: "Nothing is lost."},
	}
	paused = rack.Status{Rack: "prod", State: rack.Paused, Generation: 10, Time: "2026-11-21T05:00:00Z", Steps: []string{"nodepools"}}
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		what, text, stdout, stderr string
		code                       int
	}{
		{"reconciled", statusText(t, reconciled), `Reconciled  generation 7  2026-11-21T03:55:42Z  26.5 s
warning  additional_karpenter_nodepools_config [0].taints: nothing tolerates it
pool workload is changed: its 3 nodes stay
changed  NodePool/workload updated
and 2 more, complete in the rack's record and in the event
`, "", 0},
		{"rejected", statusText(t, rejected), "Rejected  generation 8  2026-11-21T03:55:54Z  1.3 s\nproblem  karpenter_auth_mode: " + rejected.Problems[0].Message + "\n", "sawhorse: rack prod is Rejected\n", 1},
		{"failed", statusText(t, failed), "Failed  generation 9  2026-11-21T04:00:00Z  0.0 s\nfailure  step queue: ServiceError: queue prod-karpenter: create: AccessDenied\n         Look at the function's role.\n", "sawhorse: rack prod is Failed\n", 1},
		{"failed nobody knows where", statusText(t, unplaced), "Failed  generation 9  2026-11-21T04:00:00Z  0.0 s\nfailure  ABORTED: somebody stopped the execution\n         Nothing is lost.\n", "sawhorse: rack prod is Failed\n", 1},
		{"paused", statusText(t, paused), "Paused  generation 10  2026-11-21T05:00:00Z  0.0 s\nstep     nodepools\n", "", 0},
		{"none", "", "", "sawhorse: rack prod has no status: no pass has had anything to say about it yet\n", 1},
		{"garbled", "x", "", "sawhorse: parameter /sawhorse/racks/prod/status: decode: invalid character 'x' looking for beginning of value\n", 1},
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

// What others have to do is said and no failure: the parameters are registered. What another rack has is a failure, and nothing is written.
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
		if wrote := c.values["/sawhorse/racks/prod/params/karpenter_enabled"] != ""; got.code != c.code || !strings.HasPrefix(got.stderr, c.stderr) || wrote != (c.code == 0) {
			t.Errorf("%+v, wrote %v", got, wrote)
		}
	}
}
