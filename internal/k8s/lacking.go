package k8s

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// lacking compares a manifest with a live object and returns the first field of the manifest that the object lacks or
// has with another value, as ".spec.replicas". What only the live object has was defaulted by the API server or set by
// others. A field that the API server does not store because it is empty (false, 0, "", {}) counts as present.
func lacking(manifest, live map[string]any) (path string, lacks bool) {
	for _, field := range slices.Sorted(maps.Keys(manifest)) {
		if field == "status" {
			continue // apply does not set it
		}
		if path, lacks := differs(field, manifest[field], live[field]); lacks {
			return "." + field + path, true
		}
	}
	return "", false
}

// differs compares the values of one field.
func differs(field string, wanted, live any) (path string, differ bool) {
	switch wanted := wanted.(type) {
	case nil:
		return "", false
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok && live != nil {
			return "", true
		}
		return inObject(field, wanted, have)
	case []any:
		have, ok := live.([]any)
		if !ok && live != nil {
			return "", true
		}
		if keys := mergeKeys(field, wanted); keys != nil {
			return inKeyed(keys, wanted, have)
		}
		return inAtomic(wanted, have)
	default:
		return "", !same(wanted, live)
	}
}

func inObject(field string, wanted, live map[string]any) (string, bool) {
	quantities := field == "limits" || field == "requests"
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if quantities && sameQuantity(wanted[key], live[key]) {
			continue
		}
		if path, differ := differs(key, wanted[key], live[key]); differ {
			return "." + key + path, true
		}
	}
	return "", false
}

// inAtomic compares a list that has one owner: elements are compared by position.
func inAtomic(wanted, live []any) (string, bool) {
	if len(wanted) != len(live) {
		return "", true
	}
	for i := range wanted {
		if path, differ := differs("", wanted[i], live[i]); differ {
			return fmt.Sprintf("[%d]%s", i, path), true
		}
	}
	return "", false
}

// inKeyed compares a list whose elements have owners of their own. Further elements are others'.
func inKeyed(keys []string, wanted, live []any) (string, bool) {
	for _, element := range wanted {
		name := keyOf(element, keys)
		at := slices.IndexFunc(live, func(other any) bool { return keyOf(other, keys) == name })
		if at < 0 {
			return "[" + name + "]", true
		}
		if path, differ := differs("", element, live[at]); differ {
			return "[" + name + "]" + path, true
		}
	}
	return "", false
}

// keyed has the lists of maps in the kinds that Sawhorse applies, with their merge keys, as Kubernetes's own types
// declare them (x-kubernetes-list-map-keys). All other lists are atomic, also those of Karpenter's kinds.
var keyed = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "imagePullSecrets": {"name"}, "secrets": {"name"},
	"volumes": {"name"}, "volumeMounts": {"mountPath"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"x-kubernetes-validations": {"rule"},
}

// mergeKeys returns the keys of a list's elements, or nil if the list is atomic. The ports of a container have another
// key than those of a Service.
func mergeKeys(field string, list []any) []string {
	if field != "ports" {
		return keyed[field]
	}
	for _, element := range list {
		if port, _ := element.(map[string]any); port["containerPort"] != nil {
			return []string{"containerPort", "protocol"}
		}
	}
	return []string{"port", "protocol"}
}

// keyOf returns the key of a list's element: "http", or "8080 TCP".
func keyOf(element any, keys []string) string {
	fields, _ := element.(map[string]any)
	var parts []string
	for _, key := range keys {
		value := fields[key]
		if value == nil && key == "protocol" {
			value = "TCP" // Kubernetes's default
		}
		parts = append(parts, fmt.Sprint(value))
	}
	return strings.Join(parts, " ")
}

// same compares two plain values.
func same(wanted, live any) bool {
	if live == nil {
		return wanted == false || wanted == "" || number(wanted) == 0
	}
	if wanted == live {
		return true
	}
	return number(wanted) == number(live) // NaN, which equals nothing, where one is not a number
}

// sameQuantity reports whether two values are the same quantity, like 1 and "1000m". The API server stores the
// canonical form.
func sameQuantity(wanted, live any) bool {
	if wanted == nil || live == nil {
		return false
	}
	a, err := resource.ParseQuantity(fmt.Sprint(wanted))
	if err != nil {
		return false
	}
	b, err := resource.ParseQuantity(fmt.Sprint(live))
	return err == nil && a.Cmp(b) == 0
}

// number returns a JSON number, or NaN for any other value.
func number(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case float64:
		return value
	}
	return math.NaN()
}
