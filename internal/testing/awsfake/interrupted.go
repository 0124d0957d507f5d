package awsfake

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
)

// Interrupted shows that a step may be stopped anywhere and run again, with the same result. begin returns a new
// account and the step; the step reports whether it is done. The step first runs undisturbed. Then, for each of its
// calls, it runs on a new account where that call fails, and runs again. All runs must lead to the same state.
func Interrupted(t *testing.T, begin func() (*Cloud, func() (done bool, err error)), state func(*Cloud) any) {
	t.Helper()
	cloud, step := begin()
	if err := finish(cloud, step); err != nil {
		t.Fatal(err)
	}
	want, calls := state(cloud), len(cloud.Made())
	if calls == 0 {
		t.Fatal("the step calls nothing")
	}
	for n := 1; n <= calls; n++ {
		cloud, step := begin()
		cloud.FailAt(n, Throttling)
		err := finish(cloud, step)
		name := cloud.Made()[n-1]
		if !errors.Is(err, Throttling) {
			t.Errorf("call %d, %s, failed and the step said %v", n, name, err)
			continue
		}
		if err := finish(cloud, step); err != nil {
			t.Errorf("call %d, %s, failed, and then the step said %v", n, name, err)
		}
		if got := state(cloud); !reflect.DeepEqual(got, want) {
			t.Errorf("call %d, %s, failed, and the end is\n%+v\nnot\n%+v", n, name, got, want)
		}
		cloud.Forget()
		if err := finish(cloud, step); err != nil || len(cloud.Writes()) > 0 {
			t.Errorf("call %d, %s, failed, and after the end the step goes on writing: %v, %v", n, name, cloud.Made(), err)
		}
	}
}

// finish runs the step until it is done or fails.
func finish(cloud *Cloud, step func() (bool, error)) error {
	for range 30 {
		done, err := step()
		if err != nil || done {
			return err
		}
		cloud.Pass(polling)
	}
	return errors.New("the step is not done after 30 calls")
}

// Writing returns a transport whose writes to an API server count as calls of the account, so that they fail in turn too. Reads do
// not: a failed read is like a call that was not made.
func (c *Calls) Writing(next http.RoundTripper) http.RoundTripper { return writing{next, c} }

type writing struct {
	http.RoundTripper
	calls *Calls
}

// WrappedRoundTripper lets client-go reach the transport, to close its idle connections.
func (w writing) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

func (w writing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if err := w.calls.Call("Kubernetes."+request.Method, request.URL.Path); err != nil {
			return nil, err
		}
	}
	return w.RoundTripper.RoundTrip(request)
}
