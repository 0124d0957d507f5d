package k8s

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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

// Said returns what an event says of its object: its sender, its reason and its message. Karpenter repeats there the name of the
// NodeClaim that the event is about.
func Said(e *corev1.Event) string {
	return cmp.Or(e.Source.Component, e.ReportingController) + ": " + e.Reason + ": " +
		strings.ReplaceAll(e.Message, "NodeClaim "+e.InvolvedObject.Name+" event: ", "")
}

// overLimit are Karpenter's words about a pod for which a pool may launch no node, because of its limit (of nodes: from 1.12 on).
var overLimit = regexp.MustCompile(`(?:exceed limits|limits have been exhausted) for nodepool[ :]*(?:\(NodePool=([^)]+)\))?`)

// OverLimit reports whether Karpenter says of a pod that the limit of a pool keeps its node from being launched. The limit of a pool that
// retires is Sawhorse's own, and is no reason.
func OverLimit(words string, retires func(pool string) bool) bool {
	for _, found := range overLimit.FindAllStringSubmatch(words, -1) {
		if !retires(found[1]) {
			return true
		}
	}
	return false
}

// generated is the name that Karpenter gives a NodeClaim. A longer one is another pool's.
var generated = regexp.MustCompile("^(.+)-[a-z0-9]{5}$")

// PoolOf returns the NodePool of a NodeClaim by the name that Karpenter gives it, or "" for another name. A NodeClaim that
// cannot be launched is gone within seconds, and its events have nothing but its name.
func PoolOf(claim string) string {
	if parts := generated.FindStringSubmatch(claim); parts != nil {
		return parts[1]
	}
	return ""
}
