package fault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// effects serves calls through an injector and counts those that had an effect.
func effects(t *testing.T, injector *fault.Injector, refuse fault.Refusal) (*httptest.Server, *int) {
	t.Helper()
	n := new(int)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*n++
		_, _ = w.Write([]byte("{}"))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		injector.Serve(w, req, fault.Call{Function: req.Header.Get("X-Function"), Service: "s", Action: "a"}, next, refuse)
	}))
	t.Cleanup(server.Close)
	return server, n
}

// call returns the status of the answer, or -1 if there was none.
func call(t *testing.T, server *httptest.Server, function string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Function", function)
	resp, err := server.Client().Do(req)
	if err != nil {
		return -1
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestAFaultHappensAtItsCallAndNoOther(t *testing.T) {
	validate := fault.Call{Function: "validate", Service: "s", Action: "a"}
	for _, c := range []struct {
		kind   fault.Kind
		status int
		effect int // of the call that it hits
	}{
		{fault.Error, 500, 0}, {fault.Throttle, 429, 0}, {fault.Reset, -1, 0}, {fault.Lost, -1, 1}, {fault.Slow, 200, 1}, {"hook", 200, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			hooked := 0
			injector := &fault.Injector{
				Hooks: map[fault.Kind]func(context.Context) error{"hook": func(context.Context) error { hooked++; return nil }},
			}
			server, effect := effects(t, injector, fault.Kubernetes)
			if err := injector.Arm([]fault.Fault{{Call: validate, Nth: 2, Kind: c.kind}}); err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{"", "report"} {
				if got := call(t, server, other); got != 200 {
					t.Errorf("a call of %q: %d", other, got)
				}
			}
			*effect = 0
			for n, want := range []int{200, c.status, 200} {
				if got := call(t, server, "validate"); got != want {
					t.Errorf("call %d: %d, want %d", n+1, got, want)
				}
			}
			if *effect != 2+c.effect {
				t.Errorf("%d effects, want %d", *effect, 2+c.effect)
			}
			report := injector.Report()
			if len(report.Fired) != 1 || report.Fired[0].Kind != c.kind || len(report.Calls) != 2 || report.Calls[1].Count != 3 ||
				(c.kind == "hook") != (hooked == 1) {
				t.Errorf("%+v, hook called %d times", report, hooked)
			}
		})
	}
}

func TestTimeoutAnswersNothing(t *testing.T) {
	injector := &fault.Injector{}
	server, effect := effects(t, injector, fault.Kubernetes)
	if err := injector.Arm([]fault.Fault{
		{Call: fault.Call{Function: "f", Service: "s", Action: "a"}, Nth: 1, Kind: fault.Timeout},
	}); err != nil {
		t.Fatal(err)
	}
	server.Client().Timeout = 50 * time.Millisecond
	if got := call(t, server, "f"); got != -1 || *effect != 0 {
		t.Errorf("%d, %d effects", got, *effect)
	}
}

func TestAFaultMayLast(t *testing.T) {
	injector := &fault.Injector{}
	server, _ := effects(t, injector, fault.Kubernetes)
	if err := injector.Arm([]fault.Fault{
		{Call: fault.Call{Function: "f", Service: "s", Action: "a"}, Nth: 1, Times: 2, Kind: fault.Error},
	}); err != nil {
		t.Fatal(err)
	}
	for n, want := range []int{500, 500, 200} {
		if got := call(t, server, "f"); got != want {
			t.Errorf("call %d: %d, want %d", n+1, got, want)
		}
	}
}

// A fault without a service matches all services, and a fault with Seconds ends by the clock.
func TestAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &fault.Injector{}
		meet := func(call fault.Call) string {
			body, err := json.Marshal(call)
			if err != nil {
				t.Fatal(err)
			}
			answer := httptest.NewRecorder()
			injector.Meet(answer, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
			return strings.TrimSpace(answer.Body.String())
		}
		if err := injector.Arm([]fault.Fault{
			{Call: fault.Call{Function: "validate"}, Nth: 2, Seconds: 10, Kind: fault.Reset},
		}); err != nil {
			t.Fatal(err)
		}
		ssm, eks := fault.Call{Function: "validate", Service: "ssm", Action: "a"}, fault.Call{
			Function: "validate", Service: "eks", Action: "b",
		}
		const well, broken = `{"kind":""}`, `{"kind":"reset"}`
		for n, step := range []struct {
			wait time.Duration
			call fault.Call
			want string
		}{
			{0, ssm, well}, {0, fault.Call{Function: "report", Service: "ssm", Action: "a"}, well}, {0, eks, broken},
			{9 * time.Second, ssm, broken}, {time.Second, eks, well},
		} {
			time.Sleep(step.wait)
			if got := meet(step.call); got != step.want {
				t.Errorf("call %d: %s, want %s", n+1, got, step.want)
			}
		}
	})
}

