package rollout

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// What keeps the oldest outdated node is said in Karpenter's words, whether they are about the node, its NodeClaim, or the NodeClaim that
// is to replace it.
func TestWhatHoldsANode(t *testing.T) {
	const claimed = "workload-abcde"
	for what, c := range map[string]struct{ kind, of, reason, message, want string }{
		"a PodDisruptionBudget": {"NodeClaim", claimed, "DisruptionBlocked",
			"Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"},
		"a pod that must not be disrupted": {"Node", "node-a", "DisruptionBlocked",
			`Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web)`, `Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web)`},
		"pods that do not end": {"Node", "node-a", "FailedDraining", "Failed to drain node, 2 pods are waiting to be evicted",
			"Failed to drain node, 2 pods are waiting to be evicted"},
		"no capacity": {"NodeClaim", "workload-fghij", "InsufficientCapacityError",
			"NodeClaim workload-fghij event: creating instance, insufficient capacity, InsufficientInstanceCapacity: none",
			"launches of the pool fail: karpenter: InsufficientCapacityError: creating instance, insufficient capacity, " +
				"InsufficientInstanceCapacity: none"},
		"nothing that Karpenter says": {"NodeClaim", claimed, "Launched", "launched", ""},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, "workload")
			outdated := claim(claimed, "workload", "0", "1")
			s.Create(outdated)
			s.Status(outdated, object{"nodeName": "node-a", "conditions": []any{
				condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}})
			s.says(named(c.kind, c.of), c.reason, c.message, 4*time.Minute)
			status := s.after(5 * time.Minute)
			if p := s.pool(status, "workload"); p.Held != c.want || p.Outdated != 1 || status.State != outcome.StateReconciled {
				t.Errorf("%s %+v, want %q", status.State, p, c.want)
			}
		})
	}
}

// Karpenter tries a launch that fails again and again, and says of the node meanwhile that a pod is to come there.
func TestANodeWhoseReplacementIsRefusedAgainAndAgain(t *testing.T) {
	s := begin(t, "workload")
	outdated := claim("workload-abcde", "workload", "0", "1")
	s.Create(outdated)
	s.Status(outdated, object{"nodeName": "node-a", "conditions": []any{
		condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}})
	s.says(named("NodeClaim", "workload-fghij"), "InsufficientCapacityError", "none", 3*time.Minute)
	s.says(named("Node", "node-a"), "DisruptionBlocked", "Node is nominated for a pending pod", 4*time.Minute)
	const want = "Node is nominated for a pending pod; launches of the pool fail: karpenter: InsufficientCapacityError: none"
	status := s.after(5 * time.Minute)
	if p := s.pool(status, "workload"); p.Held != want || p.Failing == "" || status.State != outcome.StateReconciled {
		t.Errorf("at the first look: %s %+v, want %q", status.State, p, want)
	}
	s.says(named("NodeClaim", "workload-klmno"), "InsufficientCapacityError", "none", 9*time.Minute)
	status = s.after(10 * time.Minute)
	if p := s.pool(status, "workload"); status.State != outcome.StateDegraded || !strings.HasSuffix(p.Reason, "CapacityError: none") {
		t.Errorf("at the next: %s %+v", status.State, p)
	}
	t.Log("Karpenter tries again")
	s.Status(outdated, object{"nodeName": "node-a", "conditions": []any{
		condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start),
		condition("DisruptionReason", "True", "Drifted", start)}})
	if status = s.after(15 * time.Minute); status.State != outcome.StateDegraded {
		t.Errorf("during an attempt: %s %+v", status.State, s.pool(status, "workload"))
	}
	t.Log("the replacement is launched")
	replacement := claim("workload-pqrst", "workload", "1", "1")
	s.Create(replacement)
	s.Status(replacement, object{"conditions": []any{condition("Launched", "True", "Launched", start.Add(16*time.Minute))}})
	status = s.after(17 * time.Minute)
	if p := s.pool(status, "workload"); status.State != outcome.StateReconciled || p.Reason+p.Failing != "" {
		t.Errorf("once it is: %s %+v", status.State, p)
	}
}

// One refusal, which two looks hear of, degrades nothing.
func TestALaunchThatIsRefusedOnce(t *testing.T) {
	s := begin(t, "workload")
	s.runs(claim("workload-abcde", "workload", "0", "1"))
	s.says(named("NodeClaim", "workload-fghij"), "InsufficientCapacityError", "none", 4*time.Minute)
	for _, minutes := range []time.Duration{5, 10, 15} {
		status := s.after(minutes * time.Minute)
		if p := s.pool(status, "workload"); status.State != outcome.StateReconciled || (p.Failing != "") != (minutes < 15) {
			t.Errorf("after %d minutes: %s %+v", minutes, status.State, p)
		}
	}
}

// A budget that lets no node go is what keeps one, and not that launches fail.
func TestARefusedLaunchBesideABrake(t *testing.T) {
	s := begin(t, "workload")
	frozen := nodePool("workload")
	frozen["spec"].(object)["disruption"] = object{"consolidateAfter": "5m", "budgets": []any{object{"nodes": "0"}}}
	s.Remove(frozen)
	s.Create(frozen)
	s.ready("workload", start)
	s.runs(claim("workload-abcde", "workload", "0", "1"))
	for _, minutes := range []time.Duration{5, 10} {
		s.says(named("NodeClaim", "workload-fghij"), "InsufficientCapacityError", "none", (minutes-1)*time.Minute)
		status := s.after(minutes * time.Minute)
		if p := s.pool(status, "workload"); status.State != outcome.StateReconciled || p.Failing != "" || p.Outdated != 1 {
			t.Errorf("%s %+v", status.State, p)
		}
	}
}

