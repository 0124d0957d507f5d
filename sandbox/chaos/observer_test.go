package chaos

import (
	"context"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// turns is an API server that ends each watch after some events. Each turn has a list and its events.
type turns struct {
	dynamic.ResourceInterface
	lists  [][]unstructured.Unstructured
	events [][]watch.Event
}

func (s *turns) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Items: s.lists[0]}
	s.lists = s.lists[1:]
	return list, nil
}

func (s *turns) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	events := watch.NewFakeWithChanSize(len(s.events[0]), false)
	for _, e := range s.events[0] {
		events.Action(e.Type, e.Object)
	}
	events.Stop()
	s.events = s.events[1:]
	return events, nil
}

// Each change is reported once, including changes that happened between two watches.
func TestFollowing(t *testing.T) {
	pool := func(name, ready string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "NodePool", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}},
		}}
	}
	server := &turns{
		lists: [][]unstructured.Unstructured{{*pool("a", "False")}, {*pool("c", "True")}},
		events: [][]watch.Event{{
			{Type: watch.Added, Object: pool("b", "False")}, {Type: watch.Modified, Object: pool("b", "False")},
			{Type: watch.Modified, Object: pool("b", "True")}, {Type: watch.Deleted, Object: pool("a", "False")},
		}, {}},
	}
	var told []string
	f := &follower{objects: server, tell: readiness, to: func(line string) { told = append(told, line) }, known: map[string]string{}}
	for range 2 {
		if err := f.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"ADDED NodePool a Ready=False", "ADDED NodePool b Ready=False", "MODIFIED NodePool b Ready=True", "DELETED NodePool a Ready=False",
		"ADDED NodePool c Ready=True", "DELETED NodePool b Ready=True",
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("%q", told)
	}
}
