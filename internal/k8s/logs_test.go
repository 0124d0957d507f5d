package k8s

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The lines are Karpenter 1.15's, shortened.
const (
	presentLog = `{"level":"INFO","time":"2026-11-24T10:00:00Z","logger":"controller","message":"Starting workers"}
{"level":"ERROR","time":"2026-11-24T10:00:01Z","message":"Observed a panic","panic":"assignment to entry in nil map","stacktrace":"g"}
{"level":"ERROR","time":"2026-11-24T10:00:02Z","logger":"controller","message":"Reconciler error","error":"not authorized"}
{"level":"ERROR","time":"2026-11-24T10:00:03Z","message":"Observed a panic","panic":"assignment to entry in nil map","stacktrace":"g"}
not JSON
`
	previousLog = `{"level":"ERROR","message":"an older one"}
{"level":"ERROR","message":"another"}
panic: operator, no zone shift

goroutine 1 [running]:
`
)

func TestLogErrorsAreTheLastDifferentOnes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system/pods/karpenter-0/log" || r.URL.Query().Get("container") != "controller" {
			http.NotFound(w, r)
			return
		}
		text := presentLog
		if r.URL.Query().Get("previous") == "true" {
			text = previousLog
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	client, err := New("demo", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter-0"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "controller"}}}}
	want := []string{"panic: operator, no zone shift", "Reconciler error: not authorized",
		"Observed a panic: assignment to entry in nil map"}
	if got := client.LogErrors(t.Context(), pod); !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	pod.Name = "karpenter-1"
	if got := client.LogErrors(t.Context(), pod); len(got) > 0 {
		t.Errorf("of a pod without a log: %q", got)
	}
}
