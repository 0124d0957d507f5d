package k8s

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReady(t *testing.T) {
	condition := func(kind, status string, generation int64) any {
		return map[string]any{"type": kind, "status": status, "message": "because", "observedGeneration": generation}
	}
	for name, c := range map[string]struct {
		conditions []any
		ready      bool
		note       string
	}{
		"no status yet":         {nil, false, "has not looked"},
		"ready":                 {[]any{condition("Ready", "True", 2)}, true, ""},
		"ready before a change": {[]any{condition("Ready", "True", 1)}, false, "has not looked"},
		"says what is missing": {
			[]any{condition("NodeClassReady", "False", 2), condition("Ready", "False", 2)}, false, "NodeClassReady=False because",
		},
		"one True is not enough": {
			[]any{condition("ValidationSucceeded", "True", 2), condition("Ready", "Unknown", 2)}, false, "Ready=Unknown",
		},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(2)},
			"status": map[string]any{"conditions": c.conditions}}}
		ready, note := Ready(object)
		if ready != c.ready || !strings.Contains(note, c.note) {
			t.Errorf("%s: %v %q", name, ready, note)
		}
	}
}

func TestRolloutOf(t *testing.T) {
	for name, c := range map[string]struct {
		spec, status map[string]any
		done, stuck  bool
		note         string
	}{
		"not seen": {
			map[string]any{"replicas": int64(1)}, map[string]any{"observedGeneration": int64(1)}, false, false, "not been seen",
		},
		"no new pods": {
			map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(2), "updatedReplicas": int64(1)}, false,
			false, "1 of 2 new",
		},
		"old pods": {
			map[string]any{"replicas": int64(1)},
			map[string]any{"observedGeneration": int64(2), "updatedReplicas": int64(1), "replicas": int64(2)}, false, false, "1 old",
		},
		"not ready": {
			map[string]any{}, map[string]any{"observedGeneration": int64(2), "updatedReplicas": int64(1), "replicas": int64(1)}, false,
			false, "0 of 1",
		},
		"done": {
			map[string]any{},
			map[string]any{
				"observedGeneration": int64(2), "updatedReplicas": int64(1), "replicas": int64(1), "availableReplicas": int64(1),
			}, true, false, "",
		},
		"scaling down": {
			map[string]any{"replicas": int64(0)},
			map[string]any{"observedGeneration": int64(2), "updatedReplicas": int64(1), "replicas": int64(1)}, false, false,
			"1 pods too many",
		},
		"none wanted": {map[string]any{"replicas": int64(0)}, map[string]any{"observedGeneration": int64(2)}, true, false, ""},
		"paused":      {map[string]any{"paused": true}, map[string]any{}, true, false, ""},
		"given up": {
			map[string]any{},
			map[string]any{
				"observedGeneration": int64(2), "conditions": []any{
					map[string]any{"type": "Progressing", "reason": "ProgressDeadlineExceeded"},
				},
			}, false, true, "0 of 1 new",
		},
		"given up later": {
			map[string]any{},
			map[string]any{
				"observedGeneration": int64(1), "conditions": []any{
					map[string]any{"type": "Progressing", "reason": "ProgressDeadlineExceeded"},
				},
			}, false, false, "not been seen",
		},
	} {
		object := &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"generation": int64(2)}, "spec": c.spec, "status": c.status},
		}
		rollout, err := RolloutOf(object)
		if err != nil || rollout.Done != c.done || rollout.Stuck != c.stuck || !strings.Contains(rollout.Note, c.note) {
			t.Errorf("%s: %+v, %v", name, rollout, err)
		}
	}
}
