// Package k8sfake is an API server in memory, for tests of steps that work mostly with AWS. It stores objects and lists
// them by label, but has no field ownership and no authorization. k8stest is for tests that need those.
package k8sfake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Server stores objects by their path in the API.
type Server struct {
	Objects map[string]*unstructured.Unstructured
	// Protected has the paths of pods that a PodDisruptionBudget protects from eviction.
	Protected map[string]bool
	// Unevictable has the paths of pods whose eviction is answered with 500, as that of a pod with two PodDisruptionBudgets.
	Unevictable map[string]bool
	// Denied answers every request with 401, like EKS before an access entry works. Forbidden answers with 403, like
	// EKS before the entry's policy works.
	Denied, Forbidden bool
	// FailAt fails the n-th request from now on with 500. 0 fails none.
	FailAt int
	// Raced is the path of an object that someone else writes right before its next PUT.
	Raced string
	// Writes lists the changes so far, for example "PUT /api/v1/nodes/a".
	Writes  []string
	url     string
	version int
}

// New returns an empty API server for one test.
func New(t *testing.T) *Server {
	s := &Server{Objects: map[string]*unstructured.Unstructured{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// Dial is a k8s.Connector.
func (s *Server) Dial(_ context.Context, cluster plan.Cluster) (*k8s.Client, error) {
	return k8s.New(cluster.Name, &rest.Config{Host: s.url})
}

// Through returns a k8s.Connector whose requests go through a transport.
func (s *Server) Through(wrap func(http.RoundTripper) http.RoundTripper) k8s.Connector {
	return func(_ context.Context, cluster plan.Cluster) (*k8s.Client, error) {
		return k8s.New(cluster.Name, &rest.Config{Host: s.url, WrapTransport: wrap})
	}
}

// Put creates or replaces an object at a path below /api or /apis.
func (s *Server) Put(path, apiVersion, kind string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	parts := strings.Split(path, "/")
	object.SetName(parts[len(parts)-1])
	if len(parts) > 3 && parts[len(parts)-4] == "namespaces" {
		object.SetNamespace(parts[len(parts)-3])
	}
	s.store(path, object)
	return object
}

func (s *Server) store(path string, object *unstructured.Unstructured) {
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	s.Objects[path] = object
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if s.FailAt > 0 {
		if s.FailAt--; s.FailAt == 0 {
			refuse(w, http.StatusInternalServerError, "InternalError")
			return
		}
	}
	live := s.Objects[path]
	switch {
	case s.Denied:
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case s.Forbidden:
		refuse(w, http.StatusForbidden, "Forbidden")
	case r.Method == http.MethodGet && live != nil:
		answer(w, live.Object)
	case r.Method == http.MethodGet && s.known(path):
		s.list(w, path, r.URL.Query().Get("labelSelector"))
	case r.Method == http.MethodPut && live != nil:
		s.put(w, r, path, live)
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/eviction"):
		s.evict(w, path)
	case r.Method == http.MethodPatch:
		s.apply(w, r, path, live)
	case r.Method == http.MethodDelete && live != nil:
		s.Writes = append(s.Writes, "DELETE "+path)
		delete(s.Objects, path)
		answer(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})
	default:
		refuse(w, http.StatusNotFound, "NotFound")
	}
}

// known distinguishes a collection from an object that does not exist.
func (s *Server) known(path string) bool {
	for _, resource := range []string{
		"nodes", "pods", "deployments", "secrets", "nodepools", "nodeclaims", "ec2nodeclasses", "events",
		"poddisruptionbudgets", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "namespaces",
	} {
		if strings.HasSuffix(path, "/"+resource) {
			return true
		}
	}
	return false
}

func (s *Server) list(w http.ResponseWriter, path, selector string) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	items := []any{}
	for _, place := range slices.Sorted(maps.Keys(s.Objects)) {
		object := s.Objects[place]
		everywhere := strings.Replace(place, "/namespaces/"+object.GetNamespace(), "", 1)
		if (strings.HasPrefix(place, path+"/") || strings.HasPrefix(everywhere, path+"/")) && wanted.Matches(labels.Set(object.GetLabels())) {
			items = append(items, object.Object)
		}
	}
	answer(w, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
}

// put refuses an object that was read before the last change.
func (s *Server) put(w http.ResponseWriter, r *http.Request, path string, live *unstructured.Unstructured) {
	object := body(r)
	if s.Raced == path {
		s.Raced = ""
		s.store(path, live)
	}
	if object.GetResourceVersion() != live.GetResourceVersion() {
		refuse(w, http.StatusConflict, "Conflict")
		return
	}
	s.Writes = append(s.Writes, "PUT "+path)
	s.store(path, object)
	answer(w, object.Object)
}

// apply replaces the whole object by the manifest, and writes nothing if they are equal.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, path string, live *unstructured.Unstructured) {
	object := body(r)
	if live != nil {
		same := live.DeepCopy()
		same.SetResourceVersion("")
		if object.SetResourceVersion(""); reflect.DeepEqual(same.Object, object.Object) {
			answer(w, live.Object)
			return
		}
	}
	s.Writes = append(s.Writes, "PATCH "+path)
	s.store(path, object)
	answer(w, object.Object)
}

// evict removes a pod, unless a PodDisruptionBudget protects it.
func (s *Server) evict(w http.ResponseWriter, path string) {
	pod := strings.TrimSuffix(path, "/eviction")
	switch {
	case s.Objects[pod] == nil:
		refuse(w, http.StatusNotFound, "NotFound")
	case s.Unevictable[pod]:
		refuse(w, http.StatusInternalServerError, "InternalError")
	case s.Protected[pod]:
		refuse(w, http.StatusTooManyRequests, "TooManyRequests")
	default:
		s.Writes = append(s.Writes, "POST "+path)
		delete(s.Objects, pod)
		answer(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})
	}
}

func body(r *http.Request) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	_ = json.NewDecoder(r.Body).Decode(object) // the k8s client sends JSON
	return object
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code})
}
