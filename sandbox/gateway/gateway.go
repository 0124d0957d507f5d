// Package gateway is the AWS endpoint of the sandbox. It routes each call to the emulator that has the service (EC2 and
// Auto Scaling to moto, the rest to MiniStack), answers what neither supports, and counts the calls.
package gateway

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/rates"
)

// Cluster describes the API server of an EKS cluster, which only the sandbox knows.
type Cluster struct {
	Endpoint   string
	CA         []byte // PEM
	OIDCIssuer string
}

// Config names the emulators and what the gateway adds to them.
type Config struct {
	MiniStack, Moto *url.URL
	Account, Region string
	// Cluster is called with the cluster's name for each DescribeCluster. If it is nil, MiniStack's
	// answer is not changed.
	Cluster func(name string) Cluster
	// Instances are the instances of the cluster's node groups; nil if there are none.
	Instances Instances
	// Prices returns the on-demand price by instance type (USD an hour) for pricing's GetProducts.
	Prices func() (map[string]float64, error)
	// Catalogue is a folder that caches the answers for which moto takes seconds. It belongs to one version of moto. If
	// it is empty, the cache is in memory.
	Catalogue string
	// Faults injects faults into the calls of functions. Function returns the name of the function that uses an access
	// key, "" for other callers. If Faults is nil, no faults can be injected.
	Faults   *fault.Injector
	Function func(accessKey string) string
	// Age makes the cluster's NodeClaims older; nil if there is no cluster.
	Age func(ctx context.Context, by time.Duration) error
	// Reserved returns how many instances run in each capacity reservation; nil if there is no cluster.
	Reserved func(ctx context.Context) (map[string]int, error)
}

type gateway struct {
	cfg       Config
	trail     *trail
	ministack *httputil.ReverseProxy
	moto      *httputil.ReverseProxy
	networks  *networks
	rates     *rates.Limiter
	tagging   tagging
	catalogue *catalogue
	transport http.RoundTripper

	reservations reservations
}

// New returns the gateway as an HTTP handler for AWS calls and for the paths under /_sandbox/.
func New(cfg Config) http.Handler {
	g := &gateway{
		cfg: cfg, trail: &trail{}, networks: newNetworks(cfg), rates: &rates.Limiter{}, catalogue: newCatalogue(cfg),
		transport: transport(),
	}
	if cfg.Faults == nil {
		g.cfg.Faults, g.cfg.Function = &fault.Injector{}, func(string) string { return "" }
	}
	g.ministack = g.proxy(cfg.MiniStack)
	g.ministack.ModifyResponse = g.amendCluster
	g.moto = g.proxy(cfg.Moto)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_sandbox/trail", g.showTrail)
	mux.Handle("/_sandbox/faults", g.cfg.Faults)
	mux.Handle("/_sandbox/rates", g.rates)
	mux.HandleFunc("POST /_sandbox/faults/meet", g.cfg.Faults.Meet)
	mux.HandleFunc("POST /_sandbox/age", g.age)
	mux.Handle("/_sandbox/", g.ministack)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// ServeMux redirects paths that it considers unclean. AWS calls have such paths, so they must not reach it.
		if strings.HasPrefix(req.URL.Path, "/_sandbox/") {
			mux.ServeHTTP(w, req)
			return
		}
		g.ServeHTTP(w, req)
	})
}

// age makes the cluster's NodeClaims older, ?by= so much.
func (g *gateway) age(w http.ResponseWriter, req *http.Request) {
	by, err := time.ParseDuration(req.URL.Query().Get("by"))
	if err != nil {
		http.Error(w, "age: by: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := g.cfg.Age(req.Context(), by); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// ServeHTTP lists an AWS call in the trail, applies rate limits and faults, and routes the call.
func (g *gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	call, err := identify(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.trail.add(call, req.URL.Path)
	from := fault.Call{Function: g.cfg.Function(call.AccessKey), Service: call.Service, Action: call.Action}
	invocation := ""
	if from.Function != "" && from.Function != fault.Karpenter { // waiting times are measured for functions only
		invocation = req.Header.Get("Amz-Sdk-Invocation-Id")
	}
	if !g.rates.Take(call.Service, call.Action, invocation) {
		fault.AWS(call.Service)(w, req, fault.Fault{Kind: fault.Throttle})
		return
	}
	g.cfg.Faults.Serve(w, req, from, g.route(call), fault.AWS(call.Service))
}

// route returns the handler for a call.
func (g *gateway) route(call call) http.Handler {
	switch {
	case call.Service == "ec2" || call.Service == "autoscaling": // MiniStack's Auto Scaling supports neither filters nor pages
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

// address keeps the host that the caller signed. It marks the call as https, as all calls to AWS are, so that queue and
// bucket policies that demand aws:SecureTransport work here too.
func address(out, in *http.Request) {
	out.Host = in.Host
	out.Header.Set("X-Forwarded-Proto", "https")
}

// transport returns a transport that adds no headers, because Accept-Encoding may be signed.
func transport() *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
}
