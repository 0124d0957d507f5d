package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// waits adds a pod that the scheduler has no node for, since a time after start.
func (s *scene) waits(name string, since time.Duration, more object) object {
	s.Helper()
	metadata := object{"name": name, "namespace": "default"}
	for key, value := range more {
		metadata[key] = value
	}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
		"spec": object{"containers": []any{object{"name": "web", "image": "web", "resources": object{"requests": object{"cpu": "2"}}}}}}
	s.Create(pod)
	unscheduled := condition("PodScheduled", "False", "Unschedulable", start.Add(since))
	s.Status(pod, object{"phase": "Pending", "conditions": []any{unscheduled}})
	return pod
}

// limits limits the vCPUs of a NodePool, of which so many run.
func (s *scene) limits(name, cpu, runs string) {
	s.Helper()
	s.Change(nodePool(name), func(o *unstructured.Unstructured) {
		s.must(unstructured.SetNestedField(o.Object, cpu, "spec", "limits", "cpu"))
	})
	s.Status(nodePool(name), object{"conditions": []any{condition("Ready", "True", "Ready", start)}, "resources": object{"cpu": runs}})
}

// says adds an event of Karpenter about a pod or a NodeClaim.
func (s *scene) says(about object, reason, message string, at time.Duration) {
	s.Helper()
	name := about["metadata"].(object)["name"].(string)
	of := object{"kind": about["kind"], "name": name}
	if about["kind"] == "Pod" {
		of["uid"], of["namespace"] = string(s.Get(about).GetUID()), "default"
	}
	s.Create(object{"apiVersion": "v1", "kind": "Event", "reason": reason, "message": message, "lastTimestamp": stamp(at),
		"metadata":       object{"name": strings.ToLower(fmt.Sprint(name, reason, at)), "namespace": "default"},
		"involvedObject": of, "source": object{"component": "karpenter"}, "type": "Warning"})
}

// told returns the detail types of the events so far.
func (s *scene) told() (all []string) {
	for _, e := range s.cloud.Events.Sent {
		all = append(all, *e.DetailType)
	}
	return all
}

const (
	minute = time.Minute
	limit  = `Failed to schedule pod, did not tolerate taint (taint=dedicated=build:NoSchedule); all available instance types exceed ` +
		`limits for nodepool (NodePool=workload)`
	small = `Failed to schedule pod, no instance type has enough resources, requirements=convox.io/nodepool In [workload], ` +
		`karpenter.sh/nodepool In [workload], kubernetes.io/arch In [amd64], resources={"cpu":"2","pods":"1"}`
	taint = "Failed to schedule pod, did not tolerate taint (taint=dedicated=build:NoSchedule)"
)

