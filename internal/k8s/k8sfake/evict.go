package k8sfake

import (
	"net/http"
	"strings"
)

// evict removes a pod, unless a PodDisruptionBudget protects it.
func (s *Server) evict(w http.ResponseWriter, path string) {
	pod := strings.TrimSuffix(path, "/eviction")
	switch {
	case s.Objects[pod] == nil:
		refuse(w, http.StatusNotFound, "NotFound")
	case s.Protected[pod]:
		refuse(w, http.StatusTooManyRequests, "TooManyRequests")
	default:
		s.Writes = append(s.Writes, "POST "+path)
		delete(s.Objects, pod)
		answer(w, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"})
	}
}
