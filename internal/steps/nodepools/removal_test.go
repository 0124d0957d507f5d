package nodepools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// tagged returns the tags that Karpenter gives an instance of a pool of the cluster east (its pkg/utils, GetTags).
func tagged(pool string, more ...string) map[string]string {
	tags := map[string]string{"karpenter.sh/nodepool": pool, "karpenter.k8s.aws/ec2nodeclass": pool, "eks:eks-cluster-name": "east",
		"kubernetes.io/cluster/east": "owned", "Name": "demo/karpenter/" + pool, "Rack": "demo"}
	for i := 0; i < len(more); i += 2 {
		if tags[more[i]] = more[i+1]; more[i+1] == "" {
			delete(tags, more[i])
		}
	}
	return tags
}

// launched returns a NodeClaim whose instance runs.
func launched(name, pool, id string) object {
	made := claim(name, pool, object{})
	made["status"] = object{"providerID": "aws:///us-east-1a/" + id, "nodeName": "node-" + name}
	return made
}

func node(name, pool, id string) object {
	return object{"apiVersion": "v1", "kind": "Node", "metadata": object{
		"name": name, "labels": object{"karpenter.sh/nodepool": pool}, "finalizers": []any{"karpenter.sh/termination"},
	},
		"spec": object{"providerID": "aws:///us-east-1a/" + id}}
}

// down returns a rack with two nodes and no running controller: nothing drains nodes or removes finalizers.
func down(t *testing.T) *scene {
	s := begin(t)
	s.clock = time.Now().UTC().Truncate(time.Second) // the API server's own clock sets deletion timestamps
	s.build("a", "b")
	return s
}

func (s *scene) build(claims ...string) {
	wclass := class("workload", "demo")
	wclass["metadata"].(object)["finalizers"] = []any{"karpenter.k8s.aws/termination"}
	s.Create(wclass)
	s.Create(pool("workload", "demo", "100"))
	for _, name := range claims {
		s.Create(launched(name, "workload", "i-"+name))
		s.Create(node("node-"+name, "workload", "i-"+name))
		s.cloud.EC2.Launch(tagged("workload"), "i-"+name)
	}
}

// call runs the step once and returns its changes.
func (s *scene) call() (string, outcome.Progress) {
	s.Helper()
	progress, err := s.step.Run(context.Background(), s.plan, "")
	if err != nil {
		s.Fatal(err)
	}
	var changes []string
	for _, c := range progress.Changes {
		changes = append(changes, c.Action+" "+c.Subject)
	}
	return strings.Join(changes, "; "), progress
}

// finished runs the step until it waits for nothing, while time passes. It returns all changes and the last call's
// warnings.
func (s *scene) finished() (string, string) {
	s.Helper()
	var all []string
	for range 40 {
		changes, progress := s.call()
		if changes != "" {
			all = append(all, changes)
		}
		if progress.Wait == 0 {
			return strings.Join(all, "; "), warnings(progress)
		}
		s.clock = s.clock.Add(30 * time.Second)
	}
	s.Fatal("not finished after 40 calls")
	return "", ""
}

func warnings(progress outcome.Progress) string {
	var all []string
	for _, w := range slices.Concat(progress.Incidents, progress.Warnings) {
		all = append(all, w.Message)
	}
	return strings.Join(all, " ")
}

