// Package apifront is a proxy in front of the API server, at the address that EKS reports. The requests of the Lambda
// functions pass through it, so that they are counted and faults can be injected. Karpenter, the control plane, and
// kubectl with the administrator's kubeconfig bypass it.
package apifront

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Service is the service name of the calls.
const Service = "kubernetes"

// Config has the settings of the proxy.
type Config struct {
	APIServer *url.URL
	CA        []byte // PEM, of the API server's certificate
	// Away reports whether the API server cannot be reached now.
	Away func() bool
	// Function returns the name of the function that uses an access key, "" for other callers.
	Function func(accessKey string) string
	Faults   *fault.Injector
}

// New returns the proxy as a handler. It must be served without HTTP/2: there, one connection carries many calls, and a
// fault that breaks the connection would break all of them.
func New(config Config) (http.Handler, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(config.CA) {
		return nil, fmt.Errorf("API front: the authority's certificate cannot be read")
	}
	proxy := &httputil.ReverseProxy{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 64, DisableCompression: true},
		FlushInterval: -1, // for watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(config.APIServer) },
	}
	counted := Counted(proxy, config.Function, config.Faults)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if config.Away() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		counted.ServeHTTP(w, req)
	}), nil
}

// Counted counts the calls to an API server and injects the ordered faults. function returns the name of the function
// that uses an access key, "" for other callers.
func Counted(next http.Handler, function func(accessKey string) string, faults *fault.Injector) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		call := fault.Call{Function: function(accessKey(req)), Service: Service, Action: action(req)}
		faults.Serve(w, req, call, next, fault.Kubernetes)
	})
}

// accessKey returns the access key that presigned the token, "" for other tokens. The API server decides whether the
// token is valid.
func accessKey(req *http.Request) string {
	encoded, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	if !ok {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	presigned, err := url.Parse(string(raw))
	if err != nil {
		return ""
	}
	key, _, _ := strings.Cut(presigned.Query().Get("X-Amz-Credential"), "/")
	return key
}

// Requests parses requests as an API server does.
var Requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// action returns verb and resource: "list nodepools.karpenter.sh", "patch deployments.apps/status". A request for
// something other than a resource is named by its path.
func action(req *http.Request) string {
	info, err := Requests.NewRequestInfo(req)
	if err != nil || !info.IsResourceRequest {
		return strings.ToLower(req.Method) + " " + req.URL.Path
	}
	action := info.Verb + " " + info.Resource
	if info.Verb == "patch" && strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch") {
		action = "apply " + info.Resource
	}
	if info.APIGroup != "" {
		action += "." + info.APIGroup
	}
	if info.Subresource != "" {
		action += "/" + info.Subresource
	}
	return action
}
