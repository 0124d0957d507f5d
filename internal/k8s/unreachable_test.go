package k8s

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// answers replaces the network.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) { return a(request) }

// get reads one object through the transport that New installs.
func get(t *testing.T, network answers) error {
	t.Helper()
	config := &rest.Config{Host: "https://10.0.0.1"}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return network })
	client, err := New("demo", config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Get(t.Context(), NodePool, "", "x")
	return err
}

func TestNobodyAnswers(t *testing.T) {
	for what, cause := range map[string]error{
		"no route":          &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")},
		"no address":        &net.DNSError{Err: "no such host", Name: "demo.eks", IsNotFound: true},
		"no answer in time": context.DeadlineExceeded,
	} {
		err := get(t, func(*http.Request) (*http.Response, error) { return nil, cause })
		var unreachable *outcome.Unreachable
		if !errors.As(err, &unreachable) || unreachable.Cluster != "demo" || unreachable.Host != "10.0.0.1" ||
			!strings.Contains(err.Error(), outcome.NoAnswer+": "+cause.Error()) || errors.Is(err, cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Any response is an answer. An invalid certificate is not a missing answer either.
func TestAnErrorIsAnAnswer(t *testing.T) {
	for what, network := range map[string]answers{
		"forbidden": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader("no"))}, nil
		},
		"another authority": func(*http.Request) (*http.Response, error) {
			return nil, errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")
		},
	} {
		if err := get(t, network); err == nil || errors.As(err, new(*outcome.Unreachable)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A timeout is reported, also through client-go's RetryOnConflict.
func TestNoAnswerInTime(t *testing.T) {
	var begins atomic.Bool // whether the answer begins
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if begins.Load() {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	waits := transport{http.DefaultTransport, "demo", 20 * time.Millisecond, new(atomic.Int32)}
	client := &http.Client{Transport: waits}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ask := func() error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			_, err = io.ReadAll(response.Body)
			return err
		})
	}
	if err := ask(); !errors.As(err, new(*outcome.Unreachable)) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	begins.Store(true)
	waits.timeout = time.Second // in which the answer must begin
	client.Transport = waits
	if err := ask(); !outcome.IsNotYet(err, outcome.Unready) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer that does not go on: %v", err)
	}
	if stop(); !errors.As(ask(), new(*outcome.Unreachable)) {
		t.Error("the function's own end gets lost")
	}
}
