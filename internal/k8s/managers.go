package k8s

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// SetBy returns who last set a field of an object, from its managedFields: the manager that owns the field, else the
// one that wrote the object last, because no manager owns a removed field. It ignores Sawhorse and writers of the
// status. If there is no other, it returns "another manager". An element of path is a field's name, or k:{"name":"x"}
// for a list element.
func SetBy(object *unstructured.Unstructured, path ...string) string {
	var last *metav1.ManagedFieldsEntry
	held := false
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if entry.Manager == ownership.FieldManager || entry.Subresource == "status" {
			continue
		}
		holds := entry.FieldsV1 != nil && holds(entry.FieldsV1.Raw, path)
		switch {
		case last == nil, holds && !held, holds == held && last.Time.Before(entry.Time):
			last, held = entry, holds
		}
	}
	if last == nil {
		return "another manager"
	}
	return last.Manager
}

// holds reports whether a set of fields contains a path.
func holds(raw []byte, path []string) bool {
	for _, part := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		if !strings.HasPrefix(part, "k:") {
			part = "f:" + part
		}
		found := false
		if raw, found = fields[part]; !found {
			return false
		}
	}
	return true
}

// AppliedSpec returns the fields of an object's spec that Sawhorse has applied, with their present values. An apply of them
// changes nothing, and an apply that leaves one out removes it. A list is whole.
func AppliedSpec(object *unstructured.Unstructured) map[string]any {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != ownership.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		applied, _ := only(object.DeepCopy().Object, entry.FieldsV1.Raw).(map[string]any)
		if spec, is := applied["spec"].(map[string]any); is {
			return spec
		}
	}
	return map[string]any{}
}

// only returns the part of a value that is in a set of fields.
func only(value any, raw []byte) any {
	object, is := value.(map[string]any)
	var fields map[string]json.RawMessage
	if !is || json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return value
	}
	part := map[string]any{}
	for name, inner := range fields {
		if field, is := strings.CutPrefix(name, "f:"); is && object[field] != nil {
			part[field] = only(object[field], inner)
		}
	}
	return part
}
