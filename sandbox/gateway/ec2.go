package gateway

import (
	"bytes"
	"io"
	"net/http"
)

// authorized is what MiniStack's wrapper marks an EC2 call with that the caller's policies allow.
const authorized = "X-Sandbox-Authorized"

// serveEC2 lets MiniStack check signature and policies, which moto does not, and moto do the work.
func (g *gateway) serveEC2(w http.ResponseWriter, req *http.Request, action string) {
	body, err := buffer(req)
	if err != nil {
		http.Error(w, "gateway: read an ec2 call: "+err.Error(), http.StatusBadRequest)
		return
	}
	check := req.Clone(req.Context())
	check.URL.Scheme, check.URL.Host = g.cfg.MiniStack.Scheme, g.cfg.MiniStack.Host
	check.RequestURI, check.Body = "", io.NopCloser(bytes.NewReader(body))
	address(check, req)
	resp, err := g.transport.RoundTrip(check)
	if err != nil {
		http.Error(w, "gateway: authorize an ec2 call: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	if resp.Header.Get(authorized) == "" {
		for _, name := range []string{"Content-Type", "X-Amzn-Requestid"} {
			w.Header().Set(name, resp.Header.Get(name))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // the caller has gone: nobody is left to tell
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	if catalogued[action] {
		g.serveCatalogue(w, req, body)
		return
	}
	g.moto.ServeHTTP(w, req)
}
