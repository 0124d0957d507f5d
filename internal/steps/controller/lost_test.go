package controller

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// failing is a transport on which requests for one path fail.
type failing struct {
	http.RoundTripper
	path string
}

func (f failing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == f.path {
		return nil, &outcome.NotYet{Reason: outcome.Unready, Note: "cluster demo: the API server answered 500"}
	}
	return f.RoundTripper.RoundTrip(request)
}

// If the API server fails while Helm discovers kinds, the step is called again, although Helm's error keeps only the
// text of the cause.
func TestTheAPIServerFailsWhileHelmDiscoversKinds(t *testing.T) {
	s := begin(t)
	s.run(PartCRDs, "installed release karpenter-crd 1.10.0")
	s.settle()
	config := rest.CopyConfig(s.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return failing{next, "/api"} })
	_, err := s.as(config).Run(ctx, s.plan, PartRelease)
	if !outcome.IsNotYet(err, outcome.Unready) || !strings.Contains(err.Error(), "release karpenter: install") {
		t.Errorf("%T %v", err, err)
	}
	s.run(PartRelease, "installed release karpenter 1.10.0")
}
