package latency

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// watch records when each NodePool first had a CPU limit.
type watch struct {
	mu    sync.Mutex
	seen  map[[2]string]time.Time
	news  chan struct{}
	ended bool
}

// watching watches NodePools until the context ends.
func watching(ctx context.Context, pools dynamic.ResourceInterface) (*watch, error) {
	events, err := pools.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("latency: NodePools: watch: %w", err)
	}
	w := &watch{seen: map[[2]string]time.Time{}, news: make(chan struct{}, 1)}
	go func() {
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				w.note(object, time.Now())
			}
		}
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.wake()
	}()
	return w, nil
}

func (w *watch) note(object *unstructured.Unstructured, now time.Time) {
	cpu, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "limits", "cpu")
	w.mu.Lock()
	key := [2]string{object.GetName(), fmt.Sprint(cpu)}
	if w.seen[key].IsZero() {
		w.seen[key] = now
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watch) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// until waits until a NodePool has the limit, and returns when the watch saw it.
func (w *watch) until(ctx context.Context, name, cpu string) (time.Time, error) {
	ctx, end := context.WithTimeout(ctx, limit)
	defer end()
	for {
		w.mu.Lock()
		at, ended := w.seen[[2]string{name, cpu}], w.ended
		w.mu.Unlock()
		switch {
		case !at.IsZero():
			return at, nil
		case ended:
			return at, fmt.Errorf("latency: NodePools: the watch has ended")
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return at, fmt.Errorf("latency: NodePool %s: no limit %s: %w", name, cpu, ctx.Err())
		}
	}
}
