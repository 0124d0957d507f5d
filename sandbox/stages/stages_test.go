package stages

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// pods returns the life cycle of pods.
func pods(t *testing.T) lifecycle.Lifecycle {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	cycle, err := lifecycle.NewLifecycle(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
	if err != nil {
		t.Fatal(err)
	}
	return cycle
}

// played returns the name of the stage that kwok would run for the pod, empty if there is none.
func played(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	stage, err := pods(t).Match(t.Context(), &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod})
	if err != nil {
		t.Fatal(err)
	}
	if stage == nil {
		return ""
	}
	return stage.Name()
}

func TestPodsThatIgnoreSignalsUseTheirGracePeriod(t *testing.T) {
	end := metav1.NewTime(time.Unix(1_000_000, 0))
	annotations := map[string]string{IgnoresSignals: "true"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if got := played(t, pod); got != "pod-ready" {
		t.Errorf("before its end kwok plays %q", got)
	}
	pod.DeletionTimestamp = &end
	if got := played(t, pod); got != "pod-kill" {
		t.Errorf("at its end kwok plays %q", got)
	}
	cycle := pods(t)
	event := &lifecycle.Event{Annotations: annotations, Data: pod}
	stage, err := cycle.Match(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	delay, delayed, err := stage.Delay(t.Context(), event, end.Add(-20*time.Second))
	if err != nil || !delayed || delay != 20*time.Second {
		t.Errorf("after %s, %v, %v", delay, delayed, err)
	}
}

func TestAPodWithoutANetworkDoesNotStart(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{NoNetwork: "true"}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if got := played(t, pod); got != "pod-no-network" {
		t.Errorf("kwok plays %q", got)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
	if got := played(t, pod); got != "" {
		t.Errorf("then kwok plays %q", got)
	}
	pod.Annotations = nil
	if got := played(t, pod); got != "pod-ready" {
		t.Errorf("with a network kwok plays %q", got)
	}
	if !strings.Contains(readyTemplate(t), "type: PodReadyToStartContainers") {
		t.Error("a pod that is ready has no network")
	}
}

// readyTemplate returns what kwok writes for a pod that starts.
func readyTemplate(t *testing.T) string {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}] {
		if stage.Name == "pod-ready" {
			return stage.Spec.Steps[0].Patch.Template
		}
	}
	return ""
}

func TestKarpenterIsLeftToItsProcess(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	pending, deleted := corev1.PodStatus{Phase: corev1.PodPending}, &now
	for _, c := range []struct {
		name    string
		labels  map[string]string
		deleted *metav1.Time
		want    string
	}{
		{"a pod", map[string]string{"app.kubernetes.io/name": "web"}, nil, "pod-ready"},
		{"a pod without labels", nil, nil, "pod-ready"},
		{"a pod that goes", nil, deleted, "pod-delete"},
		{"Karpenter's", map[string]string{"app.kubernetes.io/name": "karpenter"}, nil, ""},
		{"Karpenter's that goes", map[string]string{"app.kubernetes.io/name": "karpenter"}, deleted, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, DeletionTimestamp: c.deleted}, Status: pending}
		if got := played(t, pod); got != c.want {
			t.Errorf("%s: kwok plays %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNodesAreServed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Node"}]); got != 2 {
		t.Errorf("%d stages for nodes, want start and heartbeat", got)
	}
}
