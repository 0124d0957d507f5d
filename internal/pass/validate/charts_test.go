package validate

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// release returns the release of the plan in force.
func (s *scene) release() plan.Release {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	return p.Controller.Release
}

// A plan that is put in force has the objects of the controller's chart, and a change of its values makes their step due.
func TestPlansHaveTheChartsObjects(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	if !s.release().Has("Deployment") || !s.release().Has("ClusterRole") {
		t.Errorf("%v", s.release().Objects)
	}
	s.write("karpenter_controller_config={\"logLevel\":\"debug\"}")
	s.wants(s.pass(false), outcome.PassPlanned, true, "controller/release")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "") // the report of the pass before is missing
}

// Whether there is a ServiceMonitor is the API server's to say. If it does not answer, the plan stays as it is.
func TestServiceMonitorsOfTheCluster(t *testing.T) {
	s := begin(t, auth, on, "karpenter_controller_config={\"serviceMonitor\":{\"enabled\":true}}")
	status := http.StatusNotFound
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/apis/monitoring.coreos.com/v1" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	answers := func(context.Context, plan.Cluster) (*k8s.Client, error) {
		return k8s.New("demo", &rest.Config{Host: server.URL})
	}
	silent := func(context.Context, plan.Cluster) (*k8s.Client, error) { return nil, errors.New("no cluster") }
	for _, c := range []struct {
		what         string
		dial         k8s.Connector
		status       int
		want, warned bool
	}{
		{"no answer for a new rack", silent, 0, false, false},
		{"no Prometheus Operator", answers, http.StatusNotFound, false, true},
		{"it is installed", answers, http.StatusOK, true, false},
		{"no answer", silent, 0, true, false},
		{"an error", answers, http.StatusInternalServerError, true, false},
		{"it is gone", answers, http.StatusNotFound, false, true},
	} {
		s.validate.Dial, status = c.dial, c.status
		had := s.requests > 0 && s.release().Has("ServiceMonitor")
		answer := s.pass(false)
		if got := s.release().Has("ServiceMonitor"); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
		if due := slices.Contains(s.steps, "controller/release"); s.requests > 1 && due != (had != c.want) {
			t.Errorf("%s: steps %v", c.what, answer.Steps)
		}
		if answer.Report {
			run, err := s.store.Run(t.Context(), "demo", 0, int64(s.requests))
			s.must(err)
			warned := slices.ContainsFunc(run.Warnings, func(w params.Problem) bool { return strings.Contains(w.Message, "has no ServiceMonitors") })
			if warned != c.warned {
				t.Errorf("%s: %v", c.what, run.Warnings)
			}
		}
	}
}
