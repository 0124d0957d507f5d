package k8s

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AsEvent returns an event as its Go type.
func AsEvent(object *unstructured.Unstructured) (*corev1.Event, error) {
	return as[corev1.Event](object)
}

// LastSeen returns when an event was last seen. Some senders set one of its times, and some another.
func LastSeen(e *corev1.Event) time.Time {
	latest := e.LastTimestamp.Time
	if e.EventTime.After(latest) {
		latest = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(latest) {
		latest = e.Series.LastObservedTime.Time
	}
	return latest
}
