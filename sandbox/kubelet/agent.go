package kubelet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"sync"
)

// agent is EKS's Pod Identity agent: the AWS SDK in a pod requests credentials from it with the token
// from the pod's file.
type agent struct {
	url    string
	server *http.Server
	lookup lookup

	mu     sync.Mutex
	admits map[string]serviceAccount
}

// lookup returns the current credentials of a service account's association; empty without an association.
type lookup func(ctx context.Context, namespace, account string) (map[string]string, error)

type serviceAccount struct{ namespace, name string }

func startAgent(lookup lookup) (*agent, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &agent{url: "http://" + listener.Addr().String() + "/v1/credentials", lookup: lookup, admits: map[string]serviceAccount{}}
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

func (a *agent) stop() { _ = a.server.Close() }

// admit returns a token for the service account.
func (a *agent) admit(namespace, name string) string {
	token := rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admits[token] = serviceAccount{namespace, name}
	return token
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	account, ok := a.admits[r.Header.Get("Authorization")]
	a.mu.Unlock()
	if !ok {
		http.Error(w, "the token is not a pod's", http.StatusUnauthorized)
		return
	}
	answer, err := a.lookup(r.Context(), account.namespace, account.name)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case len(answer) == 0:
		http.Error(w, "the service account has no association", http.StatusNotFound)
	case answer["error"] != "":
		http.Error(w, answer["error"], http.StatusForbidden)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}
