// Package apifront stands before the API server as EKS tells its address: what the Lambda functions send goes through it, so
// that it is counted and can go wrong. Karpenter, the control plane and kubectl with the administrator's file go past it.
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

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
)

// Service is the name of the calls' service.
const Service = "kubernetes"

// Config is what the front needs.
type Config struct {
	APIServer *url.URL
	CA        []byte // PEM, of the API server's certificate
	// Away tells whether nobody reaches the API server now.
	Away func() bool
	// Function is the name of the function that has an access key, "" for anybody else.
	Function func(accessKey string) string
	Faults   *fault.Injector
}

// New returns the front as a handler. It must be served without HTTP/2, whose connections carry many calls at once: one
// that breaks would break them all.
func New(config Config) (http.Handler, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(config.CA) {
		return nil, fmt.Errorf("API front: the authority's certificate cannot be read")
	}
	proxy := &httputil.ReverseProxy{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 64, DisableCompression: true},
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(config.APIServer) },
	}
	counted := Counted(proxy, config.Function, config.Faults)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if config.Away() {
			panic(http.ErrAbortHandler) // the connection ends
		}
		counted.ServeHTTP(w, req)
	}), nil
}

// Counted counts what goes on to an API server, and has it go wrong where that is ordered. function is the name of the function that
// has an access key, "" for anybody else.
func Counted(next http.Handler, function func(accessKey string) string, faults *fault.Injector) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		call := fault.Call{Function: function(accessKey(req)), Service: Service, Action: action(req)}
		faults.Serve(w, req, call, next, fault.Kubernetes)
	})
}

// accessKey is that of whoever presigned the token, "" for other tokens. Whether the token is good, the API server says.
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

// action is verb and resource: "list nodepools.karpenter.sh", "patch deployments.apps/status". What is no resource is named by
// its path.
func action(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return strings.ToLower(req.Method) + " " + req.URL.Path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource := parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verb(req, len(parts) > 1) + " " + resource
}

func verb(req *http.Request, named bool) string {
	switch {
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") != "":
		return "watch"
	case req.Method == http.MethodGet && !named:
		return "list"
	case req.Method == http.MethodGet:
		return "get"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	case req.Method == http.MethodPatch && strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch"):
		return "apply"
	}
	return strings.ToLower(req.Method)
}
