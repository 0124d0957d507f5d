package validate

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8sfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// roundTrips sees the paths of requests, but those that ask what runs.
type roundTrips struct {
	http.RoundTripper
	paths []string
	fails error
	// refuses means that every request is answered with 401.
	refuses bool
}

func (r *roundTrips) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(request.URL.Path, "/apis/karpenter.sh/") {
		r.paths = append(r.paths, request.URL.Path)
	}
	if r.fails != nil {
		return nil, r.fails
	}
	if r.refuses {
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}, nil
	}
	return r.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (r *roundTrips) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// among makes the scene's cluster one with others in it, and returns what sees its requests.
func (s *scene) among(api *k8sfake.Server) *roundTrips {
	seen := &roundTrips{}
	s.validate.Dial = api.Through(func(next http.RoundTripper) http.RoundTripper {
		seen.RoundTripper = next
		return seen
	})
	return seen
}

const deployments, crds = "/apis/apps/v1/deployments", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// runs puts a Deployment that runs an image.
func runs(api *k8sfake.Server, name, image string, annotations map[string]any) {
	api.Put("/apis/apps/v1/namespaces/kube-system/deployments/"+name, "apps/v1", "Deployment", map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"image": image}}}}}})
}

// changesAmongOthers are changes that a step would refuse because of what others have in the cluster.
var changesAmongOthers = []struct {
	before, write, parameter, says string
	// asks is the path of the one request.
	asks string
}{
	{"cluster_autoscaler=unset", "cluster_autoscaler=kube-system/gone", "cluster_autoscaler", `"kube-system/gone"`, deployments},
	{"cluster_autoscaler=unset", "cluster_autoscaler=kube-system/web", "cluster_autoscaler", "runs example.com/web:1", deployments},
	{"cluster_autoscaler=kube-system/one", "cluster_autoscaler=unset", "karpenter_enabled", "2 Cluster Autoscalers", deployments},
	{"nvidia_device_plugin_enable=false", "nvidia_device_plugin_enable=true", "nvidia_device_plugin_enable",
		"DaemonSet/kube-system/nvidia-device-plugin-daemonset",
		"/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin-daemonset"},
	{"karpenter_controller_config=unset", `karpenter_controller_config={"priorityClassName":"platform"}`, "karpenter_controller_config",
		"priorityClassName is platform", "/apis/scheduling.k8s.io/v1/priorityclasses/platform"},
	{"karpenter_version=1.10.0", "karpenter_version=1.14.3", "karpenter_version",
		"capacitybuffers.autoscaling.x-k8s.io, and the cluster has it from something else. Hand it over as docs/migrate-karpenter.md " +
			"describes, or write karpenter_version 1.10.0", crds + "capacitybuffers.autoscaling.x-k8s.io"},
}

// amongOthers returns a cluster with what is in the way of these changes.
func amongOthers(t *testing.T) *k8sfake.Server {
	api := k8sfake.New(t)
	runs(api, "one", "registry.k8s.io/autoscaling/cluster-autoscaler:v1", nil)
	runs(api, "two", "registry.k8s.io/autoscaling/cluster-autoscaler:v1", nil)
	runs(api, "web", "example.com/web:1", nil)
	api.Put("/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin-daemonset", "apps/v1", "DaemonSet", map[string]any{})
	api.Put(crds+"capacitybuffers.autoscaling.x-k8s.io", "apiextensions.k8s.io/v1", "CustomResourceDefinition", map[string]any{})
	return api
}

// What a step would refuse because of what others have in the cluster is refused before anything has changed and before it is in force.
// What cannot be read is left to the step, and what is in force is not judged again, because no pass would repair anything before it.
func TestWhatOthersHaveIsAskedAtTheWrite(t *testing.T) {
	for _, c := range changesAmongOthers {
		s, api := reconciled(t, c.before), amongOthers(t)
		seen := s.among(api)
		s.write("karpenter_node_os=unset") // a write that changes nothing
		if s.pass(false); len(seen.paths) > 0 {
			t.Errorf("%s: where nothing differs, %v is asked", c.before, seen.paths)
		}
		inForce, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		records := s.records()

		s.write(c.write, "karpenter_cpu_limit=7")
		s.wants(s.validated(false), outcome.PassRejected, true, "")
		run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
		s.must(err)
		if len(run.Problems) != 1 || run.Problems[0].Parameter != c.parameter || !strings.Contains(run.Problems[0].Message, c.says) {
			t.Errorf("%s: problems %v", c.write, run.Problems)
		}
		if !slices.Equal(seen.paths, []string{c.asks}) {
			t.Errorf("%s: %v is asked, want %s", c.write, seen.paths, c.asks)
		}
		if now, err := s.store.Plan(t.Context(), "demo"); err != nil || !same(now, inForce) || !same(s.records(), records) {
			t.Errorf("%s: what is in force has changed (%v): %+v", c.write, err, s.records())
		}

		s.write(off)
		seen.paths = nil
		if found, err := s.find(); err != nil || found.outcome != outcome.PassPlanned || len(found.Problems) > 0 || len(seen.paths) > 0 {
			t.Errorf("%s: turning off: %s, %v, %v, and %v is asked", c.write, found.outcome, found.Problems, err, seen.paths)
		}
		s.write(on)
		api.Forbidden = true
		if answer := s.validated(false); answer.Outcome != outcome.PassPlanned {
			t.Errorf("%s: without an answer: %s", c.write, answer.Outcome)
		}
		api.Forbidden, seen.paths = false, nil
		if answer := s.validated(false); answer.Outcome != outcome.PassPlanned || len(seen.paths) > 0 {
			t.Errorf("%s: in force: %s, and %v is asked", c.write, answer.Outcome, seen.paths)
		}
	}
}