func TestWhatKarpenterDoesNotEndIsEnded(t *testing.T) {
	s := down(t)
	for id, tags := range map[string]map[string]string{
		// known by the pool, and by the name that the EC2NodeClass gave it
		"i-orphan": tagged("workload"), "i-renamed": tagged("gone-since"),
		"i-other-cluster": tagged("workload", "eks:eks-cluster-name", "west", "kubernetes.io/cluster/west", "owned"),
		"i-half":          tagged("workload", "kubernetes.io/cluster/east", ""), "i-no-pool": tagged("", "karpenter.sh/nodepool", ""),
		"i-theirs": tagged("theirs", "Name", "theirs"),
	} {
		s.cloud.EC2.Launch(tags, id)
	}
	window, last := s.clock.Add(5*time.Minute).Format(time.RFC3339), s.clock.Add(7*time.Minute).Format(time.RFC3339)
	s.waits("2 NodeClaim(s) draining: a, b, until "+window+"; Karpenter ends them then, and at "+last+
		" Sawhorse ends through EC2 what is left",
		"deleted NodePool/workload", "draining until "+window+" NodeClaim/a", "draining until "+window+" NodeClaim/b")

	t.Log("until two minutes after the drain window it is Karpenter's turn, also in later passes")
	s.clock = s.clock.Add(7*time.Minute - time.Second)
	s.step = &Step{
		Connect: s.step.Connect, EC2: s.cloud.EC2, Checkpoints: s.checkpoints, Contests: s.contests, Drain: 5 * time.Minute, Now: s.step.Now,
	}
	s.waits("2 NodeClaim(s): a, b, for which the time to drain ended at "+window+": Karpenter ends them, and at "+last+
		" Sawhorse ends through EC2 what is left",
		"deleted NodeClaim/a", "deleted NodeClaim/b")
	if got := s.cloud.EC2.States(); strings.Contains(got, "shutting-down") {
		t.Fatalf("too early: %s", got)
	}

	t.Log("then what is tagged for this cluster and a pool of ours is terminated")
	s.clock = s.clock.Add(time.Second)
	s.waits("4 instance(s) ending: i-a, i-b, i-orphan, i-renamed", "terminated instance i-a (pool workload, NodeClaim a)",
		"terminated instance i-b (pool workload, NodeClaim b)", "terminated instance i-orphan (pool workload)",
		"terminated instance i-renamed (pool gone-since)")

	t.Log("NodeClaims are let go only when their instances' end is confirmed")
	s.waits("instance(s) ending")
	if s.Get(claim("a", "", nil)) == nil || s.Get(node("node-a", "", "")) == nil {
		t.Error("a NodeClaim or a Node has gone before its instance")
	}
	s.waits("2 NodeClaim(s) being let go: a, b", "finalizer removed Node/node-a", "deleted Node/node-a", "finalizer removed Node/node-b",
		"deleted Node/node-b",
		"finalizer removed NodeClaim/a", "finalizer removed NodeClaim/b")

	t.Log("the class has two minutes of its own from its deletion; then all is over, and said")
	s.waits("EC2NodeClass/workload", "deleted EC2NodeClass/workload")
	changes, warned := s.finished()
	if changes != "finalizer removed EC2NodeClass/workload" {
		t.Errorf("changes %s", changes)
	}
	for _, want := range []string{"i-a (pool workload, NodeClaim a), i-b (pool workload, NodeClaim b), i-orphan (pool workload), " +
		"i-renamed (pool gone-since)",
		"EC2NodeClass/workload, NodeClaim/a, NodeClaim/b"} {
		if !strings.Contains(warned, want) {
			t.Errorf("the warnings do not name %s: %s", want, warned)
		}
	}
	want := "i-a=terminated i-b=terminated i-half=running i-no-pool=running i-orphan=terminated i-other-cluster=running " +
		"i-renamed=terminated i-theirs=running"
	if got := s.cloud.EC2.States(); got != want || len(s.checkpoints.Kept) > 0 {
		t.Errorf("%s, baselines %v", got, s.checkpoints.Kept)
	}
	s.cloud.Forget()
	if s.done(); len(s.cloud.Writes()) > 0 {
		t.Errorf("a second run wrote %v", s.cloud.Writes())
	}
}

// A working controller ends everything itself. Sawhorse then forces nothing and warns of nothing.
func TestKarpenterDoesItsWork(t *testing.T) {
	s := down(t)
	s.call()
	for _, name := range []string{"a", "b"} {
		s.cloud.EC2.Instances["i-"+name].State = types.InstanceStateNameShuttingDown
		s.Remove(node("node-"+name, "", ""))
		s.Remove(claim(name, "", nil))
	}
	s.waits("EC2NodeClass/workload", "deleted EC2NodeClass/workload")
	s.Remove(class("workload", ""))
	s.cloud.Forget()
	if changes, warned := s.finished(); changes != "" || warned != "" || len(s.checkpoints.Kept) > 0 {
		t.Errorf("changes %s, warnings %s, baselines %v", changes, warned, s.checkpoints.Kept)
	}
	if slices.ContainsFunc(s.cloud.Writes(), func(w string) bool { return strings.HasPrefix(w, "EC2.") }) {
		t.Errorf("writes %v", s.cloud.Writes())
	}
}

// Instances without a NodeClaim are found at the end. The step waits for an instance whose node is being deleted.
func TestOrphansAreTerminatedAtTheEnd(t *testing.T) {
	s := begin(t)
	s.cloud.EC2.Launch(tagged("workload"), "i-1")
	s.cloud.EC2.Launch(tagged("gpu"), "i-2")
	s.cloud.EC2.Launch(tagged("theirs", "Name", "x"), "i-3")
	s.Create(node("ghost", "workload", "i-1"))
	s.Create(node("labelled-by-hand", "workload", "i-3"))
	changes, warned := s.finished()
	if changes != "terminated instance i-1 (pool workload); terminated instance i-2 (pool gpu); finalizer removed Node/ghost; "+
		"deleted Node/ghost" ||
		!strings.Contains(warned, "i-1 (pool workload), i-2 (pool gpu)") {
		t.Errorf("changes %s, warnings %s", changes, warned)
	}
	if got := s.cloud.EC2.States(); got != "i-1=terminated i-2=terminated i-3=running" || s.Get(node("labelled-by-hand", "", "")) == nil {
		t.Errorf("%s", got)
	}
	s.Remove(node("labelled-by-hand", "", ""))
}

