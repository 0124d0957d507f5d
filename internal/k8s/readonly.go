package k8s

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

// ReadOnly returns a Connector whose client refuses to write. It connects once, and all its callers share the client,
// or the error of the one attempt. So it serves one plan, for less time than a token is valid.
func ReadOnly(connect Connector) Connector {
	var mutex sync.Mutex
	var client *Client
	var err error
	return func(ctx context.Context, cluster plan.Cluster) (*Client, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if client == nil && err == nil {
			if client, err = connect(ctx, cluster); err == nil {
				client, err = client.ReadOnly()
			}
		}
		return client, err
	}
}

// ReadOnly returns a copy of the client that refuses every write with readonly.ErrWouldWrite, before a request is sent.
// Its Apply compares the manifest with the live object.
func (c *Client) ReadOnly() (*Client, error) {
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return reader{next} })
	client, err := open(config)
	if err != nil {
		return nil, err
	}
	client.readOnly = true
	return client, nil
}

// IsReadOnly reports whether the client refuses to write.
func (c *Client) IsReadOnly() bool { return c.readOnly }

// reader is a transport that sends only requests that read.
type reader struct{ http.RoundTripper }

func (r reader) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, readonly.ErrWouldWrite
	}
	return r.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the wrapped transport, to close its idle connections.
func (r reader) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// compare is what write does with a client that is read-only: an object that has every field of the manifest is
// unchanged. It cannot find a field that an earlier version of the manifest had, and that this one leaves out. The version that a manifest
// may have is a condition of its write: somebody, such as Karpenter with a status, may have written the object since it was read.
func compare(live, object *unstructured.Unstructured) (Applied, error) {
	applied := Applied{Subject: Subject(object), Action: Unchanged, Live: live}
	if live == nil {
		return applied, fmt.Errorf("%s: it does not exist: %w", applied.Subject, readonly.ErrWouldWrite)
	}
	object = object.DeepCopy()
	object.SetResourceVersion("")
	if path, lacks := lacking(object.Object, live.Object); lacks {
		return applied, fmt.Errorf("%s: %s: %w", applied.Subject, path, readonly.ErrWouldWrite)
	}
	return applied, nil
}
