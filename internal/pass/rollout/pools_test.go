package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func TestNodesFollowAChange(t *testing.T) {
	s := begin(t, "build", "workload")
	s.runs(claim("old-1", "workload", "0", "1"))
	s.runs(claim("old-2", "workload", "1", "0"))
	s.runs(claim("new", "workload", "1", "1"))
	s.runs(claim("builder", "build", "1", "1"))
	status := s.after(5 * time.Minute)
	s.shows(status, outcome.StateReconciled, store.Pool{Pool: "workload", Nodes: 3, Ready: true, Outdated: 2, Since: stamp(5 * time.Minute)},
		store.Pool{Pool: "build", Nodes: 1, Ready: true})
	if want := (store.Progress{Generation: 7, Started: stamp(-20 * time.Second)}); *status.Rollout != want || len(s.sent()) > 0 {
		t.Errorf("%+v, want %+v; sent %v", *status.Rollout, want, s.sent())
	}
	s.Remove(claim("old-1", "workload", "", ""))
	s.shows(s.after(10*time.Minute), outcome.StateReconciled,
		store.Pool{Pool: "workload", Nodes: 2, Ready: true, Outdated: 1, Since: stamp(5 * time.Minute)},
		store.Pool{Pool: "build", Nodes: 1, Ready: true})
	s.Remove(claim("old-2", "workload", "", ""))
	status = s.after(15 * time.Minute)
	s.shows(status, outcome.StateReconciled,
		store.Pool{Pool: "build", Nodes: 1, Ready: true}, store.Pool{Pool: "workload", Nodes: 1, Ready: true})
	if status.Rollout.Ended != stamp(15*time.Minute) {
		t.Errorf("%+v", status.Rollout)
	}
	want := events.RolledOut{Rack: "demo", Generation: 7, Execution: "arn:x", DurationSeconds: 920,
		Pools: events.List[events.RolledOutPool]{{Pool: "build", Nodes: 1}, {Pool: "workload", Nodes: 1}}}
	if got := s.sent(); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("sent %+v, want %+v", got, want)
	}
	// Later drift is reported, and is not another rollout of this generation.
	s.runs(claim("drifted", "workload", "1", "1"), condition("Drifted", "True", "AMIDrift", start.Add(17*time.Minute)))
	if p := s.pool(s.after(20*time.Minute), "workload"); p.Outdated != 1 || p.Since != stamp(17*time.Minute) {
		t.Errorf("%+v", p)
	}
	s.Remove(claim("drifted", "workload", "", ""))
	if p := s.pool(s.after(25*time.Minute), "workload"); p.Outdated != 0 || p.Since != "" || len(s.sent()) != 1 {
		t.Errorf("%+v, sent %v", p, s.sent())
	}
}

// Hashes of another version of Karpenter's hash function cannot be compared.
func TestHashesOfAnotherVersion(t *testing.T) {
	s := begin(t, "workload")
	s.Change(nodePool("workload"), annotate("karpenter.sh/nodepool-hash-version", "v4"))
	s.Change(class("workload"), annotate("karpenter.k8s.aws/ec2nodeclass-hash-version", "v5"))
	s.runs(claim("a", "workload", "0", "0"))
	if status := s.after(5 * time.Minute); s.pool(status, "workload").Outdated != 0 || len(s.sent()) != 1 {
		t.Errorf("%+v", status.Pools)
	}
}

// Karpenter takes seconds to find out what a change makes outdated.
func TestRightAfterAPassNothingIsRolledOut(t *testing.T) {
	s := begin(t, "workload")
	if s.after(59 * time.Second); len(s.sent()) > 0 {
		t.Error("rolled out after less than a minute")
	}
	if s.after(time.Minute); len(s.sent()) != 1 {
		t.Error("not rolled out after a minute")
	}
}