func TestForeignNodePools(t *testing.T) {
	s := down(t)
	s.Create(pool("theirs", "", "1"))
	s.Create(pool("mine", "other", "1"))
	theirs := claim("theirs", "theirs", object{})
	theirs["spec"].(object)["nodeClassRef"].(object)["name"] = "workload" // an EC2NodeClass of the rack
	s.Create(theirs)
	t.Log("they are left behind, with a warning that lasts")
	if changes, progress := s.call(); !strings.HasPrefix(changes, "deleted NodePool/workload") ||
		!strings.Contains(warnings(progress), "mine, theirs") {
		t.Errorf("changes %s, warnings %s", changes, warnings(progress))
	}
	if _, warned := s.finished(); !strings.Contains(warned, "mine, theirs") {
		t.Errorf("warnings %s", warned)
	}
	if left := s.Get(theirs); left == nil || left.GetAnnotations()[annotationDeadline] != "" || s.Get(pool("theirs", "", "")) == nil {
		t.Error("something of somebody else's was touched")
	}
}

// An instance that lacks a tag is never terminated, and its NodeClaim, the last record of it, stays.
func TestAnInstanceWithoutTags(t *testing.T) {
	s := down(t)
	s.cloud.EC2.Launch(tagged("workload", "eks:eks-cluster-name", ""), "i-b")
	// A cluster administrator can make a NodeClaim or a Node name any instance: one of another cluster, or a
	// database's.
	s.Create(launched("c", "workload", "i-other"))
	s.Create(node("node-c", "workload", "i-other"))
	s.cloud.EC2.Launch(tagged("workload", "eks:eks-cluster-name", "west", "kubernetes.io/cluster/east", "", "kubernetes.io/cluster/west",
		"owned"), "i-other")
	s.call()
	s.clock = s.clock.Add(10 * time.Minute)
	var progress outcome.Progress
	for range 4 {
		_, progress = s.call()
	}
	if progress.Wait == 0 || !strings.Contains(progress.Note, "i-b (NodeClaim b), i-other (NodeClaim c); look whose they are") ||
		s.Get(claim("a", "", nil)) != nil || s.Get(claim("b", "", nil)) == nil {
		t.Errorf("%+v", progress)
	}
	if got := s.cloud.EC2.States(); got != "i-a=terminated i-b=running i-other=running" {
		t.Error(got)
	}
	s.plan.Force = events.ForceWords
	changes, warned := s.finished()
	if !strings.Contains(changes, "finalizer removed NodeClaim/b") ||
		!strings.Contains(warned, "they run on: i-b (NodeClaim b), i-other (NodeClaim c)") ||
		s.cloud.EC2.States() != "i-a=terminated i-b=running i-other=running" {
		t.Errorf("changes %s, warnings %s, %s", changes, warned, s.cloud.EC2.States())
	}
	s.Remove(node("node-b", "", ""))
	s.Remove(node("node-c", "", ""))
}

// EC2 refuses a whole call because of one instance. The other instances are terminated nevertheless.
func TestAProtectedInstanceKeepsNoOther(t *testing.T) {
	s := down(t)
	s.cloud.EC2.Instances["i-b"].Protected = true
	s.call()
	s.clock = s.clock.Add(10 * time.Minute)
	progress, err := s.step.Run(context.Background(), s.plan, "")
	if err == nil || !strings.Contains(err.Error(), "--instance-id i-b --no-disable-api-termination") ||
		progress.Changes[len(progress.Changes)-1].Subject != "instance i-a (pool workload, NodeClaim a)" {
		t.Errorf("%+v, %v", progress, err)
	}
	if got := s.cloud.EC2.States(); got != "i-a=shutting-down i-b=running" {
		t.Error(got)
	}
	s.cloud.EC2.Instances["i-b"].Protected = false
	if s.finished(); s.cloud.EC2.States() != "i-a=terminated i-b=terminated" {
		t.Error(s.cloud.EC2.States())
	}
}

// A complete removal also deletes the record that turning off has begun.
func TestTheRecordOfTurningOffEnds(t *testing.T) {
	s := down(t)
	s.checkpoints.Kept[outcome.CheckpointOff] = "{}"
	if s.call(); s.checkpoints.Kept[outcome.CheckpointOff] == "" {
		t.Error("it has ended although the removal has not")
	}
	if s.finished(); len(s.checkpoints.Kept) > 0 {
		t.Errorf("baselines %v", s.checkpoints.Kept)
	}
}