// A change of the parameter change is refused for that like for any other mistake.
func TestAChangeIsJudgedByWhatOthersHave(t *testing.T) {
	for _, c := range changesAmongOthers {
		name, value, _ := strings.Cut(c.write, "=")
		s := reconciled(t, c.before)
		s.among(amongOthers(t))
		s.change(`{"set":{"` + name + `":"` + strings.ReplaceAll(value, `"`, `\"`) + `","karpenter_cpu_limit":"7"}}`)
		s.pass(false)
		if !slices.Equal(s.refused, []string{"1: " + c.parameter}) || s.changes() != "" {
			t.Errorf("%s: refused %v, changes %s", c.write, s.refused, s.changes())
		}
	}
}

// A Cluster Autoscaler among others is accepted where it is named, and so is one that was handed over and whose image has another name
// since.
func TestAUsableAutoscalerIsAccepted(t *testing.T) {
	for _, name := range []string{"one", "handed-over"} {
		s, api := reconciled(t), amongOthers(t)
		runs(api, "handed-over", "example.com/fork:2", map[string]any{ownership.AnnotationAutoscaler: "demo"})
		s.among(api)
		s.write("cluster_autoscaler=kube-system/" + name)
		if answer := s.validated(false); answer.Outcome != outcome.PassPlanned {
			t.Errorf("%s: %s", name, answer.Outcome)
		}
	}
}

// An API server that gives no answer is asked once: its silence takes time each time.
func TestSilenceIsAskedOnce(t *testing.T) {
	s := reconciled(t)
	seen := s.among(amongOthers(t))
	seen.fails = &net.OpError{Op: "dial", Err: errors.New("no route")}
	s.write("cluster_autoscaler=kube-system/gone", "nvidia_device_plugin_enable=true")
	if answer := s.validated(false); answer.Outcome != outcome.PassPlanned || len(seen.paths) != 1 {
		t.Errorf("%s, asked %v", answer.Outcome, seen.paths)
	}
}

// The functions that judge changes may ask all that.
func TestWhatOthersHaveMayBeAsked(t *testing.T) {
	cluster := k8stest.New(t)
	in := input{inForce: &plan.Plan{Goal: plan.GoalKarpenter, Autoscaler: plan.Autoscaler{Deployment: "kube-system/one"}}}
	in.parsed.Config.Enabled, in.parsed.Config.NVIDIADevicePlugin = true, true
	in.parsed.Config.ControllerValues = map[string]any{"priorityClassName": "platform"}
	asked := in.asked()
	if len(asked) != 4 {
		t.Errorf("%d are asked", len(asked))
	}
	for _, function := range []string{"validate", "audit"} { // a dry run has the rights of the audit
		client, err := cluster.Connector(function)(t.Context(), plan.Cluster{})
		if err != nil {
			t.Fatal(err)
		}
		for i, ask := range asked {
			if err := ask(t.Context(), client); k8s.IsForbidden(err) {
				t.Errorf("%s, %d: %v", function, i, err)
			}
		}
	}
}

// The first step changes the cluster's access mode, for good, before it connects. So a cluster that the functions cannot reach is refused.
// A refusal by its API server is an answer: the function has no access entry yet.
func TestAClusterOutOfReach(t *testing.T) {
	s := begin(t)
	seen := s.among(k8sfake.New(t))
	seen.fails = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")}
	s.pass(false)
	if len(seen.paths) > 0 {
		t.Errorf("%v was asked for a rack that asks for nothing", seen.paths)
	}
	for _, written := range []string{auth, on} {
		s.write(written)
		s.wants(s.pass(false), outcome.PassRejected, true, "")
		if found := s.problems(); len(found) != 1 || found[0].Parameter != "karpenter_auth_mode" ||
			!strings.Contains(found[0].Message, outcome.NoAnswer) || !strings.Contains(found[0].Message, "docs/private.md") {
			t.Errorf("%s: %v", written, found)
		}
	}
	t.Log("a change of another parameter is no fault of the cluster, and does not make it reachable")
	seen.paths = nil
	s.change(`{"set":{"node_disk":"30"}}`)
	answer := s.validated(false)
	if answer.Outcome != outcome.PassRejected || len(seen.paths) != 1 || !strings.Contains(s.changes(), "accepted") {
		t.Errorf("%+v, asked %v, changes %s", answer, seen.paths, s.changes())
	}
	s.finish()
	seen.fails, seen.refuses = nil, true
	if answer := s.pass(false); answer.Outcome != outcome.PassPlanned || s.steps[0] != "access" {
		t.Errorf("%+v", answer)
	}
	seen.paths = nil
	s.pass(false)
	if len(seen.paths) > 0 {
		t.Errorf("%v was asked after the first plan", seen.paths)
	}
}