// The freeze, a disruption window and a budget are told apart, as they are at the time of the look. What Karpenter says of the node itself
// comes first, and a node that goes already is held by none of them.
func TestWhichBrakeHoldsANode(t *testing.T) {
	window := func(hour string) object { // the clock shows 03:09
		return object{"nodes": "0", "schedule": "0 " + hour + " * * *", "duration": "8h", "reasons": []any{"Drifted", "Underutilized"}}
	}
	nodes := func(n string) object { return object{"nodes": n} }
	frozenToo := []any{nodes("10%"), nodes("0")}
	const frozen = "the freeze (karpenter_freeze) lets no node go"
	const closed = "the disruption window is closed until 2026-01-02T11:00:00Z (budget nodes: 0, from 0 3 * * * (UTC) for 8h, for Drifted " +
		"and Underutilized)"
	const notReady = "budget nodes: 1 is used up: of 2 nodes 1 are not Ready"
	const usedUp = "budget nodes: 10% is used up: of 2 nodes 1 are going already"
	for what, c := range map[string]struct {
		workload, build []any  // budgets
		going           string // the NodeClaim that Karpenter has begun to replace
		notReady        string // the NodeClaim whose node is not Ready
		says            string // what Karpenter says of the outdated node
		want            string
	}{
		"none":                           {workload: []any{nodes("10%")}},
		"the freeze":                     {workload: []any{nodes("10%"), nodes("0")}, build: frozenToo, want: frozen},
		"the freeze and a window":        {workload: []any{window("3"), nodes("0")}, build: frozenToo, want: frozen + "; " + closed},
		"a budget of 0":                  {workload: []any{nodes("0")}, want: "budget nodes: 0 lets no node go"},
		"one of 0, and one of build":     {workload: []any{nodes("0")}, build: []any{nodes("0")}, want: "budget nodes: 0 lets no node go"},
		"one of 0 beside others":         {workload: []any{nodes("1"), nodes("0")}, want: "budget nodes: 0 lets no node go"},
		"one of 0%":                      {workload: []any{nodes("0%")}, want: "budget nodes: 0% lets no node go"},
		"one that is used up":            {workload: []any{nodes("10%")}, going: "b", want: usedUp},
		"one that has room":              {workload: []any{nodes("2")}, going: "b"},
		"a node that is not Ready":       {workload: []any{nodes("1")}, notReady: "b", want: notReady},
		"one that goes, and not Ready":   {workload: []any{nodes("2")}, going: "b", notReady: "b"},
		"none, though it is not Ready":   {workload: []any{nodes("2")}, notReady: "b"},
		"one for other reasons":          {workload: []any{object{"nodes": "0", "reasons": []any{"Empty"}}}},
		"a window that is closed":        {workload: []any{nodes("10%"), window("3")}, want: closed},
		"a window that is open":          {workload: []any{nodes("10%"), window("9")}},
		"a window, and Karpenter's word": {workload: []any{window("3")}, says: "Pdb prevents", want: "Pdb prevents; " + closed},
		"none, because it goes":          {workload: []any{nodes("0")}, going: "a"},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, "build", "workload")
			for pool, budgets := range map[string][]any{"workload": c.workload, "build": c.build} {
				if budgets != nil {
					s.Change(nodePool(pool), func(o *unstructured.Unstructured) {
						o.Object["spec"].(map[string]any)["disruption"].(map[string]any)["budgets"] = budgets
					})
				}
			}
			for name, hash := range map[string]string{"a": "0", "b": "1"} {
				conditions := []any{condition("Initialized", "True", "Initialized", start)}
				if name == c.going {
					conditions = append(conditions, condition("DisruptionReason", "True", "Drifted", start))
				}
				s.joins(claim(name, "workload", hash, "1"), name != c.notReady, conditions...)
			}
			s.says(named("NodePool", "workload"), "DisruptionBlocked", "No allowed disruptions for disruption reason Empty", 4*time.Minute)
			if c.says != "" {
				s.says(named("NodeClaim", "a"), "DisruptionBlocked", c.says, 4*time.Minute)
			}
			if p := s.pool(s.after(5*time.Minute), "workload"); p.Held != c.want || p.Outdated != 1 {
				t.Errorf("%+v, want %q", p, c.want)
			}
		})
	}
}

// Where the list of nodes fails, what waits is reported all the same.
func TestNodesThatCannotBeListed(t *testing.T) {
	s := begin(t, "workload")
	s.Change(nodePool("workload"), func(o *unstructured.Unstructured) {
		o.Object["spec"].(map[string]any)["disruption"].(map[string]any)["budgets"] = []any{object{"nodes": "1"}}
	})
	s.joins(claim("a", "workload", "0", "1"), true, condition("Initialized", "True", "Initialized", start))
	s.joins(claim("b", "workload", "1", "1"), false, condition("Initialized", "True", "Initialized", start))
	s.says(s.waits("web", 0, nil), "FailedScheduling", taint, 9*minute)
	s.without("/api/v1/nodes")
	status := s.after(10 * minute)
	if p := s.pool(status, "workload"); p.Outdated != 1 || p.Held != "" || len(status.Waiting) != 1 {
		t.Errorf("%+v, %+v", p, status.Waiting)
	}
}

// without makes a list of the API server fail from now on.
func (s *scene) without(path string) {
	config := s.As(ownership.Group("rollout"))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return without{next, path} })
	s.rollout.Dial = func(context.Context, plan.Cluster) (*k8s.Client, error) { return k8s.New("demo", config) }
}

// without is an API server that fails to answer at a path.
type without struct {
	http.RoundTripper
	path string
}

func (w without) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == w.path {
		return nil, errors.New(w.path + " cannot be read")
	}
	return w.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the transport, to close its idle connections.
func (w without) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }
