package standin

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// fieldManagers are the API server's own, for objects without a schema. Their types are deduced, so each
// list is one value.
type fieldManagers map[schema.GroupVersionKind]*managedfields.FieldManager

// of returns the field manager of a kind.
func (f fieldManagers) of(k kind) (*managedfields.FieldManager, error) {
	gvk := k.groupVersionKind()
	if made := f[gvk]; made != nil {
		return made, nil
	}
	made, err := managedfields.NewDefaultCRDFieldManager(
		managedfields.NewDeducedTypeConverter(), oneVersion{}, oneVersion{}, oneVersion{}, gvk, gvk.GroupVersion(), "", nil)
	if err == nil {
		f[gvk] = made
	}
	return made, err
}

// oneVersion converts and defaults nothing. Each kind exists only in the version in which it was written.
type oneVersion struct{}

func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) Default(runtime.Object) {}

var errConvert = errors.New("objects are kept in one version")

func (oneVersion) Convert(_, _, _ any) error { return errConvert }

func (oneVersion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errConvert
}