// The nodes of a pool that was deleted are counted until they are gone, and no rollout waits for them.
func TestAPoolThatWasRemoved(t *testing.T) {
	s := begin(t, "workload")
	s.Create(class("gone"))
	s.runs(claim("a", "gone", "1", "1"))
	status := s.after(5 * time.Minute)
	s.shows(status, outcome.StateReconciled, store.Pool{Pool: "gone", Nodes: 1, Ready: true, Retiring: 1, Since: stamp(5 * time.Minute)},
		store.Pool{Pool: "workload", Ready: true})
	if sent := s.sent(); len(sent) != 1 || len(sent[0].Pools) != 1 {
		t.Errorf("sent %v", sent)
	}
	s.Remove(class("gone")) // the pool is known from the last look
	if p := s.pool(s.after(10*time.Minute), "gone"); p.Retiring != 1 {
		t.Errorf("%+v", p)
	}
	s.Remove(claim("a", "gone", "", ""))
	if status := s.after(15 * time.Minute); len(status.Pools) != 1 || len(s.sent()) != 1 || len(s.requested) > 0 {
		t.Errorf("%+v", status.Pools)
	}
}

// A retiring pool says why its oldest node is still there, and leaves the status with its last node. The pass that removes it is
// requested once.
func TestARetiringPool(t *testing.T) {
	s := begin(t, "gpu", "workload")
	retiring := nodePool("gpu")
	retiring["metadata"].(object)["labels"].(object)[ownership.Retiring] = "true"
	s.Remove(nodePool("gpu"))
	s.Create(retiring) // not Ready, which does not matter any more
	for _, name := range []string{"a", "b"} {
		s.runs(claim(name, "gpu", "0", "1"))
	}
	s.says(named("NodeClaim", "a"), "DisruptionBlocked", "Node is nominated", 4*time.Minute)
	s.says(named("NodeClaim", "b"), "DisruptionBlocked", "of another node", 4*time.Minute)
	s.says(named("NodeClaim", "a"), "Launched", "of another kind", 4*time.Minute)
	gpu := store.Pool{Pool: "gpu", Nodes: 2, Ready: true, Retiring: 2, Held: "Node is nominated", Since: stamp(5 * time.Minute)}
	s.shows(s.after(5*time.Minute), outcome.StateReconciled, gpu, store.Pool{Pool: "workload", Ready: true})
	if sent := s.sent(); len(sent) != 1 || len(sent[0].Pools) != 1 {
		t.Errorf("sent %v", sent)
	}
	s.says(named("NodeClaim", "a"), "DisruptionBlocked", "Pdb prevents pod evictions", 6*time.Minute)
	gpu.Held = "Pdb prevents pod evictions"
	s.shows(s.after(10*time.Minute), outcome.StateReconciled, gpu, store.Pool{Pool: "workload", Ready: true})
	gpu.Held = "" // what was said is too old
	s.shows(s.after(20*time.Minute), outcome.StateReconciled, gpu, store.Pool{Pool: "workload", Ready: true})
	s.Remove(claim("a", "", "", ""))
	s.Remove(claim("b", "", "", ""))
	if len(s.requested) > 0 {
		t.Errorf("requested %+v", s.requested)
	}
	for _, minutes := range []time.Duration{25, 30} {
		s.shows(s.after(minutes*time.Minute), outcome.StateReconciled, store.Pool{Pool: "workload", Ready: true})
		if len(s.requested) != 1 || s.requested[0].Rack != "demo" || !s.requested[0].Full {
			t.Errorf("requested %+v", s.requested)
		}
	}
}

// Its last node may go before a look has seen that it retires: the pass is requested all the same, and once.
func TestARetiringPoolWithoutNodes(t *testing.T) {
	s := begin(t, "workload")
	s.after(5 * time.Minute)
	retiring := nodePool("gpu")
	retiring["metadata"].(object)["labels"].(object)[ownership.Retiring] = "true"
	s.Create(retiring)
	s.leased(start.Add(8 * time.Minute))
	if s.after(7 * time.Minute); len(s.requested) > 0 { // it would begin what it waits for again
		t.Errorf("while a pass runs: requested %+v", s.requested)
	}
	for _, minutes := range []time.Duration{10, 15, 20} {
		s.shows(s.after(minutes*time.Minute), outcome.StateReconciled, store.Pool{Pool: "workload", Ready: true})
		if len(s.requested) != 1 || s.requested[0].Reason != "the last node is gone of gpu" {
			t.Errorf("after %d minutes: requested %+v", minutes, s.requested)
		}
	}
	s.Remove(retiring)
	s.after(25 * time.Minute)
	s.Create(retiring) // written again, and taken away again
	if s.after(30 * time.Minute); len(s.requested) != 2 {
		t.Errorf("the second time: requested %+v", s.requested)
	}
}