// Whether pods fit together only the scheduler knows. The removal waits until those that were drained have a node: for a
// while, and not when it is forced. Then a warning names them.
func TestDrainedPodsHaveANodeBeforeTheRemovalEnds(t *testing.T) {
	status := object{"phase": "Pending", "conditions": []any{object{
		"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: Insufficient cpu",
	}}}
	pending := func(s *scene, name string) object {
		pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": "default"},
			"spec": object{"containers": []any{object{"name": "c", "image": "i"}}}}
		s.Create(pod)
		s.Status(pod, status)
		t.Cleanup(func() { s.Remove(pod) })
		return pod
	}
	s := down(t)
	before := pending(s, "before")
	s.clock = s.clock.Add(2 * time.Second) // the pod was made before the removal began
	s.call()
	s.clock = s.clock.Add(20 * time.Minute)
	s.finished()
	s.Remove(before)

	s = down(t)
	s.call()
	after := pending(s, "after")
	s.clock = s.clock.Add(8 * time.Minute)
	var progress outcome.Progress
	for range 6 {
		_, progress = s.call()
	}
	if progress.Wait == 0 || !strings.Contains(progress.Note, "1 pod(s) have no node since Karpenter's drain: default/after "+
		"(0/2 nodes: Insufficient cpu); waits for them until ") || s.checkpoints.Kept[outcome.CheckpointRemoval] == "" {
		t.Fatalf("%+v, kept %v", progress, s.checkpoints.Kept)
	}
	kept := maps.Clone(s.checkpoints.Kept)
	goesOn := func(why, warning string) {
		t.Helper()
		_, progress := s.call()
		if progress.Wait != 0 || !strings.Contains(warnings(progress), warning) || len(s.checkpoints.Kept) > 0 {
			t.Errorf("%s: %+v, kept %v", why, progress, s.checkpoints.Kept)
		}
		s.checkpoints.Kept = maps.Clone(kept)
	}
	s.plan.Force = events.ForceWords
	goesOn("forced", "")
	s.plan.Force = nil
	s.clock = s.clock.Add(settling)
	goesOn("its time is over", "1 pod(s) still have no node: default/after (0/2 nodes: Insufficient cpu). Give the system node groups")
	s.clock = s.clock.Add(-settling)
	s.Remove(after)
	goesOn("none waits", "")
}

// Karpenter is turned on again in the middle of a removal. The next removal counts from its own start.
func TestTurnedOnAgain(t *testing.T) {
	s := down(t)
	s.call()
	if s.checkpoints.Kept[outcome.CheckpointRemoval] == "" {
		t.Fatal("the removal is not on record")
	}
	s.plan.NodePools.Objects = []object{class("workload", "demo")}
	if s.call(); len(s.checkpoints.Kept) > 0 {
		t.Errorf("baselines %v", s.checkpoints.Kept)
	}
}

// The instances of a cluster that is gone still run, and no API server can be asked about them.
func TestTheInstancesOfAClusterThatIsGone(t *testing.T) {
	cloud := awsfake.New()
	cloud.EC2.Launch(tagged("workload"), "i-1")
	cloud.EC2.Launch(tagged("gpu"), "i-2")
	cloud.EC2.Launch(tagged("workload", "eks:eks-cluster-name", "west"), "i-3")
	cloud.EC2.Launch(tagged("theirs", "Name", "x"), "i-4")
	s := &scene{T: t, cloud: cloud, clock: cloud.Now(), plan: &plan.Plan{Rack: "demo", Cluster: plan.Cluster{Name: "east", Gone: true}}}
	var known error
	connect := func(context.Context, plan.Cluster) (*k8s.Client, error) { return nil, known }
	s.step = &Step{Connect: connect, EC2: cloud.EC2, Checkpoints: awsfake.NewCheckpoints(cloud), Drain: time.Minute, Now: cloud.Now}

	t.Log("a plan may say so of a cluster that is there")
	if _, err := s.step.Run(t.Context(), s.plan, ""); err == nil || !strings.Contains(err.Error(), "its instances are not ended") ||
		len(cloud.Writes()) > 0 {
		t.Fatalf("%v, writes %v", err, cloud.Writes())
	}

	t.Log("EKS says so too")
	known = fmt.Errorf("cluster east: %w", k8s.ErrGone)
	changes, warned := s.finished()
	if changes != "terminated instance i-1 (pool workload); terminated instance i-2 (pool gpu)" || !strings.Contains(warned, "i-1") ||
		cloud.EC2.States() != "i-1=terminated i-2=terminated i-3=running i-4=running" {
		t.Errorf("changes %s, warnings %s, %s", changes, warned, cloud.EC2.States())
	}
	cloud.Forget()
	if s.done(); len(cloud.Writes()) > 0 {
		t.Errorf("a second run wrote %v", cloud.Writes())
	}
}
