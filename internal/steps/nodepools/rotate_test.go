package nodepools

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Nodes that are old get a hash that is not their NodePool's, and with the parameter gone they have their own again. Nothing is marked
// under a freeze, and nothing of others.
func TestRotation(t *testing.T) {
	wclass, wpool := class("workload", "demo"), pool("workload", "demo", "100")
	s := begin(t, wclass, wpool)
	s.waits("NodePool/workload", "created EC2NodeClass/workload", "created NodePool/workload")
	s.ready(wclass, wpool)
	hashes := func(hash, version string) object {
		return object{ownership.NodePoolHash: hash, ownership.NodePoolHashVersion: version}
	}
	a, b, unhashed, theirs := claim("a", "workload", hashes("7", "v3")), claim("b", "workload", hashes("6", "v3")),
		claim("unhashed", "workload", nil), claim("theirs", "theirs", hashes("7", "v3"))
	for _, o := range []object{a, unhashed, theirs} {
		s.Create(o)
	}
	created := s.Create(b).GetCreationTimestamp().Time
	has := func(o object, hash, own, label string) {
		t.Helper()
		live := s.Get(o)
		if is := live.GetAnnotations(); is[ownership.NodePoolHash] != hash || is[ownership.AnnotationHash] != own ||
			live.GetLabels()[ownership.Rotating] != label {
			t.Errorf("%s has %v %v", o["metadata"].(object)["name"], is, live.GetLabels())
		}
	}

	t.Log("a node that is younger is left alone; so is an older one while the rack is frozen, or nothing is to rotate")
	s.clock = created.Add(10*time.Hour - 2*time.Second)
	s.plan.NodePools.RotateAfter = "10h"
	s.done()
	s.clock = created.Add(10 * time.Hour)
	s.plan.NodePools.RotateAfter = ""
	s.done()
	s.plan.NodePools.RotateAfter, s.plan.NodePools.Frozen = "10h", true
	s.waits("NodePool/workload", "updated NodePool/workload")
	s.ready(wpool)
	s.done()
	s.plan.NodePools.Frozen = false
	s.waits("NodePool/workload", "updated NodePool/workload")
	s.ready(wpool)

	s.done("rotates NodeClaim/a", "rotates NodeClaim/b")
	has(a, ownership.Rotated, "v3/7", "true")
	has(b, ownership.Rotated, "v3/6", "true")
	has(theirs, "7", "", "")
	s.done()

	t.Log("Karpenter has another hash function: what it wrote is kept, and marked again")
	s.Change(a, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{
			ownership.NodePoolHash: "70", ownership.NodePoolHashVersion: "v4", ownership.AnnotationHash: "v3/7",
		})
	})
	s.done("rotates NodeClaim/a")
	has(a, ownership.Rotated, "v4/70", "true")
	t.Log("it leaves the hash of a drifted node as it is: the node gets that of its NodePool")
	s.Change(b, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{
			ownership.NodePoolHash: ownership.Rotated, ownership.NodePoolHashVersion: "v4", ownership.AnnotationHash: "v3/6",
		})
	})
	s.Change(wpool, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{ownership.NodePoolHash: "80", ownership.NodePoolHashVersion: "v4"})
	})
	s.plan.NodePools.RotateAfter = "11h"
	s.done("rotates no more NodeClaim/a", "rotates no more NodeClaim/b")
	has(a, "70", "", "")
	has(b, "80", "", "")
	s.plan.NodePools.RotateAfter = "10h"
	s.done("rotates NodeClaim/a", "rotates NodeClaim/b")
	s.plan.NodePools.RotateAfter = ""
	s.done("rotates no more NodeClaim/a", "rotates no more NodeClaim/b")
	has(a, "70", "", "")
	s.done()
}