// A pool of a pass that failed later is looked at as the others are.
func TestAPoolOfAPassThatFailed(t *testing.T) {
	s := begin(t, "workload")
	s.Create(class("gpu"))
	s.Create(nodePool("gpu"))
	s.ready("gpu", start)
	s.runs(claim("a", "gpu", "1", "1"))
	s.shows(s.after(5*time.Minute), outcome.StateReconciled,
		store.Pool{Pool: "gpu", Nodes: 1, Ready: true}, store.Pool{Pool: "workload", Ready: true})
}

// No pod waits for the nodes of a static pool. If EC2 refuses them, look after look, the rack is degraded all the same.
func TestAStaticPoolWhoseLaunchesFail(t *testing.T) {
	s := begin(t, "workload")
	static := nodePool("workload")
	static["spec"].(object)["replicas"] = 2
	s.Remove(static)
	s.Create(static)
	s.ready("workload", start)
	s.says(named("NodeClaim", "workload-abcde"), "InsufficientCapacityError", "VcpuLimitExceeded", 4*time.Minute)
	if status := s.after(5 * time.Minute); status.State != outcome.StateReconciled || s.pool(status, "workload").Since == "" {
		t.Errorf("at the first look: %+v", status)
	}
	s.says(named("NodeClaim", "workload-fghij"), "InsufficientCapacityError", "VcpuLimitExceeded", 9*time.Minute)
	status := s.after(10 * time.Minute)
	if p := s.pool(status, "workload"); status.State != outcome.StateDegraded || !strings.Contains(p.Reason, "VcpuLimitExceeded") {
		t.Errorf("at the next: %+v", status)
	}
	t.Log("where events cannot be listed, nothing is known to be better")
	listed := s.rollout.Dial
	s.without("/api/v1/events")
	s.clock = start.Add(12 * time.Minute)
	if _, err := s.rollout.Run(s.Context(), Event{}); err == nil || s.status().State != outcome.StateDegraded {
		t.Errorf("%v: %+v", err, s.status())
	}
	s.rollout.Dial = listed
	for _, name := range []string{"a", "b"} {
		s.runs(claim(name, "workload", "1", "1"))
	}
	status = s.after(15 * time.Minute)
	if p := s.pool(status, "workload"); status.State != outcome.StateReconciled || p.Reason+p.Since != "" || p.Nodes != 2 {
		t.Errorf("once they are there: %+v", status)
	}

	t.Log("one is outdated for an hour, and a launch fails in between")
	s.Remove(claim("a", "", "", ""))
	s.runs(claim("old", "workload", "0", "1"))
	s.after(20 * time.Minute)
	s.Remove(claim("b", "", "", ""))
	s.says(named("NodeClaim", "workload-klmno"), "InsufficientCapacityError", "VcpuLimitExceeded", 79*time.Minute)
	if status := s.after(80 * time.Minute); status.State != outcome.StateReconciled {
		t.Errorf("at the first look: %+v", status)
	}
}

