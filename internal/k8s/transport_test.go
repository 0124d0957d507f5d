package k8s_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// refusing returns a client of an API server that gives every request this answer, and the number of requests.
func refusing(t *testing.T, status int, retryAfter string) (*k8s.Client, *int) {
	t.Helper()
	asked := new(int)
	return served(t, func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"why"}`, status)
	}), asked
}

// served returns a client of an API server with this handler.
func served(t *testing.T, serve http.HandlerFunc) *k8s.Client {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	client, err := dial(t, amazon(types.Cluster{Arn: new(clusterARN), Endpoint: &server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// If an answer breaks off, the step is called again. client-go does not retry.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	for _, wrong := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100") }, // less follows
		func(w http.ResponseWriter) { w.(http.Flusher).Flush(); panic(http.ErrAbortHandler) },
	} {
		cut := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			wrong(w)
			_, _ = io.WriteString(w, `{"kind":"Node"`)
		})
		if _, err := cut.Get(t.Context(), k8s.Node, "", "n"); !outcome.IsNotYet(err, outcome.Unready) {
			t.Errorf("%v", err)
		}
	}
}

// A redirect must not make the client send the function's token elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	token := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
	}))
	defer elsewhere.Close()
	for _, status := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	} {
		lying := served(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		if _, err := lying.Get(t.Context(), k8s.Node, "", "n"); err == nil || !strings.Contains(err.Error(), "do not redirect") {
			t.Errorf("%d: %v", status, err)
		}
		if token != "" {
			t.Errorf("%d: the other server was given %q", status, token)
		}
	}
}

// An answer that is too large is cut off, also if it is compressed.
func TestAnEndlessAnswer(t *testing.T) {
	flooding := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		block := bytes.Repeat([]byte(" "), 1<<20)
		for i := 0; i < 1000; i++ {
			if _, err := compressed.Write(block); err != nil {
				return
			}
		}
	})
	if _, err := flooding.Get(t.Context(), k8s.Node, "", "n"); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Error(err)
	}
}

// Temporary errors reach the function's caller as errors that make the state machine call the step again. client-go's
// own retries, up to ten for each request, end after three in one call of a function.
func TestWhatOnlyTimeCures(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		asked      int
		busy       bool
	}{
		{http.StatusUnauthorized, "", 1, false},
		{http.StatusInternalServerError, "", 1, false},
		{http.StatusServiceUnavailable, "0", 4, false},
		{http.StatusTooManyRequests, "", 1, true},
		{http.StatusTooManyRequests, "0", 4, true},
	} {
		t.Run(fmt.Sprint(c.status, c.retryAfter), func(t *testing.T) {
			client, asked := refusing(t, c.status, c.retryAfter)
			_, err := client.Get(t.Context(), k8s.Node, "", "n")
			if busy, notReady := outcome.IsNotYet(err, outcome.Throttled), outcome.IsNotYet(err, outcome.Unready); busy != c.busy ||
				notReady == c.busy {
				t.Errorf("%v", err)
			}
			if *asked != c.asked {
				t.Errorf("asked %d times, want %d", *asked, c.asked)
			}
		})
	}
}

// A PodDisruptionBudget also causes a 429.
func TestABudgetIsNoTrouble(t *testing.T) {
	client, _ := refusing(t, http.StatusTooManyRequests, "10")
	pod := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "p", "namespace": "n"}}}
	if gone, err := client.Evict(t.Context(), pod); gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
}
