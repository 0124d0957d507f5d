package rollout

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// A node that is replaced because of its age follows its parameters: it is rotating, and no rollout waits for it. One that is drifted for
// another reason too, or whose own hash is an older one, is outdated.
func TestRotatingNodes(t *testing.T) {
	s := begin(t, "workload")
	rotating := func(name, own string) object {
		o := claim(name, "workload", ownership.Rotated, "1")
		metadata := o["metadata"].(object)
		metadata["annotations"].(object)[ownership.AnnotationHash] = own
		metadata["labels"].(object)[ownership.Rotating] = "true"
		return o
	}
	s.runs(rotating("found", "v3/1"), condition("Drifted", "True", "NodePoolDrifted", start))
	s.runs(rotating("unfound", "v3/1"))
	s.runs(rotating("another-version", "v2/0"))
	s.shows(s.after(5*time.Minute), outcome.StateReconciled, store.Pool{Pool: "workload", Nodes: 3, Ready: true, Rotating: 3})
	if sent := s.sent(); len(sent) != 1 {
		t.Errorf("sent %v", sent)
	}
	s.runs(rotating("image", "v3/1"), condition("Drifted", "True", "AMIDrift", start.Add(6*time.Minute)))
	s.runs(rotating("older", "v3/0"), condition("Drifted", "True", "NodePoolDrifted", start.Add(7*time.Minute)))
	s.shows(s.after(10*time.Minute), outcome.StateReconciled,
		store.Pool{Pool: "workload", Nodes: 5, Ready: true, Rotating: 3, Outdated: 2, Since: stamp(6 * time.Minute)})
}