func TestAPoolThatStopsBeingReady(t *testing.T) {
	s := begin(t, "build", "workload")
	if status := s.after(5 * time.Minute); status.State != outcome.StateReconciled || len(s.sent()) != 1 {
		t.Fatalf("%+v", status)
	}
	// Karpenter says why in the condition of the EC2NodeClass; the NodePool only says that its class is not Ready.
	s.Status(class("workload"), object{"conditions": []any{
		condition("SubnetsReady", "False", "SubnetsNotFound", start.Add(9*time.Minute+30*time.Second)),
		condition("Ready", "False", "UnreadyDependents", start.Add(9*time.Minute+30*time.Second))}})
	s.Status(nodePool("workload"), object{"conditions": []any{
		condition("Ready", "False", "NodeClassNotReady", start.Add(9*time.Minute+31*time.Second))}})
	status := s.after(10 * time.Minute)
	unready := store.Pool{Pool: "workload", Since: stamp(9*time.Minute + 30*time.Second)}
	s.shows(status, outcome.StateReconciled, unready, store.Pool{Pool: "build", Ready: true}) // for half a minute
	unready.Reason = "EC2NodeClass/workload: SubnetsReady=False SubnetsNotFound SubnetsNotFound it is; " +
		"Ready=False UnreadyDependents UnreadyDependents it is"
	s.shows(s.after(15*time.Minute), outcome.StateDegraded, unready, store.Pool{Pool: "build", Ready: true})
	s.measures(`"OutOfLine":1`, 1)
	s.measures(`"DegradedRacks":1`, 1)
	s.cloud.Forget()
	if s.after(20 * time.Minute); len(s.written()) > 0 { // the alarm's metric goes on, the status says it already
		t.Errorf("wrote %v", s.written())
	}
	s.measures(`"DegradedRacks":1`, 2)
	// That cause is mended, and there is another one. Its words are not written at each look, because they may change at each.
	s.Status(class("workload"), object{"conditions": []any{
		condition("ValidationSucceeded", "False", "Denied", start.Add(9*time.Minute+30*time.Second)),
		condition("Ready", "False", "UnreadyDependents", start.Add(9*time.Minute+30*time.Second))}})
	if s.after(25 * time.Minute); len(s.written()) > 0 {
		t.Errorf("wrote %v", s.written())
	}
	unready.Reason = "EC2NodeClass/workload: ValidationSucceeded=False Denied Denied it is; " +
		"Ready=False UnreadyDependents UnreadyDependents it is"
	s.shows(s.after(30*time.Minute), outcome.StateDegraded, unready, store.Pool{Pool: "build", Ready: true})
	s.measures(`"DegradedRacks":1`, 4)
	s.ready("workload", start.Add(32*time.Minute))
	s.shows(s.after(35*time.Minute), outcome.StateReconciled,
		store.Pool{Pool: "build", Ready: true}, store.Pool{Pool: "workload", Ready: true})
	s.measures(`"OutOfLine":0`, 1)
	s.measures(`"DegradedRacks":1`, 4)
	if len(s.sent()) != 1 {
		t.Errorf("sent %v", s.sent())
	}
}

// Somebody deletes an object of the rack, or Karpenter has not looked at its last change.
func TestWhatElseIsNotReady(t *testing.T) {
	for what, c := range map[string]struct {
		breaks func(*scene)
		want   string
	}{
		"no NodePool":     {func(s *scene) { s.Remove(nodePool("workload")) }, "NodePool/workload does not exist"},
		"no EC2NodeClass": {func(s *scene) { s.Remove(class("workload")) }, "EC2NodeClass/workload does not exist"},
		"nobody looks at it": {func(s *scene) {
			s.Status(nodePool("workload"), object{"conditions": []any{
				object{"type": "Ready", "status": "True", "observedGeneration": 1, "reason": "Ready", "message": "", "lastTransitionTime": stamp(0)}}})
			s.Change(nodePool("workload"), func(o *unstructured.Unstructured) {
				s.must(unstructured.SetNestedField(o.Object, "10", "spec", "limits", "cpu"))
			})
		}, "NodePool/workload: its controller has not looked at it yet"},
		"registration": {func(s *scene) {
			s.Status(nodePool("workload"), object{"conditions": []any{
				condition("Ready", "True", "Ready", start), condition("NodeRegistrationHealthy", "False", "RegistrationFailed", start)}})
		}, "NodePool/workload: NodeRegistrationHealthy=False RegistrationFailed RegistrationFailed it is"},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, "workload")
			s.after(5 * time.Minute)
			c.breaks(s)
			s.after(10 * time.Minute)
			if status := s.after(15 * time.Minute); status.State != outcome.StateDegraded || s.pool(status, "workload").Reason != c.want {
				t.Errorf("%s, %+v; want %s", status.State, status.Pools, c.want)
			}
		})
	}
}

