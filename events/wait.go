package events

import "fmt"

// Wait is what pods have waited ten minutes or longer for: a node.
type Wait struct {
	// Cause is why the node does not come.
	Cause Cause `json:"cause"`
	// Pods is how many pods wait for this cause. The node check counts 1,000 pods at most.
	Pods int `json:"pods"`
	// Oldest is the namespace and name of the pod that waits longest, and Since the time (RFC 3339) since which it does.
	Oldest string `json:"oldest"`
	Since  string `json:"since"`
	// Reason says why in the words of Karpenter, EC2 or the scheduler.
	Reason string `json:"reason"`
}

// Cause is why the node does not come that pods wait for.
type Cause string

// The causes.
const (
	// CauseRefused means that EC2 refuses the launch. Its code is in the reason.
	CauseRefused Cause = "refused"
	// CauseCapacity means that EC2 has no capacity for the instance types that the pool allows.
	CauseCapacity Cause = "capacity"
	// CauseLimit means that the limit of the pool is reached.
	CauseLimit Cause = "limit"
	// CauseSilent means that Karpenter has said nothing about the pods: its controller does not work, or does not see them.
	CauseSilent Cause = "silent"
	// CauseStarting means that Karpenter has launched the node, and that it has not come yet.
	CauseStarting Cause = "starting"
	// CauseUnfit means that no pool fits the pods.
	CauseUnfit Cause = "unfit"
)

// Causes are all causes in the order in which they are listed, with their meaning.
var Causes = []struct {
	Cause Cause
	Means string
	// Degrades means that a rack with such pods is Degraded. Otherwise the pods themselves ask for what the rack does not have,
	// or the node is to come.
	Degrades bool
}{
	{CauseRefused, "EC2 refuses the launch", true},
	{CauseCapacity, "EC2 has no capacity", true},
	{CauseLimit, "the limit of the pool is reached", true},
	{CauseSilent, "Karpenter has said nothing about them", true},
	{CauseStarting, "it has been launched and has not come yet", false},
	{CauseUnfit, "no pool fits", false},
}

// Degrades reports whether a rack with such pods is Degraded.
func (w Wait) Degrades() bool {
	for _, c := range Causes {
		if c.Cause == w.Cause {
			return c.Degrades
		}
	}
	return false
}

// String describes the wait in a sentence.
func (w Wait) String() string {
	text := fmt.Sprintf("%d pods have waited for a node for ten minutes, %s since %s", w.Pods, w.Oldest, w.Since)
	if w.Pods == 1 {
		text = fmt.Sprintf("pod %s has waited for a node since %s", w.Oldest, w.Since)
	}
	for _, c := range Causes {
		if c.Cause == w.Cause {
			text += ": " + c.Means
		}
	}
	return text
}