func TestWhatCannotHappenIsNotArmed(t *testing.T) {
	injector := &fault.Injector{}
	for _, f := range []fault.Fault{
		{Nth: 1, Kind: "flood"}, {Nth: 0, Kind: fault.Error}, {Nth: 1, Times: -1, Kind: fault.Error},
		{Nth: 1, Seconds: -1, Kind: fault.Error},
		{Nth: 1, Kind: fault.Kill}, {Call: fault.Call{Function: fault.StateMachine}, Nth: 1, Kind: fault.Kill},
		{Nth: 1, Kind: fault.Sleep}, {Call: fault.Call{Function: fault.Karpenter}, Nth: 1, Kind: fault.Sleep},
		{Nth: 1, Kind: fault.Refuse}, {Nth: 1, Kind: fault.Error, Code: "AccessDenied"},
		{Call: fault.Call{Service: "s3"}, Nth: 1, Kind: fault.Fail, Code: "AccessDenied"},
	} {
		if err := injector.Arm([]fault.Fault{f}); err == nil {
			t.Errorf("%s has been armed", f)
		}
	}
}

// The SDK must recognize the error answers in each protocol.
func TestRefusalsInTheProtocolOfTheCall(t *testing.T) {
	service, ordered := "", fault.Fault{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fault.AWS(service)(w, req, ordered) }))
	t.Cleanup(server.Close)
	config := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} }}
	calls := map[string]func() error{
		"ec2": func() error {
			_, err := ec2.NewFromConfig(config).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
			return err
		},
		"iam": func() error {
			_, err := iam.NewFromConfig(config).GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")})
			return err
		},
		"eks": func() error {
			_, err := eks.NewFromConfig(config).ListClusters(t.Context(), &eks.ListClustersInput{})
			return err
		},
		"ssm": func() error {
			_, err := ssm.NewFromConfig(config).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("p")})
			return err
		},
	}
	for name, do := range calls {
		for k, want := range map[fault.Kind]string{
			fault.Error: "InternalFailure",
			fault.Throttle: map[string]string{
				"ec2": "RequestLimitExceeded", "iam": "Throttling", "eks": "ThrottlingException", "ssm": "ThrottlingException",
			}[name],
			fault.Refuse: "AccessDeniedException",
		} {
			service, ordered = name, fault.Fault{Kind: k}
			if k == fault.Refuse {
				ordered.Code = "AccessDeniedException"
			}
			var api smithy.APIError
			if err := do(); !errors.As(err, &api) || api.ErrorCode() != want {
				t.Errorf("%s, %s: %v, want %s", name, k, err, want)
			}
		}
	}
}

// Karpenter's calls are not those of a function: a fault hits them only if it names Karpenter, and nobody counts them.
func TestKarpentersCallsGoWrongByNameAlone(t *testing.T) {
	injector := &fault.Injector{}
	if err := injector.Arm([]fault.Fault{
		{Nth: 1, Times: 9, Kind: fault.Error},
		{Call: fault.Call{Function: fault.Karpenter}, Nth: 2, Kind: fault.Refuse, Code: "InsufficientInstanceCapacity"},
	}); err != nil {
		t.Fatal(err)
	}
	launch := fault.Call{Function: fault.Karpenter, Service: "ec2", Action: "CreateFleet"}
	if first, second := injector.Take(launch), injector.Take(launch); first.Kind != "" || second.Code != "InsufficientInstanceCapacity" {
		t.Errorf("%v, then %v", first, second)
	}
	if calls := injector.Report().Calls; len(calls) != 0 {
		t.Errorf("counted: %v", calls)
	}
}
