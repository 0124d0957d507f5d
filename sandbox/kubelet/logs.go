package kubelet

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// Logs returns the kubelet's endpoint for the logs of containers, from a folder of Config.Logs. It has those of the
// processes that Run starts. It knows the parameters previous, tailLines and limitBytes (Kubernetes, PodLogOptions).
func Logs(folder string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		text, err := logOf(folder, filepath.Base(r.PathValue("pod")), r.URL.Query().Get("previous") == "true")
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if lines, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
			text = tail(text, lines)
		}
		if limit, err := strconv.Atoi(r.URL.Query().Get("limitBytes")); err == nil {
			text = text[:min(limit, len(text))]
		}
		_, _ = w.Write(text)
	})
	return mux
}

// logOf reads the log of a pod's process, or of the one before its last restart.
func logOf(folder, pod string, previous bool) ([]byte, error) {
	restarts := int32(0)
	for {
		if _, err := os.Stat(logFile(folder, pod, restarts+1)); err != nil {
			break
		}
		restarts++
	}
	if previous {
		restarts--
	}
	if restarts < 0 {
		return nil, fmt.Errorf("pod %s: no container has ended", pod)
	}
	return os.ReadFile(logFile(folder, pod, restarts))
}

func logFile(folder, pod string, restarts int32) string {
	return filepath.Join(folder, logName(pod, restarts)+".log")
}

// tail returns the last lines of a text.
func tail(text []byte, lines int) []byte {
	text = bytes.TrimSuffix(text, []byte("\n"))
	all := bytes.Split(text, []byte("\n"))
	return append(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")), '\n')
}
