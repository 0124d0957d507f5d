package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// largest is the limit for an answer in bytes, also after decompression, so that it fits into a function's memory. A page
// of 200 large pods has half of that.
const largest = 16 << 20

// tries is how often client-go may retry, within one call of a function, if the API server sends Retry-After.
// client-go's own limit is ten for each request.
const tries = 3

// requestTimeout limits one request, so that a function (60 s) can report an API server that does not answer.
const requestTimeout = 10 * time.Second

// transport turns temporary errors into errors that make the state machine call the step again. It limits the time of
// requests itself, because the timeout error of http.Client can get lost: see outcome.Unreachable.
type transport struct {
	http.RoundTripper
	cluster string
	timeout time.Duration
	refused *atomic.Int32 // retried answers since the last successful one
}

// WrappedRoundTripper gives client-go access to the wrapped transport, to close its idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// UnknownCaller is the error for a 401: the API server does not know the caller. It wraps a *outcome.NotYet.
type UnknownCaller struct{ *outcome.NotYet }

// Unwrap returns the NotYet.
func (u *UnknownCaller) Unwrap() error { return u.NotYet }

// RoundTrip sends the request. A 401 becomes an *UnknownCaller, because EKS takes seconds until a new access entry
// works. A 429 for an eviction comes from a PodDisruptionBudget and is returned. No answer becomes a
// *outcome.Unreachable: the usual cause is a private endpoint that the function cannot reach. An answer that breaks off
// while it is read also becomes a *outcome.NotYet.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, end := context.WithTimeout(request.Context(), t.timeout)
	response, err := t.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer end()
		if ctx.Err() != nil || silent(err) {
			return nil, &outcome.Unreachable{Cluster: t.cluster, Host: request.URL.Host, Cause: err}
		}
		return nil, err
	}
	response.Body = &answer{ReadCloser: response.Body, cluster: t.cluster, end: end}
	status := response.StatusCode
	switch {
	case status >= 300 && status < 400:
		response.Body.Close()
		return nil, fmt.Errorf("cluster %s: the API server answered %s; "+
			"API servers do not redirect, and the function's token goes nowhere else", t.cluster, response.Status)
	case status == http.StatusUnauthorized:
		response.Body.Close()
		return nil, &UnknownCaller{&outcome.NotYet{
			Reason: outcome.Unready,
			Note:   "cluster " + t.cluster + ": Unauthorized: the caller's access entry is missing, or does not work yet",
		}}
	case status < 500 && status != http.StatusTooManyRequests || strings.HasSuffix(request.URL.Path, "/eviction"):
		t.refused.Store(0)
		return response, nil
	case response.Header.Get("Retry-After") != "" && t.refused.Add(1) <= tries:
		return response, nil
	}
	defer response.Body.Close()
	reason := fmt.Sprintf("cluster %s: the API server answered %s%s", t.cluster, response.Status, answerMessage(response.Body))
	if status == http.StatusTooManyRequests {
		return nil, &outcome.NotYet{Reason: outcome.Throttled, Note: reason}
	}
	return nil, &outcome.NotYet{Reason: outcome.Unready, Note: reason}
}

// answer is the body of a response. If it breaks off, Read returns a *outcome.NotYet, because net/http reports this in
// many ways and client-go does not retry. If it is too large, Read returns an error.
type answer struct {
	io.ReadCloser
	cluster string
	end     context.CancelFunc
	length  int
}

func (a *answer) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}

func (a *answer) Read(to []byte) (int, error) {
	n, err := a.ReadCloser.Read(to)
	if a.length += n; a.length > largest {
		return 0, fmt.Errorf("cluster %s: the API server's answer is longer than %d MiB, which does not fit into a function; "+
			"look at who answers in its place", a.cluster, largest>>20)
	}
	if err != nil && err != io.EOF {
		err = &outcome.NotYet{Reason: outcome.Unready, Note: fmt.Sprintf("cluster %s: the API server's answer broke off: %v", a.cluster, err)}
	}
	return n, err
}

// answerMessage returns the message in the API server's answer, or "".
func answerMessage(body io.Reader) string {
	var status struct {
		Message string `json:"message"`
	}
	text, err := io.ReadAll(io.LimitReader(body, 4<<10))
	if err != nil || json.Unmarshal(text, &status) != nil || status.Message == "" {
		return ""
	}
	return ": " + status.Message
}
