package fault

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// Refusal answers a call with the server's own failure, or with its request for patience, in the protocol of the call.
type Refusal func(w http.ResponseWriter, req *http.Request, kind Kind)

// Serve has the call happen, as it was ordered.
func (i *Injector) Serve(w http.ResponseWriter, req *http.Request, call Call, next http.Handler, refuse Refusal) {
	kind := Kind("")
	if call.Function != "" {
		kind = i.take(call)
	}
	switch kind {
	case Error, Throttle:
		refuse(w, req, kind)
	case Timeout:
		wait(req)
		hangUp(w)
	case Slow:
		if pause(req) {
			next.ServeHTTP(w, req)
		}
	case Reset:
		hangUp(w)
	case Lost:
		next.ServeHTTP(httptest.NewRecorder(), req)
		hangUp(w)
	case Kill:
		if err := killCaller(req); err != nil {
			http.Error(w, "fault "+err.Error(), http.StatusBadGateway)
			return
		}
		hangUp(w)
	default:
		if lie := lies[kind]; lie != nil {
			lie(w, req)
		} else if i.hook(w, req, kind) {
			next.ServeHTTP(w, req)
		}
	}
}

// hook does what the sandbox has for a kind, if it has something. It is false where that failed, which it has told the caller.
func (i *Injector) hook(w http.ResponseWriter, req *http.Request, kind Kind) bool {
	hook := i.Hooks[kind]
	if hook == nil {
		return true
	}
	if err := hook(req.Context()); err != nil {
		http.Error(w, "fault "+string(kind)+": "+err.Error(), http.StatusBadGateway)
		return false
	}
	return true
}

// Meet is for a call that comes through no server of the sandbox: whoever makes it tells of it before, and does to itself what the
// answer names. What takes time or is a hook has happened by then.
func (i *Injector) Meet(w http.ResponseWriter, req *http.Request) {
	var call Call
	if err := json.NewDecoder(req.Body).Decode(&call); err != nil {
		http.Error(w, "faults: "+err.Error(), http.StatusBadRequest)
		return
	}
	kind := i.take(call)
	switch kind {
	case Timeout:
		wait(req)
		return
	case Slow:
		pause(req)
		kind = ""
	default:
		if !i.hook(w, req, kind) {
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]Kind{"kind": kind}) // the caller has gone: nobody is left to tell
}

// wait waits until the caller goes.
func wait(req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // only then does the server notice that
	<-req.Context().Done()
}

// pause is true where the caller has waited.
func pause(req *http.Request) bool {
	select {
	case <-req.Context().Done():
		return false
	case <-time.After(Delay):
		return true
	}
}

// hangUp breaks the connection, as a server does that crashes: with a reset.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // no more than an early end
	}
	raw := conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		raw = secure.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = raw.Close()
}

// ServeHTTP orders faults and tells of them: PUT a list of faults, GET the report, DELETE what is ordered.
func (i *Injector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var faults []Fault
	switch req.Method {
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(i.Report()) // the caller has gone: nobody is left to tell
		return
	case http.MethodPut:
		decoder := json.NewDecoder(req.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&faults); err != nil {
			http.Error(w, "faults: "+err.Error(), http.StatusBadRequest)
			return
		}
	case http.MethodDelete:
	default:
		http.Error(w, "faults: GET, PUT or DELETE", http.StatusMethodNotAllowed)
		return
	}
	if err := i.Arm(faults); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
