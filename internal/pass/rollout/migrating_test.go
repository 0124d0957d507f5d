package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// node adds a Ready node of a node group.
func (s *scene) node(name, group string) object {
	node := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": object{ownership.LabelNodeGroup: group}}}
	s.Create(node)
	s.Status(node, object{"allocatable": object{"cpu": "2", "pods": "20"}, "conditions": []any{object{"type": "Ready", "status": "True"}}})
	return node
}

// The node check counts the nodes of groups that are emptied, says what holds the present one, and requests a pass whenever the next
// step can be taken, but not while a brake is in force, while a pass runs, or once Karpenter is to be off.
func TestAMigration(t *testing.T) {
	s := begin(t, "workload")
	record, err := s.rollout.Store.Rollout(t.Context(), "demo")
	s.must(err)
	record.Migration = plan.Migration{Groups: []string{"apps"}, Others: []string{"system"}, Keep: 1}
	s.must(s.rollout.Store.SaveRollout(t.Context(), *record))
	records := func(of plan.Records) { s.must(s.rollout.Store.SaveRecords(t.Context(), "demo", of)) }
	records(plan.Records{Goal: plan.GoalKarpenter})
	other := s.node("system-1", "system")
	apps := s.node("apps-1", "apps")
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "db", "namespace": "default"},
		"spec": object{"nodeName": "apps-1", "containers": []any{object{"name": "c", "image": "i"}}}}
	s.Create(pod)
	is := func(after time.Duration, want *store.Migrating, requested int) {
		t.Helper()
		status := s.after(after)
		if got := status.Migrating; (got == nil) != (want == nil) || got != nil && *got != *want || len(s.requested) != requested {
			t.Errorf("%+v, requested %v; want %+v, %d", got, s.requested, want, requested)
		}
	}
	held := "pod default/db on node apps-1 belongs to no controller that would start it elsewhere; delete it, if it is not needed"
	is(5*time.Minute, &store.Migrating{Groups: 1, Nodes: 1, Held: held, Since: stamp(5 * time.Minute)}, 1) // to begin with the node
	s.Change(apps, func(node *unstructured.Unstructured) {
		node.SetAnnotations(map[string]string{ownership.AnnotationMigrating: "emptying"})
		s.must(unstructured.SetNestedField(node.Object, true, "spec", "unschedulable"))
	})
	is(10*time.Minute, &store.Migrating{Groups: 1, Nodes: 1, Held: held, Since: stamp(5 * time.Minute)}, 1)
	s.Remove(pod)
	is(15*time.Minute, &store.Migrating{Groups: 1, Nodes: 1}, 2)
	records(plan.Records{Goal: plan.GoalKarpenter, Paused: true})
	is(20*time.Minute, &store.Migrating{Groups: 1, Nodes: 1, Held: "paused", Since: stamp(20 * time.Minute)}, 2)
	records(plan.Records{Goal: plan.GoalAccess})
	is(25*time.Minute, &store.Migrating{Groups: 1, Nodes: 1}, 2)
	records(plan.Records{Goal: plan.GoalKarpenter})
	s.leased(start.Add(32 * time.Minute))
	is(30*time.Minute, &store.Migrating{Groups: 1, Nodes: 1}, 2)
	is(35*time.Minute, &store.Migrating{Groups: 1, Nodes: 1}, 3)
	s.must(outcome.Record(t.Context(), s.rollout.Store.Contests().Replace, "demo", outcome.BaselineMigrated("apps"),
		outcome.Contest{Written: start, Noticed: true}))
	held = "somebody sets the size of node group apps back; the warnings of migrate_node_groups say more"
	is(40*time.Minute, &store.Migrating{Groups: 1, Nodes: 1, Held: held, Since: stamp(40 * time.Minute)}, 3)
	is(25*time.Hour, &store.Migrating{Groups: 1, Nodes: 1}, 4)
	t.Log("the system needs the node that is being emptied")
	s.Remove(other)
	records(plan.Records{Goal: plan.GoalKarpenter, Held: true})
	is(26*time.Hour, nil, 4)
	records(plan.Records{Goal: plan.GoalKarpenter})
	is(27*time.Hour, nil, 5)
	s.Remove(apps)
	is(28*time.Hour, nil, 5)
}
