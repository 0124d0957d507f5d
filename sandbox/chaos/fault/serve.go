package fault

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"time"
)

// Refusal answers a call with a server error, a throttling error or the fault's own code, in the protocol of the call.
type Refusal func(w http.ResponseWriter, req *http.Request, f Fault)

// UpdateFails is the header of a call to EKS, with the error code with which what the call begins is to fail.
const UpdateFails = "X-Sandbox-Update-Fails"

// Serve counts a call of a function and passes it to next, with the fault that hits it, if there is one.
func (i *Injector) Serve(w http.ResponseWriter, req *http.Request, call Call, next http.Handler, refuse Refusal) {
	f := Fault{}
	if call.Function != "" {
		f = i.Take(call)
	}
	req.Header.Del(UpdateFails)
	switch f.Kind {
	case Error, Throttle, Refuse:
		refuse(w, req, f)
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
	case Fail:
		req.Header.Set(UpdateFails, f.Code)
		next.ServeHTTP(w, req)
	case Kill:
		stop(w, req, syscall.SIGKILL)
	case Sleep:
		stop(w, req, syscall.SIGSTOP)
	default:
		if i.hook(w, req, f.Kind) {
			next.ServeHTTP(w, req)
		}
	}
}

// stop sends a signal to the process of the caller. The call has no answer.
func stop(w http.ResponseWriter, req *http.Request, signal syscall.Signal) {
	if err := signalCaller(req, signal); err != nil {
		http.Error(w, "fault "+err.Error(), http.StatusBadGateway)
		return
	}
	if signal == syscall.SIGSTOP {
		wait(req)
	}
	hangUp(w)
}

// hook runs the Hook of a kind, if there is one. It returns false if the hook failed and the caller has been answered.
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

// Meet is for calls that do not pass through a server of the sandbox. The caller announces a call before it makes it,
// and applies the kind of fault in the answer to itself. Delays and hooks have been executed by then.
func (i *Injector) Meet(w http.ResponseWriter, req *http.Request) {
	var call Call
	if err := json.NewDecoder(req.Body).Decode(&call); err != nil {
		http.Error(w, "faults: "+err.Error(), http.StatusBadRequest)
		return
	}
	f := i.Take(call)
	switch f.Kind {
	case Timeout:
		wait(req)
		return
	case Slow:
		pause(req)
		f.Kind = ""
	default:
		if !i.hook(w, req, f.Kind) {
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // fails only if the caller has closed the connection
		Kind Kind   `json:"kind"`
		Code string `json:"code,omitempty"`
	}{f.Kind, f.Code})
}

// wait waits until the caller closes the connection.
func wait(req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // the server notices a closed connection only after the body has been read
	<-req.Context().Done()
}

// pause waits for Delay. It returns false if the caller closed the connection first.
func pause(req *http.Request) bool {
	select {
	case <-req.Context().Done():
		return false
	case <-time.After(Delay):
		return true
	}
}

// hangUp closes the connection with a reset, as a server that crashes does.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // without the connection, an early end is the best that can be done
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

// ServeHTTP manages the faults: PUT arms a list of faults, GET returns the report, DELETE removes all faults.
func (i *Injector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var faults []Fault
	switch req.Method {
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(i.Report()) // fails only if the caller has closed the connection
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
