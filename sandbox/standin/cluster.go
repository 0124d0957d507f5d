package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// cluster stores the objects of one cluster. An object that was returned or stored is never changed, only replaced.
type cluster struct {
	now    func() time.Time
	tokens authenticator.Token
	rights authorizer.Authorizer

	mu       sync.Mutex
	objects  map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured
	managers fieldManagers
	version  int64
	due      []unsettled
}

func newCluster(now func() time.Time) *cluster {
	c := &cluster{
		now: now, objects: map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured{}, managers: fieldManagers{},
	}
	g := grants{c}
	c.rights = rbac.New(g, g, g, g)
	return c
}

// seed stores an object as it is. Its field manager is kubectl, as if the cluster's owner had created it.
func (c *cluster) seed(object *unstructured.Unstructured) error {
	k, found := c.kind(func(k kind) bool { return k.groupVersionKind() == object.GroupVersionKind() })
	if !found {
		return fmt.Errorf("%s %s: %s is no kind of the stand-in", object.GetKind(), object.GetName(), object.GroupVersionKind())
	}
	_, err := c.create(k, object, "kubectl")
	return err
}

// data returns the data of a ConfigMap; none if there is no such ConfigMap.
func (c *cluster) data(namespace, name string) map[string]string {
	object, err := c.get(configMaps, namespace, name)
	if err != nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	return data
}

func (c *cluster) get(k kind, namespace, name string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live(k, namespace, name)
}

// live returns an object, or NotFound. The caller holds c.mu.
func (c *cluster) live(k kind, namespace, name string) (*unstructured.Unstructured, error) {
	if object := c.objects[k.GroupResource()][types.NamespacedName{Namespace: namespace, Name: name}]; object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(k.GroupResource(), name)
}

// list returns the objects of a namespace ("" means all), sorted by namespace and name.
func (c *cluster) list(k kind, namespace string, selector labels.Selector) []*unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := slices.DeleteFunc(slices.Collect(maps.Values(c.objects[k.GroupResource()])), func(o *unstructured.Unstructured) bool {
		return namespace != "" && o.GetNamespace() != namespace || !selector.Matches(labels.Set(o.GetLabels()))
	})
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return found
}

func (c *cluster) create(k kind, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.live(k, object.GetNamespace(), object.GetName()); err == nil {
		return nil, apierrors.NewAlreadyExists(k.GroupResource(), object.GetName())
	}
	return c.update(k, nil, object, manager)
}

// replace overwrites an object that exists and has not changed since it was read.
func (c *cluster) replace(k kind, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live, err := c.live(k, object.GetNamespace(), object.GetName())
	if err != nil {
		return nil, err
	}
	return c.update(k, live, object, manager)
}

// merge applies a JSON merge patch.
func (c *cluster) merge(k kind, namespace, name string, patch []byte, manager string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live, err := c.live(k, namespace, name)
	if err != nil {
		return nil, err
	}
	before, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	merged := &unstructured.Unstructured{}
	if err := merged.UnmarshalJSON(after); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return c.update(k, live, merged, manager)
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version")

// update runs the field manager for a write other than apply. live is nil for a new object. The caller holds c.mu.
func (c *cluster) update(k kind, live, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	if live != nil && object.GetResourceVersion() != "" && object.GetResourceVersion() != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(k.GroupResource(), object.GetName(), errModified)
	}
	fields, err := c.managers.of(k)
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	c.own(k, live, object)
	managed, err := fields.Update(before(k, live), object, manager)
	if err != nil {
		return nil, err
	}
	return c.write(k, live, managed), nil
}

// apply is server-side apply.
func (c *cluster) apply(k kind, object *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fields, err := c.managers.of(k)
	if err != nil {
		return nil, err
	}
	live, err := c.live(k, object.GetNamespace(), object.GetName())
	if err != nil {
		live = nil
	}
	applied, err := fields.Apply(before(k, live), object.DeepCopy(), manager, force)
	if err != nil {
		return nil, err
	}
	return c.write(k, live, applied), nil
}

// before returns the object that a field manager compares with.
func before(k kind, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live != nil {
		return live.DeepCopy()
	}
	nothing := &unstructured.Unstructured{}
	nothing.SetGroupVersionKind(k.groupVersionKind())
	return nothing
}

// own sets the fields that belong to the API server, and the status if it belongs to a controller.
func (c *cluster) own(k kind, live, object *unstructured.Unstructured) {
	object.SetGroupVersionKind(k.groupVersionKind())
	_, controlled := statuses[k.name]
	if live == nil {
		object.SetUID(uuid.NewUUID())
		object.SetCreationTimestamp(metav1.NewTime(c.now()))
		object.SetGeneration(1)
		object.SetResourceVersion("")
		if controlled {
			delete(object.Object, "status")
		}
		return
	}
	object.SetUID(live.GetUID())
	object.SetCreationTimestamp(live.GetCreationTimestamp())
	object.SetGeneration(live.GetGeneration())
	object.SetResourceVersion(live.GetResourceVersion())
	if status, has := live.Object["status"]; controlled && has {
		object.Object["status"] = status
	}
}

// write stores an object if it has changed. The caller holds c.mu.
func (c *cluster) write(k kind, live *unstructured.Unstructured, managed runtime.Object) *unstructured.Unstructured {
	object := managed.(*unstructured.Unstructured)
	c.own(k, live, object)
	if live != nil {
		if same(live.Object, object.Object) && equality.Semantic.DeepEqual(owners(live), owners(object)) {
			return live
		}
		if !same(content(live), content(object)) {
			object.SetGeneration(live.GetGeneration() + 1)
		}
	}
	c.put(k, object)
	if _, controlled := statuses[k.name]; controlled {
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		c.due = append(c.due, unsettled{k, key, c.now().Add(settling)})
	}
	return object
}

// put stores an object with the next resource version. The caller holds c.mu.
func (c *cluster) put(k kind, object *unstructured.Unstructured) {
	c.version++
	object.SetResourceVersion(strconv.FormatInt(c.version, 10))
	place := k.GroupResource()
	if c.objects[place] == nil {
		c.objects[place] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	c.objects[place][types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = object
}

func (c *cluster) remove(k kind, namespace, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	object, err := c.live(k, namespace, name)
	if err != nil {
		return err
	}
	if k == pods {
		delete(c.objects[nodes.GroupResource()], types.NamespacedName{Name: nodeOf(object)})
	}
	c.version++
	delete(c.objects[k.GroupResource()], types.NamespacedName{Namespace: namespace, Name: name})
	return nil
}

// content returns the fields whose changes increase an object's generation.
func content(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

// same compares objects without their managed fields.
func same(a, b map[string]any) bool {
	return equality.Semantic.DeepEqual(unmanaged(a), unmanaged(b))
}

func unmanaged(object map[string]any) map[string]any {
	metadata, has := object["metadata"].(map[string]any)
	if !has {
		return object
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	delete(metadata, "managedFields")
	object["metadata"] = metadata
	return object
}

// owners returns an object's managed fields without their times. Setting a field again to the same value
// is not a change.
func owners(object *unstructured.Unstructured) string {
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	text, _ := json.Marshal(entries) // they were decoded from JSON
	return string(text)
}
