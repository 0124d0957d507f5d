package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// observer watches the objects that the ordering promises are about while a sandbox is in use. The final state alone
// does not show the order of events.
type observer struct {
	mu   sync.Mutex
	seen []timeline.Moment

	called []timeline.Moment // AWS's trail, as far as it has been read
}

// watched lists the kinds, and the function that describes an object of each kind beyond its kind and name.
var watched = []struct {
	schema.GroupVersionResource
	namespace string
	tell      func(*unstructured.Unstructured) string
}{
	{schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}, "", readiness},
	{schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}, "", readiness},
	{schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}, "", readiness},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "kube-system", scale},
}

func readiness(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok && fields["type"] == "Ready" {
			return fmt.Sprintf("Ready=%s", fields["status"])
		}
	}
	return "Ready="
}

func scale(o *unstructured.Unstructured) string {
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	pinned, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "nodeSelector", "convox.io/system-node")
	return fmt.Sprintf("replicas=%d system-node=%s", replicas, pinned)
}

// observe starts watching, until the context ends.
func observe(ctx context.Context, objects dynamic.Interface) *observer {
	o := &observer{}
	for _, kind := range watched {
		f := &follower{
			objects: objects.Resource(kind.GroupVersionResource).Namespace(kind.namespace), tell: kind.tell, to: o.add,
			known: map[string]string{},
		}
		go f.run(ctx)
	}
	return o
}

func (o *observer) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, timeline.Moment{At: time.Now(), What: line})
}

// broken returns the ordering promises that were broken since a time.
func (o *observer) broken(ctx context.Context, w *World, from time.Time) ([]string, error) {
	if err := o.read(ctx, w); err != nil {
		return nil, err
	}
	o.mu.Lock()
	all := slices.Concat(o.seen, o.called)
	o.mu.Unlock()
	timeline.Sort(all)
	return timeline.Broken(all, from), nil
}

// read appends the new AWS calls that changed something.
func (o *observer) read(ctx context.Context, w *World) error {
	path := "trail"
	if n := len(o.called); n > 0 {
		path += "?since=" + o.called[n-1].At.Format(time.RFC3339Nano)
	}
	var text string
	if err := w.environment.Sandbox(ctx, http.MethodGet, path, nil, &text); err != nil {
		return err
	}
	calls, err := timeline.Trail(text)
	o.called = append(o.called, calls...)
	return err
}

// follower reports the changes of one kind of object.
type follower struct {
	objects dynamic.ResourceInterface
	tell    func(*unstructured.Unstructured) string
	to      func(string)
	known   map[string]string // name to the latest line
}

// run follows until the context ends, even if the kind is created later or the API server is away for a time.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
	}
}

// follow lists the objects and watches them until the API server ends the watch.
func (f *follower) follow(ctx context.Context) error {
	list, err := f.objects.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		list = &unstructured.UnstructuredList{} // the kind does not exist, so there are no objects
	} else if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].GetName()] = true
		f.is(&list.Items[i])
	}
	for name := range f.known {
		if !there[name] {
			f.gone(name)
		}
	}
	changes, err := f.objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		switch object, ok := change.Object.(*unstructured.Unstructured); {
		case !ok || change.Type == watch.Error:
			return apierrors.FromObject(change.Object)
		case change.Type == watch.Deleted:
			f.gone(object.GetName())
		default:
			f.is(object)
		}
	}
	return nil
}

func (f *follower) is(o *unstructured.Unstructured) {
	line := fmt.Sprintf("%s %s %s", o.GetKind(), o.GetName(), f.tell(o))
	before, known := f.known[o.GetName()]
	f.known[o.GetName()] = line
	switch {
	case !known:
		f.to("ADDED " + line)
	case before != line:
		f.to("MODIFIED " + line)
	}
}

func (f *follower) gone(name string) {
	f.to("DELETED " + f.known[name])
	delete(f.known, name)
}