func TestNodesThatDoNotRegister(t *testing.T) {
	s := begin(t, "workload")
	s.runs(claim("good", "workload", "1", "1"))
	s.after(5 * time.Minute)
	metal := claim("metal", "workload", "1", "1")
	metal["metadata"].(object)["labels"].(object)["node.kubernetes.io/instance-type"] = "m5.metal"
	s.launched(metal, start.Add(6*time.Minute))
	s.launched(claim("b-slow", "workload", "1", "1"), start.Add(6*time.Minute))
	s.launched(claim("a-slow", "workload", "1", "1"), start.Add(7*time.Minute))
	if status := s.after(9 * time.Minute); status.State != outcome.StateReconciled {
		t.Errorf("%s, %+v", status.State, status.Pools)
	}
	status := s.after(11 * time.Minute)
	want := store.Pool{Pool: "workload", Nodes: 4, Ready: true, Since: stamp(6 * time.Minute), Unregistered: 2,
		Reason: "2 of 4 nodes do not register: NodeClaim/a-slow: Registered=Unknown NodeNotFound NodeNotFound it is"}
	s.shows(status, outcome.StateDegraded, want)
	// Karpenter gives up on them and launches others. That they are young does not mean that they will register.
	s.Remove(metal)
	s.Remove(claim("a-slow", "workload", "", ""))
	s.Remove(claim("b-slow", "workload", "", ""))
	s.launched(claim("c", "workload", "1", "1"), start.Add(21*time.Minute))
	if status = s.after(22 * time.Minute); status.State != outcome.StateDegraded || s.pool(status, "workload").Since != stamp(6*time.Minute) {
		t.Errorf("%s, %+v", status.State, status.Pools)
	}
	s.Status(claim("c", "workload", "", ""), object{"conditions": []any{
		condition("Launched", "True", "Launched", start), condition("Registered", "True", "Registered", start)}})
	s.shows(s.after(27*time.Minute), outcome.StateReconciled, store.Pool{Pool: "workload", Nodes: 2, Ready: true})
}

// One node that does not register says nothing of young ones while others of its pool do.
func TestOneNodeOfABusyPoolDoesNotRegister(t *testing.T) {
	s := begin(t, "workload")
	slow := claim("slow", "workload", "1", "1")
	s.launched(slow, start)
	s.launched(claim("young-1", "workload", "1", "1"), start.Add(4*time.Minute))
	registers := func(name string, at time.Time) {
		s.Status(claim(name, "workload", "", ""), object{"conditions": []any{
			condition("Launched", "True", "Launched", at), condition("Registered", "True", "Registered", at)}})
	}
	if one := s.pool(s.after(5*time.Minute), "workload"); one.Unregistered != 1 {
		t.Errorf("%+v", one)
	}
	registers("young-1", start.Add(5*time.Minute))
	s.launched(claim("young-2", "workload", "1", "1"), start.Add(9*time.Minute))
	if one := s.pool(s.after(10*time.Minute), "workload"); one.Unregistered != 1 {
		t.Errorf("%+v", one)
	}
	registers("young-2", start.Add(10*time.Minute))
	s.Remove(slow)
	s.launched(claim("young-3", "workload", "1", "1"), start.Add(19*time.Minute))
	s.shows(s.after(20*time.Minute), outcome.StateReconciled, store.Pool{Pool: "workload", Nodes: 3, Ready: true})
}

// A pass that was rejected or failed has more to say than its pools.
func TestOtherStatesStay(t *testing.T) {
	for _, state := range []outcome.State{outcome.StateRejected, outcome.StateFailed, outcome.StatePaused} {
		s := begin(t)
		s.must(s.rollout.Store.EndRollout(s.Context(), "demo"))
		s.passEnded(state, "workload")
		s.after(5 * time.Minute)
		if status := s.after(10 * time.Minute); status.State != state || s.pool(status, "workload").Reason == "" {
			t.Errorf("%s: %s, %+v", state, status.State, status.Pools)
		}
		s.measures(`"OutOfLine":1`, 1)
	}
}