func TestWhyPodsWait(t *testing.T) {
	fleet := "NodeClaim workload-abcde event: creating instance, insufficient capacity, with fleet error(s), "
	gone := object{"kind": "NodeClaim", "metadata": object{"name": "workload-abcde"}}
	for what, c := range map[string]struct {
		says     func(s *scene, pod object)
		cause    events.Cause
		reason   string
		degraded bool
	}{
		"the pool's limit": {func(s *scene, pod object) { s.says(pod, "FailedScheduling", limit, 9*minute) },
			events.CauseLimit, "exceed limits for nodepool (NodePool=workload)", true},
		"the pool's limit of nodes": {func(s *scene, pod object) {
			s.says(pod, "FailedScheduling", "Failed to schedule pod, node limits have been exhausted for nodepool (NodePool=workload)", 9*minute)
		}, events.CauseLimit, "exhausted for nodepool (NodePool=workload)", true},
		"the limit of a pool that retires": {func(s *scene, pod object) {
			retiring := nodePool("old")
			retiring["metadata"].(object)["labels"].(object)[ownership.Retiring] = "true"
			s.Create(retiring)
			s.Create(claim("old-abcde", "old", "1", "1"))
			s.says(pod, "FailedScheduling", "Failed to schedule pod, incompatible requirements, key app; all available instance types exceed "+
				"limits for nodepool (NodePool=old)", 9*minute)
		}, events.CauseUnfit, "key app", false},
		"the rest of the pool's limit": {func(s *scene, pod object) {
			s.limits("workload", "10", "9")
			s.says(pod, "FailedScheduling", small, 9*minute)
		}, events.CauseLimit, "the limit of NodePool workload leaves 1 of cpu: karpenter: FailedScheduling: " + small, true},
		"no instance type is large enough": {func(s *scene, pod object) {
			s.limits("workload", "1000", "9")
			s.says(pod, "FailedScheduling", small, 9*minute)
		}, events.CauseUnfit, "enough resources", false},
		"a quota": {func(s *scene, pod object) {
			s.says(pod, "Nominated", "Pod should schedule on: nodeclaim/workload-abcde", 8*minute)
			s.says(gone, "InsufficientCapacityError",
				fleet+"VcpuLimitExceeded: You have requested more (aws-error-code=UnfulfillableCapacity)", 8*minute)
			s.says(gone, "InsufficientCapacityError", "all requested instance types were unavailable during launch", 9*minute)
			s.says(pod, "FailedScheduling", taint, 9*minute) // Karpenter leaves out the pool whose types EC2 has refused
		}, events.CauseRefused, "karpenter: InsufficientCapacityError: creating instance, insufficient capacity, with fleet error(s), " +
			"VcpuLimitExceeded: You have requested more", true},
		"no capacity": {func(s *scene, pod object) {
			s.says(gone, "InsufficientCapacityError", fleet+"InsufficientInstanceCapacity: none", 8*minute)
			s.says(pod, "FailedScheduling", "Failed to schedule pod, no instance type has the required offering", 9*minute)
		}, events.CauseCapacity, "InsufficientInstanceCapacity: none", true},
		"a right": {func(s *scene, pod object) {
			unauthorized := claim("workload-fghij", "workload", "1", "1")
			s.Create(unauthorized)
			s.Status(unauthorized, object{"conditions": []any{condition("Launched", "Unknown", "Unauthorized", start)}})
			s.says(pod, "Nominated", "Pod should schedule on: nodeclaim/workload-fghij", 8*minute)
		}, events.CauseRefused, "NodeClaim: Launched=Unknown Unauthorized", true},
		"no pool fits, though EC2 refuses what another pod asks for": {func(s *scene, pod object) {
			s.says(gone, "InsufficientCapacityError", fleet+"VcpuLimitExceeded: more", 8*minute)
			s.says(pod, "FailedScheduling", "Failed to schedule pod, incompatible requirements, key zone", 9*minute)
		}, events.CauseUnfit, "incompatible requirements, key zone", false},
		"it is to come": {func(s *scene, pod object) {
			s.says(pod, "FailedScheduling", limit, 7*minute)
			s.says(pod, "Nominated", "Pod should schedule on: nodeclaim/workload-abcde", 8*minute)
		}, events.CauseStarting, "Pod should schedule on", false},
		"nobody says": {func(s *scene, pod object) { s.says(pod, "FailedScheduling", limit, -9*minute) },
			events.CauseSilent, "the scheduler: Unschedulable it is", true},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, "workload")
			c.says(s, s.waits("web", 0, nil))
			status := s.after(10 * minute)
			want := outcome.StateReconciled
			if c.degraded {
				want = outcome.StateDegraded
			}
			if len(status.Waiting) != 1 || status.State != want {
				t.Fatalf("%s, %+v", status.State, status.Waiting)
			}
			got := status.Waiting[0]
			if !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%s, want %s", got.Reason, c.reason)
			}
			got.Reason = ""
			if want := (events.Wait{Cause: c.cause, Pods: 1, Oldest: "default/web", Since: stamp(0)}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if warns := len(status.Warnings) == 1; warns != (c.cause == events.CauseUnfit) {
				t.Errorf("warnings %+v", status.Warnings)
			}
			s.measures(`"WaitingPods":1`, 1)
		})
	}
}

// Karpenter says of some ten pods of a burst which node they are to have, and nothing of the others.
func TestPodsOfABurst(t *testing.T) {
	s := begin(t, "workload")
	one := s.waits("one", 0, nil)
	s.waits("other", 0, nil)
	s.says(one, "Nominated", "Pod should schedule on: nodeclaim/workload-abcde", 9*minute)
	status := s.after(10 * minute)
	if w := status.Waiting; status.State != outcome.StateReconciled || len(w) != 1 || w[0].Cause != events.CauseStarting || w[0].Pods != 2 {
		t.Errorf("%s, %+v", status.State, w)
	}
	t.Log("of one that came at another time, its silence means something")
	s.waits("later", 3*minute, nil)
	status = s.after(14 * minute)
	if w := status.Waiting; status.State != outcome.StateDegraded || len(w) != 2 || w[0].Cause != events.CauseSilent || w[0].Pods != 1 {
		t.Errorf("%s, %+v", status.State, w)
	}
}

// Karpenter says nothing about pods that require nodes without a NodePool, and does not have to.
func TestPodsThatAvoidKarpenter(t *testing.T) {
	s := begin(t, "workload")
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web", "namespace": "default"}, "spec": object{
		"containers": []any{object{"name": "web", "image": "web"}},
		"affinity": object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{
			object{"matchExpressions": []any{object{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}}}}}}}}}
	s.Create(pod)
	s.Status(pod, object{"phase": "Pending", "conditions": []any{condition("PodScheduled", "False", "Unschedulable", start)}})
	if status := s.after(10 * minute); status.State != outcome.StateReconciled || len(status.Waiting) != 1 ||
		status.Waiting[0].Cause != events.CauseUnfit || !strings.HasPrefix(status.Waiting[0].Reason, "it takes no node of a NodePool") {
		t.Errorf("%s, %+v", status.State, status.Waiting)
	}
}

// Pods are counted after ten minutes, and those that wait for no node of Karpenter's never. One event tells that a rack is
// degraded, however long it is, and one that it has recovered by itself. What stays as it is is not written again.
func TestPodsThatWait(t *testing.T) {
	s := begin(t, "workload")
	first, second := s.waits("first", minute, nil), s.waits("second", 2*minute, nil)
	s.waits("agent", 0, object{"ownerReferences": []any{
		object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true}}})
	for _, pod := range []object{first, second} {
		s.says(pod, "FailedScheduling", limit, 10*minute)
	}
	if status := s.after(10 * minute); len(status.Waiting) > 0 || status.State != outcome.StateReconciled {
		t.Errorf("%s, %+v", status.State, status.Waiting)
	}
	s.measures("WaitingPods", 0)
	rolledOut := []string{events.TypeRolledOut}
	written := 0
	for _, at := range []time.Duration{15 * minute, 18 * minute} {
		status := s.after(at)
		if w := status.Waiting; len(w) != 1 || w[0].Pods != 2 || w[0].Oldest != "default/first" || status.State != outcome.StateDegraded {
			t.Errorf("%s, %+v", status.State, w)
		}
		if told := s.told(); !slices.Equal(told, append(rolledOut, events.TypeDegraded)) {
			t.Errorf("told %q", told)
		}
		if at > 15*minute && len(s.written()) != written {
			t.Errorf("written again: %q", s.written())
		}
		written = len(s.written())
	}
	s.Remove(first)
	s.Remove(second)
	status := s.after(25 * minute)
	if status.State != outcome.StateReconciled || len(status.Waiting) > 0 {
		t.Errorf("%s, %+v", status.State, status.Waiting)
	}
	if told := s.told(); !slices.Equal(told, append(rolledOut, events.TypeDegraded, events.TypeRecovered)) {
		t.Errorf("told %q", told)
	}
	s.measures(`"OutOfLine":0`, 1)
}

// What a rack is degraded by is in the event.
func TestTheEventOfADegradedRack(t *testing.T) {
	rack := store.Rollout{Rack: "demo", Generation: 7, Pools: store.Pools{{Pool: "a"}, {Pool: "b", Reason: "r"}},
		Waiting: store.Waiting{{Cause: events.CauseLimit, Pods: 3}}}
	if got := degraded(rack); len(got.Pools) != 1 || got.Pools[0] != (events.DegradedPool{Pool: "b", Reason: "r"}) || len(got.Waiting) != 1 {
		t.Errorf("%+v", got)
	}
}
