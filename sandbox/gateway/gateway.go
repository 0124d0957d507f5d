// Package gateway is the one AWS endpoint of the sandbox. It sends each call to the emulator that
// has the service (EC2 and Auto Scaling to moto, the rest to MiniStack), answers what neither has, and counts.
package gateway

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/rates"
)

// Cluster is what only the sandbox knows about the API server behind an EKS cluster.
type Cluster struct {
	Endpoint   string
	CA         []byte // PEM
	OIDCIssuer string
}

// Config names the emulators and what the gateway adds to them.
type Config struct {
	MiniStack, Moto *url.URL
	Account, Region string
	// Cluster is asked at each DescribeCluster, with the cluster's name; nil leaves MiniStack's answer as it is.
	Cluster func(name string) Cluster
	// Prices gives the on-demand price by instance type (USD an hour) for pricing's GetProducts.
	Prices func() (map[string]float64, error)
	// Catalogue is a folder that keeps what moto takes seconds to answer; it belongs to one version of moto. Empty: memory.
	Catalogue string
	// Faults make calls of functions go wrong; Function is the name of the one that has an access key, "" for anybody else.
	// Without them there are none.
	Faults   *fault.Injector
	Function func(accessKey string) string
}

type gateway struct {
	cfg       Config
	calls     *calls
	trail     *trail
	ministack *httputil.ReverseProxy
	moto      *httputil.ReverseProxy
	networks  *networks
	rates     *rates.Limiter
	tagging   tagging
	catalogue *catalogue
	transport http.RoundTripper
}

// New returns the gateway as an HTTP handler for AWS calls and for the paths under /_sandbox/.
func New(cfg Config) http.Handler {
	g := &gateway{cfg: cfg, calls: newCalls(), trail: &trail{}, networks: newNetworks(cfg), rates: &rates.Limiter{}, catalogue: newCatalogue(cfg), transport: transport()}
	if cfg.Faults == nil {
		g.cfg.Faults, g.cfg.Function = &fault.Injector{}, func(string) string { return "" }
	}
	g.ministack = g.proxy(cfg.MiniStack)
	g.ministack.ModifyResponse = g.amendCluster
	g.moto = g.proxy(cfg.Moto)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_sandbox/calls", g.showCalls)
	mux.HandleFunc("DELETE /_sandbox/calls", g.resetCalls)
	mux.HandleFunc("GET /_sandbox/trail", g.showTrail)
	mux.Handle("/_sandbox/faults", g.cfg.Faults)
	mux.Handle("/_sandbox/rates", g.rates)
	mux.HandleFunc("POST /_sandbox/faults/meet", g.cfg.Faults.Meet)
	mux.Handle("/_sandbox/", g.ministack)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// ServeMux redirects what it takes for untidy paths, which AWS calls have: keep them away from it.
		if strings.HasPrefix(req.URL.Path, "/_sandbox/") {
			mux.ServeHTTP(w, req)
			return
		}
		g.ServeHTTP(w, req)
	})
}

// ServeHTTP counts an AWS call and sends it where it belongs.
func (g *gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	call, err := identify(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.calls.add(call)
	g.trail.add(call, req.URL.Path)
	from := fault.Call{Function: g.cfg.Function(call.AccessKey), Service: call.Service, Action: call.Action}
	invocation := ""
	if from.Function != "" { // how long others wait is their own affair
		invocation = req.Header.Get("Amz-Sdk-Invocation-Id")
	}
	if !g.rates.Take(call.Service, call.Action, invocation) {
		fault.AWS(call.Service)(w, req, fault.Throttle)
		return
	}
	g.cfg.Faults.Serve(w, req, from, g.route(call), fault.AWS(call.Service))
}

// route is where a call belongs.
func (g *gateway) route(call call) http.Handler {
	switch {
	case call.Service == "ec2" || call.Service == "autoscaling": // MiniStack's Auto Scaling knows no filters and no pages
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { g.serveEC2(w, req, call.Action) })
	case call.Service == "eks" && call.Action == "CreateNodegroup":
		return http.HandlerFunc(g.serveCreateNodegroup)
	case call.Service == "pricing" && call.Action == "GetProducts":
		return http.HandlerFunc(g.serveProducts)
	case call.Service == "pricing":
		return g.moto
	default:
		return g.ministack
	}
}

func (g *gateway) proxy(target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{Transport: g.transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		address(r.Out, r.In)
	}}
}

// address keeps the host that the caller signed. AWS is https to its callers, so queue and bucket
// policies that demand aws:SecureTransport hold here too.
func address(out, in *http.Request) {
	out.Host = in.Host
	out.Header.Set("X-Forwarded-Proto", "https")
}

// transport adds nothing of its own to a request: Accept-Encoding may be signed.
func transport() *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
}
